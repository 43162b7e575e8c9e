import NIOCore
import NIOPosix

/// A receiver of webhooks for tests, on loopback: it records what it is sent, and answers by a script.
public final class WebhookReceiver: Sendable {
    /// One request as it came.
    public struct Delivery: Sendable, Hashable {
        /// The target.
        public let path: String
        /// All fields.
        public let headers: [ScriptedOrigin.Header]
        /// The body.
        public let body: String
        /// Which request with this `webhook-id` it is, from 1.
        public let attempt: Int
        /// The answer of the script.
        public let answer: Answer

        /// The `webhook-id`.
        public var id: String { header("webhook-id") ?? "" }
        /// The value of the first field of that name, without regard to case.
        public func header(_ name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    /// What the receiver does with a request that it has read, and so may have acted on.
    public enum Answer: Sendable, Hashable {
        /// Answers at once.
        case status(Int, headers: [ScriptedOrigin.Header] = [])
        /// Answers 200 after this delay.
        case late(Duration)
        /// Answers 200 with a body that never ends.
        case endless
        /// Answers 200 with a body that never comes.
        case silentBody
        /// Never answers.
        case hang
        /// Drops the connection instead of answering: it has died.
        case die

        /// 200.
        public static let taken = Answer.status(200)
        /// Whether the sender has to take the delivery as acknowledged.
        public var isAcknowledgement: Bool {
            switch self {
            case .status(let status, _): (200..<300).contains(status)
            case .endless, .silentBody: true
            case .late, .hang, .die: false
            }
        }
    }

    /// Decides the answer to a request, from its `webhook-id` and its number among the requests with that id, from 1.
    public typealias Script = @Sendable (_ id: String, _ attempt: Int) -> Answer

    struct State: Sendable {
        var deliveries: [Delivery] = []
        var running = 0
        var mostAtOnce = 0
    }

    /// The loopback address.
    public let host: String
    /// The port.
    public var port: Int { service.port }
    private let state: Observed<State>
    private let service: ScriptedService

    /// Starts a receiver, on a port of its choice unless a port is given. A receiver that will be started again listens
    /// on a loopback address of its own: on a shared address its port may be another server's by then.
    public static func start(
        host: String = "127.0.0.1", port: Int = 0, script: @escaping Script = { _, _ in .taken }
    ) async throws -> WebhookReceiver {
        let state = Observed(State())
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture { try ReceiverConnection.Channel(wrapping: channel) }
            }
        let service = try ScriptedService("webhook receiver", server) { connection in
            await ReceiverConnection(state: state, script: script).serve(connection)
        }
        return WebhookReceiver(host: host, state: state, service: service)
    }

    private init(host: String, state: Observed<State>, service: ScriptedService) {
        self.host = host
        self.state = state
        self.service = service
    }

    /// Stops listening, drops all connections, and waits until that is done.
    public func stop() async { await service.stop() }

    /// Where deliveries go.
    public var url: String { "http://\(host):\(port)/hook" }
    /// What has come so far, in this order.
    public var deliveries: [Delivery] { state.value.deliveries }
    /// The most requests that were being answered at once.
    public var mostAtOnce: Int { state.value.mostAtOnce }

    /// Waits until the deliveries fulfil a condition, and returns them.
    @discardableResult
    public func wait(
        for what: String, limit: Duration = TimedOut.defaultLimit,
        until condition: @escaping @Sendable ([Delivery]) -> Bool
    ) async throws -> [Delivery] {
        try await state.wait(for: what, limit: limit, details: { "\($0.deliveries.map { ($0.id, $0.answer) })" }) {
            condition($0.deliveries)
        }.deliveries
    }
}
