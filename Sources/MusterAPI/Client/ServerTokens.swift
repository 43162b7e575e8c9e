import Synchronization

/// What opens coordinators: bearer tokens, which are secrets.
public enum ServerTokens: Sendable {
    /// One for all of them; or none, where none is asked for.
    case common(String?)
    /// One for each that has one, found by its base URL when it is asked: no other is shown it. One that is away may have none yet.
    case found(@Sendable (_ server: String) -> String?)

    /// What opens a server.
    func token(of server: String) -> String? {
        switch self {
        case .common(let token): token
        case .found(let find): find(server)
        }
    }
}

/// The tokens that requests show. One that is away may have none yet, and comes back with the one that it had.
final class ShownTokens: Sendable {
    private let servers: [String]
    private let tokens: ServerTokens
    private let known = Mutex<[String: String]>([:])

    init(servers: [String], tokens: ServerTokens) {
        self.servers = servers
        self.tokens = tokens
    }

    /// What opens the server of a URL.
    func token(for url: String) -> String? {
        // The longest: one may be a path of another one.
        let server = servers.filter { url.hasPrefix($0.hasSuffix("/") ? $0 : $0 + "/") }.max { $0.count < $1.count }
        guard let server else { return nil }
        if let token = known.withLock({ $0[server] }) { return token }
        let token = tokens.token(of: server)
        known.withLock { $0[server] = token }
        return token
    }
}
