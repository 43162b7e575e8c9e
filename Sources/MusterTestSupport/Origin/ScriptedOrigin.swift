import NIOCore
import NIOPosix

/// An HTTP/1.1 origin for tests, on a free port of 127.0.0.1: it serves files of any size without holding them, supports
/// ranges as RFC 9110 §14 wants it, and misbehaves where it is told to.
///
/// Everything that happens can be waited on: requests, bytes sent, and gates that hold a body back until a test opens them.
public final class ScriptedOrigin: Sendable {
    /// A request, and what became of it.
    public struct Request: Sendable, Hashable {
        /// Counts the requests of the origin from 0.
        public let number: Int
        /// Counts the connections of the origin from 0.
        public let connection: Int
        /// The method.
        public let method: String
        /// The request target with its query.
        public let target: String
        /// The target without its query.
        public let path: String
        /// All fields as they came.
        public let headers: [Header]
        /// The status that was answered; 0 until there is one.
        public internal(set) var status: Int
        /// How many bytes of the body have been handed to the kernel.
        public internal(set) var bodyBytesSent: Int64
        /// Whether the response has ended, in whatever way.
        public internal(set) var isFinished: Bool

        /// The Range field.
        public var range: String? { header("Range") }

        /// The value of the first field of that name, in whatever case.
        public func header(_ name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    struct State: Sendable {
        var files: [String: File] = [:]
        var rules: [String: [Rule]] = [:]
        var counts: [String: Int] = [:]
        var gates: [String: Int64] = [:]
        var requests: [Request] = []
        var connections = 0
        var openConnections = 0
        var activeResponses = 0
        var mostActiveResponses = 0
        var responseLimit: (count: Int, status: Int)?
        var bytesPerSecond: Int?
    }

    /// The port.
    public let port: Int
    /// `http://127.0.0.1:<port>`, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }
    let state: Observed<State>
    private let listener: any Channel
    private let service: Task<Void, Never>

    /// Starts an origin with files by path; a path begins with a slash.
    public static func start(_ files: [String: File] = [:]) async throws -> ScriptedOrigin {
        let state = Observed(State(files: files))
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .bind(host: "127.0.0.1", port: 0) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        let service = Task {
            do {
                try await server.executeThenClose { connections in
                    try await withThrowingDiscardingTaskGroup { group in
                        for try await connection in connections {
                            let number = state.update { state in
                                state.connections += 1
                                state.openConnections += 1
                                return state.connections - 1
                            }
                            group.addTask {
                                await OriginConnection(number: number, state: state, channel: connection.channel)
                                    .serve(connection)
                                state.update { $0.openConnections -= 1 }
                            }
                        }
                    }
                }
            } catch is CancellationError {
                // Stopped.
            } catch {
                print("the scripted origin stopped listening: \(error)")
            }
        }
        guard let port = server.channel.localAddress?.port else { throw NoAddress() }
        return ScriptedOrigin(port: port, state: state, listener: server.channel, service: service)
    }

    /// The listener has no address.
    public struct NoAddress: Error {}

    private init(port: Int, state: Observed<State>, listener: any Channel, service: Task<Void, Never>) {
        self.port = port
        self.state = state
        self.listener = listener
        self.service = service
    }

    deinit { service.cancel() }

    /// Stops listening, drops all connections, and waits until that is done.
    public func stop() async {
        service.cancel()
        await service.value
    }

    /// The URL of a path.
    public func url(_ path: String) -> String { url + path }
}
