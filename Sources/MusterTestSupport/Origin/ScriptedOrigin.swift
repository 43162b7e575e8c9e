import NIOCore
import NIOPosix
import NIOSSL
public import SystemPackage

/// An origin for tests, on a free port of 127.0.0.1: it serves files of any size without holding them, supports ranges as
/// RFC 9110 §14 wants it, and misbehaves where it is told to; by HTTP/1.1 or HTTP/2, with TLS or without.
///
/// Everything that happens can be waited on: requests, bytes sent, and gates that hold a body back until a test opens them.
public final class ScriptedOrigin: Sendable {
    /// The port.
    public var port: Int { service.port }
    /// Its transport.
    public let transport: Transport
    /// `http://127.0.0.1:<port>` or `https://127.0.0.1:<port>`, without a slash at the end.
    public var url: String { "\(transport.isTLS ? "https" : "http")://127.0.0.1:\(port)" }
    /// The authorities and certificates of this test process; nil without TLS.
    public let certificates: TestCertificates?
    /// The file of the authority that vouches for a ``TestCertificates/Identity/trusted`` origin; nil without TLS.
    public var caFile: FilePath? { certificates?.caFile }
    let state: Observed<State>
    private let service: ScriptedService

    /// Starts an origin with files by path; a path begins with a slash.
    ///
    /// - Parameters:
    ///   - transport: Its transport.
    ///   - identity: Its certificate (row 36); only with TLS.
    ///   - clientCertificates: Whether it asks for one (row 38); only with TLS.
    public static func start(
        _ files: [String: File] = [:],
        transport: Transport = .plain,
        identity: TestCertificates.Identity = .trusted,
        clientCertificates: ClientCertificates = .ignored
    ) async throws -> ScriptedOrigin {
        let state = Observed(State(files: files, transport: transport))
        let certificates = transport.isTLS ? try await TestCertificates.shared() : nil
        let context = try certificates.map {
            try OriginTLS.context($0, identity: identity, clients: clientCertificates, transport: transport)
        }
        let front = OriginFront(transport: transport, tls: context, state: state)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .bind(host: "127.0.0.1", port: 0) { front.accept($0) }
        let service = try ScriptedService(
            "scripted origin", server,
            end: {
                // Connections that were accepted, but that no task has begun to serve.
                for channel in state.value.channels.values { ConnectionEnd.abort(channel) }
            }, serve: { await $0.serve() })
        return ScriptedOrigin(transport: transport, certificates: certificates, state: state, service: service)
    }

    private init(
        transport: Transport, certificates: TestCertificates?, state: Observed<State>, service: ScriptedService
    ) {
        self.transport = transport
        self.certificates = certificates
        self.state = state
        self.service = service
    }

    /// Stops listening, drops all connections, and waits until that is done.
    public func stop() async { await service.stop() }

    /// The URL of a path.
    public func url(_ path: String) -> String { url + path }
}
