import MusterCore

/// A secret on the command line: a value, or a reference `env:NAME` or `file:PATH` that the worker resolves.
enum SecretArgument {
    /// The secret; a relative path in it is resolved against `base`.
    static func secret(_ text: String, base: String) -> Secret {
        let secret = Secret(text)
        switch secret.form {
        case .value, .environment: return secret
        case .file(let path): return Secret("file:" + SinkArgument.absolute(path, base: base))
        }
    }

    /// `NAME: VALUE`: a header field.
    ///
    /// - Throws: `CommandFailure.usage`, which never shows the value.
    static func header(_ text: String, base: String) throws(CommandFailure) -> (name: String, value: Secret) {
        let (name, value) = try pair(text, ":", rule: "--header must be NAME: VALUE, such as \"Accept: text/plain\"")
        return (name, secret(value, base: base))
    }

    /// `NAME=VALUE`: a cookie.
    ///
    /// - Throws: `CommandFailure.usage`, which never shows the value.
    static func cookie(_ text: String, base: String) throws(CommandFailure) -> (name: String, value: Secret) {
        let (name, value) = try pair(text, "=", rule: "--cookie must be NAME=VALUE")
        return (name, secret(value, base: base))
    }

    /// `NAME:SECRET`; nothing after the colon means an empty password.
    ///
    /// - Throws: `CommandFailure.usage` without a colon.
    static func user(_ text: String, base: String) throws(CommandFailure) -> (user: String, password: Secret) {
        guard let colon = text.firstIndex(of: ":") else {
            throw .usage("--user has no password: NAME:PASSWORD, NAME:env:VARIABLE, or NAME: for an empty one")
        }
        let password = String(text[text.index(after: colon)...])
        return (String(text[..<colon]), password.isEmpty ? Secret("value:") : secret(password, base: base))
    }

    private static func pair(
        _ text: String, _ separator: Character, rule: String
    ) throws(CommandFailure) -> (String, String) {
        guard let place = text.firstIndex(of: separator), place != text.startIndex else { throw .usage(rule) }
        let value = text[text.index(after: place)...].drop { $0 == " " || $0 == "\t" }
        return (String(text[..<place]), String(value))
    }
}
