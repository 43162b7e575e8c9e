import Synchronization

/// The bearer tokens of coordinators, which are secrets.
public enum ServerTokens: Sendable {
    /// The token of all servers; `nil` if they need none.
    case common(String?)
    /// A token for each server, looked up by its base URL when the server is asked, so that no other server sees it. A server that is down
    /// may have no token yet.
    case found(@Sendable (_ server: String) -> String?)

    /// The token of a server.
    func token(of server: String) -> String? {
        switch self {
        case .common(let token): token
        case .found(let find): find(server)
        }
    }
}

/// The tokens that requests show. A token that was found is kept: a server that goes away comes back with the same token.
final class ShownTokens: Sendable {
    private let servers: [String]
    private let tokens: ServerTokens
    private let known = Mutex<[String: String]>([:])

    init(servers: [String], tokens: ServerTokens) {
        self.servers = servers
        self.tokens = tokens
    }

    /// The token for the server of a URL.
    func token(for url: String) -> String? {
        // The longest match: the URL of a server may be a prefix of another server's.
        let server = servers.filter { url.hasPrefix($0.hasSuffix("/") ? $0 : $0 + "/") }.max { $0.count < $1.count }
        guard let server else { return nil }
        if let token = known.withLock({ $0[server] }) { return token }
        let token = tokens.token(of: server)
        known.withLock { $0[server] = token }
        return token
    }
}
