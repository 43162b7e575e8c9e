import MusterAPI
import MusterCore
import SystemPackage

/// The transfer settings of a new group: how sources are requested, the policy where there is a choice, and the resolver of fresh URLs.
/// Parts without any setting are absent.
struct TransferSettings: Hashable, Sendable {
    /// How the sources are requested.
    var fetch: FetchOptions?
    /// The policy where there is a choice.
    var policy: TransferPolicy?
    /// The resolver of fresh URLs.
    var resolver: Resolver?

    /// Whether there is no setting at all.
    var isEmpty: Bool { fetch == nil && policy == nil && resolver == nil }

    /// The variables that name proxies, as libcurl reads them.
    private static let proxyVariables = [
        "http_proxy", "https_proxy", "HTTPS_PROXY", "ftp_proxy", "FTP_PROXY", "all_proxy", "ALL_PROXY",
    ]

    /// Uses the proxies that the environment names, as other programs of the user do, unless `--proxy` was given.
    ///
    /// - Returns: the variables that decide which proxy is used for what.
    /// - Throws: `CommandFailure.usage` for a variable that names no proxy. Its value is never shown: it may hold a password.
    mutating func followProxies(of environment: [String: String]) throws(CommandFailure) -> [String] {
        let isSet = { (name: String) in !(environment[name] ?? "").isEmpty }
        let named = Self.proxyVariables.filter(isSet)
        guard fetch?.proxy == nil, !named.isEmpty else { return [] }
        for name in named {
            let text = environment[name] ?? ""
            var asked = FetchOptions()
            asked.proxy = Secret(text.contains("://") ? text : "http://\(text)")
            do {
                try asked.check()
            } catch {
                throw .usage(
                    "the variable \(name) names no proxy: http://HOST:PORT is one (or https, socks4, socks4a, socks5, socks5h); "
                        + "what is special in a password is percent-encoded; --proxy direct asks without one")
            }
        }
        var options = fetch ?? FetchOptions()
        options.proxy = SecretArgument.secret("environment", base: "/")
        fetch = options
        return named + ["no_proxy", "NO_PROXY"].filter(isSet)
    }

    /// Trusts the authorities that the environment names, as other programs of the user do, unless a file of authorities was given.
    mutating func followAuthorities(of environment: [String: String], base: String) {
        guard fetch?.caFile == nil, let file = environment["SSL_CERT_FILE"], !file.isEmpty else { return }
        var options = fetch ?? FetchOptions()
        options.caFile = SinkArgument.absolute(file, base: base)
        fetch = options
    }

    /// A note that the user and the password are sent to several hosts, if they are: they may be meant for only one of these.
    func sharing(_ hosts: Set<String>) -> String? {
        guard fetch?.credentials != nil, hosts.count > 1 else { return nil }
        let names = hosts.sorted().prefix(Self.namedHosts)
        let more = hosts.count - names.count
        return TextWidth.escaped(
            "note: user and password of --user are sent to all hosts of the list: \(names.joined(separator: ", "))"
                + (more > 0 ? " and \(more) more" : "")
                + "; for one of them alone they stand in its URLs (https://USER:PASSWORD@HOST/…), or in a file for --netrc"
        )
    }

    /// The most hosts that are named.
    private static let namedHosts = 5

    /// Sets the parts in the request for a new group.
    func apply(to request: inout GroupRequest) {
        request.fetch = fetch
        request.policy = policy
        request.resolver = resolver
    }
}

extension Settings {
    /// Reads all transfer settings; relative paths are resolved against `base`.
    ///
    /// - Throws: `CommandFailure.usage` with the option and the rule; never with a secret.
    func transfers(base: String) throws(CommandFailure) -> TransferSettings {
        var settings = TransferSettings()
        let fetch = try fetchOptions(base: base)
        if fetch != FetchOptions() { settings.fetch = fetch }
        let policy = try transferPolicy()
        if policy != TransferPolicy() { settings.policy = policy }
        if let url = text(.resolver) {
            let resolver = Resolver(url: url)
            do {
                try resolver.check()
            } catch {
                throw refusal(.resolver, "can't be used: \(error.reason)")
            }
            settings.resolver = resolver
        }
        return settings
    }

    /// Checks that the files that the options name can be read here, including those of secrets.
    func checkFiles(base: String) throws(CommandFailure) {
        let secrets = try transfers(base: base).fetch?.secretFiles ?? []
        for name in [SettingName.cookieFile, .netrc, .caFile, .knownHosts, .privateKey, .certificate, .key] {
            guard let file = path(name, base: base) else { continue }
            if let reason = Self.unreadable(file) {
                throw refusal(name, "must name a file that can be read here (\(reason))")
            }
        }
        for file in secrets {
            if let reason = Self.unreadable(file) {
                throw .usage("file:\(file) must name a file that can be read here (\(reason))")
            }
        }
    }

    /// Why a file can't be read; `nil` where it can be.
    private static func unreadable(_ file: String) -> String? {
        do {
            try FileDescriptor.open(FilePath(file), .readOnly, options: .closeOnExec).close()
        } catch {
            return "\(error)"
        }
        let directory = try? FileDescriptor.open(FilePath(file), .readOnly, options: [.closeOnExec, .directory])
        guard let directory else { return nil }
        try? directory.close()
        return "it is a directory"
    }

    private func fetchOptions(base: String) throws(CommandFailure) -> FetchOptions {
        var options = FetchOptions()
        for text in texts(.header) {
            let (name, value) = try SecretArgument.header(text, base: base)
            let isTaken = (options.headers ?? [:]).keys.contains { $0.lowercased() == name.lowercased() }
            guard !isTaken else { throw .usage("\(SettingName.header.option): \(name) is given twice") }
            options.headers = (options.headers ?? [:]).merging([name: value]) { $1 }
        }
        for text in texts(.cookie) {
            let (name, value) = try SecretArgument.cookie(text, base: base)
            guard options.cookies?[name] == nil else {
                throw .usage("\(SettingName.cookie.option): \(name) is given twice")
            }
            options.cookies = (options.cookies ?? [:]).merging([name: value]) { $1 }
        }
        options.proxy = text(.proxy).map { SecretArgument.secret($0, base: base) }
        if let text = text(.user) {
            let (user, password) = try SecretArgument.user(text, base: base)
            options.credentials = .init(user: user, password: password)
        }
        options.cookieFile = path(.cookieFile, base: base)
        options.netrc = path(.netrc, base: base)
        options.caFile = path(.caFile, base: base)
        options.knownHosts = path(.knownHosts, base: base)
        options.privateKey = path(.privateKey, base: base)
        switch (path(.certificate, base: base), path(.key, base: base)) {
        case (nil, nil): break
        case (let certificate?, let key?): options.clientCertificate = .init(certificate: certificate, key: key)
        case (.some, nil), (nil, .some):
            throw .usage("\(SettingName.certificate.option) and \(SettingName.key.option) are given together")
        }
        if try flag(.locationTrusted) { options.locationTrusted = true }
        if try flag(.decode) { options.decode = true }
        options.httpVersion = try choice(.httpVersion, of: FetchOptions.HTTPVersion.self)
        do {
            try options.check()
        } catch {
            // The pointer names the option as the API does; the reason never contains a value.
            throw .usage("the option for \(error.pointer.dropFirst()): \(error.reason)")
        }
        return options
    }

    private func transferPolicy() throws(CommandFailure) -> TransferPolicy {
        var policy = TransferPolicy()
        policy.ifExists = try choice(.ifExists, of: ExistingFileRule.self)
        policy.validators = try choice(.validators, of: ValidatorRule.self)
        if try flag(.keepTime) { policy.keepModificationTime = true }
        if try flag(.suggestedNames) { policy.names = .suggested }
        if try flag(.acceptUnframed) { policy.acceptUnframed = true }
        if text(.reuse) != nil, try !flag(.reuse) { policy.reuse = false }
        return policy
    }

    private func path(_ name: SettingName, base: String) -> String? {
        text(name).map { SinkArgument.absolute($0, base: base) }
    }
}
