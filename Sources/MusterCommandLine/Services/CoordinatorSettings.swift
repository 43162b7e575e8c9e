import MusterCoordinator
import MusterCore

extension Settings {
    /// The address that `--listen` names, or the default one.
    func listenAddress() throws(CommandFailure) -> ListenAddress {
        guard let text = text(.listen) else { return ListenAddress(host: "127.0.0.1", port: 7300) }
        guard let address = ListenAddress(text) else {
            throw refusal(.listen, "must be HOST:PORT, such as 127.0.0.1:7300 or [::1]:7300")
        }
        return address
    }

    /// How a coordinator runs: everything but where its database is.
    func coordinator(listen address: ListenAddress) throws(CommandFailure) -> CoordinatorConfiguration {
        var configuration = CoordinatorConfiguration(database: "")
        configuration.listenHost = address.host
        configuration.listenPort = address.port
        configuration.hosts = words(.host)
        if !configuration.isLoopback { configuration.hosts += MachineName.hosts }
        configuration.adminToken = text(.token)
        configuration.workerToken = text(.workerToken)
        if let duration = try duration(.sessionTTL) {
            let bounds = Limits.sessionTimeToLive
            guard bounds.contains(duration) else { throw refusal(.sessionTTL, "must be from 1s to 10m") }
            configuration.sessionTimeToLive = duration
        }
        if let number = try number(.maxConnectionsPerOrigin, in: 1...100_000) {
            configuration.maxConnectionsPerOrigin = Int32(number)
        }
        configuration.maxBytesPerSecond = try rate(.maxRate)
        if let duration = try duration(.eventRetention) {
            guard Limits.eventRetention.contains(duration) else {
                throw refusal(.eventRetention, "must be from 1h to 3650d")
            }
            configuration.eventRetention = duration
        }
        configuration.allowedAddresses = try addressRanges()
        configuration.guardsAddresses = try flag(.guardAddresses)
        let tries = Limits.attemptsAllowed
        if let number = try number(.tries, in: Int(tries.lowerBound)...Int(tries.upperBound)) {
            (configuration.attempts, configuration.unreachedAttempts) = (Int32(number), Int32(number))
        }
        if let duration = try duration(.retryBase) {
            guard duration > .zero, duration <= .seconds(60) else {
                throw refusal(.retryBase, "must be from 1ms to 1m")
            }
            configuration.retryBase = duration
        }
        if let duration = try duration(.retryMaximum) {
            guard duration <= .seconds(3_600) else { throw refusal(.retryMaximum, "must be at most 1h") }
            configuration.retryMaximum = duration
        }
        guard configuration.retryBase <= configuration.retryMaximum else {
            throw refusal(.retryBase, "must not be longer than \(SettingName.retryMaximum.option)")
        }
        if let number = try number(.databaseConnections, in: 2...1_000) { configuration.databaseConnections = number }
        if let size = try size(.minimumChunk) { configuration.minimumChunk = try chunk(size, .minimumChunk) }
        if let size = try size(.maximumChunk) { configuration.maximumChunk = try chunk(size, .maximumChunk) }
        guard configuration.minimumChunk <= configuration.maximumChunk else {
            throw refusal(.minimumChunk, "must not be larger than \(SettingName.maximumChunk.option)")
        }
        return configuration
    }

    /// The networks outside the public Internet that may be fetched from.
    private func addressRanges() throws(CommandFailure) -> [AddressRange] {
        var ranges: [AddressRange] = []
        for text in texts(.allowAddress).flatMap({ $0.split(separator: ",") }) {
            let text = text.split(separator: " ").joined(separator: " ")
            guard let range = AddressRange(text) else {
                throw .usage(
                    """
                    \(named(.allowAddress)) must be networks or addresses \
                    such as 10.0.0.0/8, fd00::/8 or 192.168.1.7, not "\(text)"
                    """)
            }
            ranges.append(range)
        }
        return ranges
    }

    /// Refuses a configuration that a coordinator would refuse to start with, before anything is made for it.
    static func check(_ configuration: CoordinatorConfiguration) throws(CommandFailure) {
        do {
            try configuration.check()
        } catch {
            throw .usage(error.description)
        }
    }

    private func chunk(_ size: ByteCount, _ name: SettingName) throws(CommandFailure) -> ByteCount {
        let bounds = ByteCount.mebibytes(1)...Limits.chunk.upperBound
        guard bounds.contains(size) else { throw refusal(name, "must be from 1MiB to 256MiB") }
        return size
    }

    /// The connection string that was given.
    ///
    /// - Throws: `CommandFailure.usage` when there is none, or it can't be read.
    func databaseConnection() throws(CommandFailure) -> String {
        guard let database = text(.database) else {
            throw .usage(
                """
                no database is named: set MUSTER_DATABASE, or give --database, to a connection string such as \
                postgresql://user@host/muster. (muster up brings a PostgreSQL of its own)
                """
            )
        }
        guard DatabaseStart.canRead(database) else {
            throw refusal(
                .database, "must be a connection string such as postgresql://user@host/muster or host=… dbname=muster")
        }
        return database
    }
}
