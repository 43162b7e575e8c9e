import MusterAPI
import MusterCore
import MusterWorker

/// `WHAT=RECEIVER`: a variable or a directory of secrets, and the origin that may receive it; `*` is any origin.
enum SecretGrantArgument {
    /// Both parts of an argument.
    ///
    /// - Throws: `CommandFailure.usage` with the rule.
    static func parse(
        _ text: String, of name: SettingName
    ) throws(CommandFailure) -> (what: String, receiver: SecretGrants.Receiver) {
        let rule = CommandFailure.usage(
            """
            \(name.option) says who may receive it: \(name == .secretVariable ? "NAME" : "DIR")=ORIGIN, \
            such as =https://files.example.org, or =* for anybody, not "\(text)"
            """)
        guard let place = text.lastIndex(of: "="), place != text.startIndex else { throw rule }
        let receiver = text[text.index(after: place)...]
        if receiver == "*" { return (String(text[..<place]), .anyone) }
        guard let scheme = receiver.firstRange(of: "://"), !receiver[scheme.upperBound...].contains("/"),
            let url = try? SourceURL(validating: String(receiver) + "/")
        else { throw rule }
        return (String(text[..<place]), .origin(url.origin))
    }
}

extension Settings {
    /// The secrets that groups may refer to on this machine's workers.
    func secretGrants(base: String) throws(CommandFailure) -> SecretGrants {
        var grants = SecretGrants()
        for text in words(.secretVariable) {
            let (name, receiver) = try SecretGrantArgument.parse(text, of: .secretVariable)
            grants.variables[name, default: []].insert(receiver)
        }
        for text in words(.secretDirectory) {
            let (path, receiver) = try SecretGrantArgument.parse(text, of: .secretDirectory)
            grants.directories[SinkArgument.absolute(path, base: base), default: []].insert(receiver)
        }
        return grants
    }
}

extension FetchOptions {
    /// The values that may be references.
    private var secrets: [Secret] {
        Array((headers ?? [:]).values) + Array((cookies ?? [:]).values)
            + [proxy, credentials?.password].compactMap { $0 }
    }

    /// The files from which secrets are read.
    var secretFiles: [String] {
        secrets.compactMap { if case .file(let path) = $0.form { path } else { nil } }.sorted()
    }

    /// Grants for the secrets and files that these options refer to: what the user names on the command line may be sent where the user says.
    var grants: SecretGrants {
        var grants = SecretGrants()
        for secret in secrets { grants.add(secret) }
        for path in [
            cookieFile, netrc, caFile, knownHosts, privateKey, clientCertificate?.certificate, clientCertificate?.key,
        ] {
            grants.add(path: path)
        }
        return grants
    }
}
