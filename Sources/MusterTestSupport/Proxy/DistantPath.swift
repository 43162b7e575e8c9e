import NIOCore
import NIOPosix

/// A simulated long path to a server of this machine: a port of 127.0.0.1 that passes everything on with a delay, and no
/// faster than at a rate.
///
/// A kernel with `tc netem` does the same for each packet. ``rate(atLoss:roundTrip:)`` gives the rate that a loss of
/// packets leaves to a connection that lasts long enough.
public final class DistantPath: Sendable {
    /// The port that leads to the server.
    public let port: Int
    /// `http://127.0.0.1:<port>`, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }
    private let listener: any Channel

    /// Opens a port that leads to another port of 127.0.0.1.
    ///
    /// - Parameters:
    ///   - roundTrip: The least time from sending bytes to the answer to them; making a connection takes as long.
    ///   - bytesPerSecond: The rate of each connection, in each direction; `nil` is no limit.
    public static func open(
        to port: Int, roundTrip: Duration, bytesPerSecond: Int? = nil
    ) async throws -> DistantPath {
        let way = Way(
            delay: .nanoseconds(Int64(roundTrip / .nanoseconds(1)) / 2), bytesPerSecond: bytesPerSecond)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 1_024)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { client in
                ClientBootstrap(group: client.eventLoop)
                    .channelOption(.autoRead, value: false)
                    .connect(host: "127.0.0.1", port: port)
                    .flatMapThrowing { server in try way.join(client, server) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return DistantPath(listener)
    }

    private init(_ listener: any Channel) {
        self.listener = listener
        port = listener.localAddress?.port ?? 0
    }

    deinit {
        listener.close(promise: nil)
    }

    /// The rate of a TCP connection whose packets are lost now and then, in bytes per second, by the formula of Mathis, Semke, Mahdavi and Ott (1997):
    /// MSS / RTT × √(3/2) / √p, with a segment of 1,448 bytes. Reno keeps to it; CUBIC does at distances such as these (RFC 9438 §4.3).
    ///
    /// - Parameter loss: The share of packets that are lost, above 0.
    public static func rate(atLoss loss: Double, roundTrip: Duration) -> Int {
        Int(1_448 / (roundTrip / .seconds(1)) * (1.5 / loss).squareRoot())
    }
}

/// The delay and the rate of a path, for both directions of a connection.
private struct Way: Sendable {
    let delay: TimeAmount
    let bytesPerSecond: Int?

    /// Passes on to each of two channels of one event loop what comes from the other.
    func join(_ client: any Channel, _ server: any Channel) throws {
        // A real client has its connection one round trip after it asked for it. Here the connection exists at once, so
        // its first bytes wait for that time.
        let begin = NIODeadline.now() + delay * 2
        try client.pipeline.syncOperations.addHandler(DelayLine(to: server, self, from: begin))
        try server.pipeline.syncOperations.addHandler(DelayLine(to: client, self, from: begin))
        for channel in [client, server] { _ = channel.setOption(.autoRead, value: true) }
    }
}

/// One direction of a connection: passes bytes on with a delay.
private final class DelayLine: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    /// The most bytes under way, besides those that the rate and the delay need; beyond them nothing is read.
    private static let room = 256 << 10

    private let other: any Channel
    private let way: Way
    private let most: Int
    /// When the next bytes can leave.
    private var free: NIODeadline
    private var underWay = 0
    private var isHeld = false

    init(to other: any Channel, _ way: Way, from begin: NIODeadline) {
        self.other = other
        self.way = way
        free = begin
        most = Self.room + Int(Double(way.bytesPerSecond ?? 0) * Double(way.delay.nanoseconds) / 1e9)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        let count = bytes.readableBytes
        underWay += count
        free = max(free, .now())
        if let rate = way.bytesPerSecond { free = free + .nanoseconds(Int64(count) * 1_000_000_000 / Int64(rate)) }
        later(context) { [self] context in
            let written = other.writeAndFlush(bytes).hop(to: context.eventLoop)
            written.assumeIsolated().whenComplete { [self] _ in
                underWay -= count
                if isHeld, underWay < most {
                    isHeld = false
                    context.read()
                }
            }
        }
    }

    func read(context: ChannelHandlerContext) {
        if underWay < most { context.read() } else { isHeld = true }
    }

    func channelInactive(context: ChannelHandlerContext) {
        later(context) { [self] _ in other.close(promise: nil) }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func later(_ context: ChannelHandlerContext, _ body: @escaping (ChannelHandlerContext) -> Void) {
        let deadline = free + way.delay
        context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { body(context) }
    }
}
