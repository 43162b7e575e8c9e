/// What opens coordinators: bearer tokens, which are secrets.
public enum ServerTokens: Sendable {
    /// One for all of them; or none, where none is asked for.
    case common(String?)
    /// One for each that has one, by its base URL as it was given: no other is shown it.
    case each([String: String])

    /// What opens a server.
    func token(of server: String) -> String? {
        switch self {
        case .common(let token): token
        case .each(let tokens): tokens[server]
        }
    }
}
