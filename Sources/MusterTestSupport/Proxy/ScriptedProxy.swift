import NIOCore
import NIOPosix

/// A plain HTTP proxy for tests, on a free port of 127.0.0.1 (row 38): it forwards requests in absolute form, opens tunnels
/// by CONNECT, counts both, and can demand credentials.
///
/// It connects only to 127.0.0.1. A route leads from a host name to a port there, so that a test can use a name that only
/// the proxy knows, and see that the proxy was used.
public final class ScriptedProxy: Sendable {
    /// A request to the proxy.
    public struct Request: Sendable, Hashable {
        /// The method; CONNECT for a tunnel.
        public let method: String
        /// The target as it came: a URL, or an authority for a tunnel.
        public let target: String
        /// All fields as they came. The fields of requests within a tunnel are not seen.
        public let headers: [ScriptedOrigin.Header]
        /// What the proxy itself answered; nil if it forwarded.
        public let refusedWith: Int?

        /// The value of the first field of that name, without regard to case.
        public func header(_ name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    /// The credentials that a client has to send.
    public struct Credentials: Sendable, Hashable {
        /// The user's name.
        public let user: String
        /// The password.
        public let password: String

        /// Makes credentials.
        public init(user: String, password: String) {
            self.user = user
            self.password = password
        }
    }

    struct State: Sendable {
        var requests: [Request] = []
        var connections = 0
        var credentials: Credentials?
        var routes: [String: Int]
        var refusal: Int?
    }

    /// The port.
    public var port: Int { service.port }
    /// `http://127.0.0.1:<port>`, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }
    /// The same with the credentials in it.
    public func url(with credentials: Credentials) -> String {
        "http://\(credentials.user):\(credentials.password)@127.0.0.1:\(port)"
    }
    private let state: Observed<State>
    private let service: ScriptedService

    /// Starts it.
    ///
    /// - Parameters:
    ///   - credentials: Nil lets every client through; else a client without them gets 407.
    ///   - routes: Ports of 127.0.0.1 by host name, whatever port the client asks for there.
    public static func start(
        credentials: Credentials? = nil,
        routes: [String: Int] = [:]
    ) async throws -> ScriptedProxy {
        let state = Observed(State(credentials: credentials, routes: routes))
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: "127.0.0.1", port: 0) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try ProxyConnection.Side(wrapping: channel)
                }
            }
        let service = try ScriptedService("scripted proxy", server) { connection in
            state.update { $0.connections += 1 }
            await ProxyConnection(state: state).serve(connection)
        }
        return ScriptedProxy(state: state, service: service)
    }

    private init(state: Observed<State>, service: ScriptedService) {
        self.state = state
        self.service = service
    }

    /// Stops listening, drops all connections, and waits until that is done.
    public func stop() async { await service.stop() }

    /// Adds a route.
    public func route(_ host: String, to port: Int) {
        state.update { $0.routes[host] = port }
    }

    /// Answers everything with this status from now on, such as 502; nil forwards again.
    public func refuse(with status: Int?) {
        state.update { $0.refusal = status }
    }

    /// All requests so far.
    public var requests: [Request] { state.value.requests }
    /// The requests for tunnels so far.
    public var tunnels: [Request] { requests.filter { $0.method == "CONNECT" } }
    /// How many connections there have been.
    public var connectionCount: Int { state.value.connections }
}

extension ScriptedProxy.State {
    /// How a request is handled.
    enum Decision: Sendable {
        /// This status.
        case refuse(Int)
        /// It goes to this port.
        case forward(port: Int)
    }

    /// Decides, and notes the request.
    mutating func decide(_ request: OriginRequest) -> Decision {
        let decision = decision(request)
        let status: Int? = if case .refuse(let status) = decision { status } else { nil }
        requests.append(
            ScriptedProxy.Request(
                method: request.method,
                target: request.target,
                headers: request.headers,
                refusedWith: status
            )
        )
        return decision
    }

    private func decision(_ request: OriginRequest) -> Decision {
        if let credentials, request.header("Proxy-Authorization") != credentials.field { return .refuse(407) }
        if let refusal { return .refuse(refusal) }
        guard let authority = request.proxyAuthority else { return .refuse(400) }
        if let port = routes[authority.host] { return .forward(port: port) }
        guard authority.host == "127.0.0.1" || authority.host == "localhost" else { return .refuse(502) }
        return .forward(port: authority.port)
    }
}
