import CLibpq

/// One server to try: the settings for libpq, and the secrets that no message may show.
struct ConnectionTarget: Sendable {
    var settings: [(keyword: String, value: String)]
    var secrets: [String]

    /// Replaces every secret in a message of libpq.
    func redacting(_ message: String) -> String {
        var message = message
        for secret in secrets where !secret.isEmpty {
            message = message.split(separator: secret, omittingEmptySubsequences: false).joined(separator: "***")
        }
        return message.oneLine
    }

    /// The servers of a configuration, in the order in which they are to be tried.
    ///
    /// Several hosts are split here, since libpq's asynchronous connecting has no time limit per host: a host that
    /// accepts and then stays silent would use up the time of all.
    static func all(of configuration: PostgresConfiguration) throws(PostgresError) -> [ConnectionTarget] {
        guard let given = parse(configuration.connectionString) else {
            // libpq's message is left out: it can quote the part that it could not read, which may be a password.
            throw .connection(.init(kind: .badConfiguration, message: "the connection string cannot be read"))
        }
        var settings = given
        func setDefault(_ keyword: String, _ value: String) {
            if settings[keyword] == nil { settings[keyword] = value }
        }
        setDefault("keepalives_idle", "\(max(1, configuration.keepaliveIdle.components.seconds))")
        setDefault("keepalives_interval", "5")
        setDefault("keepalives_count", "3")
        setDefault("tcp_user_timeout", "\(configuration.tcpUserTimeout.wholeMilliseconds)")
        setDefault("application_name", configuration.applicationName)
        // A standby may lag behind the primary, so nothing is read from it either.
        setDefault("target_session_attrs", "primary")
        settings["client_encoding"] = "UTF8"
        settings["options"] = [settings["options"], configuration.startupOptions]
            .compactMap(\.self).filter { !$0.isEmpty }.joined(separator: " ")

        let secrets = ["password", "sslpassword"].compactMap { given[$0] }
        let hosts = list(settings["host"])
        let addresses = list(settings["hostaddr"])
        let ports = list(settings["port"])
        let count = max(hosts.count, addresses.count, 1)
        return (0..<count).map { index in
            var one = settings
            if index < hosts.count { one["host"] = hosts[index] }
            if index < addresses.count { one["hostaddr"] = addresses[index] }
            if ports.count > 1, index < ports.count { one["port"] = ports[index] }
            return ConnectionTarget(settings: one.map { ($0.key, $0.value) }, secrets: secrets)
        }
    }

    /// When to go on to the next server. The servers that are left share the time until the deadline: otherwise the first one,
    /// on a machine that lost its power, would use up the time of the one that took its place.
    static func end(
        of serversLeft: Int,
        within limit: Duration,
        until deadline: ContinuousClock.Instant?,
        now: ContinuousClock.Instant
    ) -> ContinuousClock.Instant {
        guard let deadline else { return now + limit }
        return min(now + limit, now + now.duration(to: deadline) / serversLeft)
    }

    private static func list(_ text: String?) -> [String] {
        text?.split(separator: ",", omittingEmptySubsequences: false).map(String.init) ?? []
    }

    fileprivate static func parse(_ text: String) -> [String: String]? {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(text, &message) else {
            PQfreemem(message)
            return nil
        }
        defer { PQconninfoFree(options) }
        var settings: [String: String] = [:]
        var next = options
        while let keyword = next.pointee.keyword {
            if let value = next.pointee.val {
                settings[String(cString: keyword)] = String(cString: value)
            }
            next += 1
        }
        return settings
    }
}

extension String {
    /// A message of libpq without line breaks, and without the place in PostgreSQL's source that a verbose message names.
    var oneLine: String {
        split(whereSeparator: \.isNewline)
            .map { $0.drop(while: \.isWhitespace) }
            .filter { !$0.hasPrefix("LOCATION:") }
            .joined(separator: " ")
    }
}

extension PostgresConfiguration {
    /// Whether libpq can read the connection string; whether a server answers is another question.
    public var isReadable: Bool { ConnectionTarget.parse(connectionString) != nil }
}
