import NIOCore
import NIOPosix
public import SystemPackage

/// A simulated long path to a server of this machine: a port of 127.0.0.1 that passes everything on with a delay, and no
/// faster than at a rate. A test can give it a fault for a while.
///
/// A kernel with `tc netem` does the same for each packet. ``rate(atLoss:roundTrip:)`` gives the rate that a loss of
/// packets leaves to a connection that lasts long enough.
public final class DistantPath: Sendable {
    /// Where a path leads to.
    public enum Server: Sendable, Hashable {
        /// A port of 127.0.0.1.
        case port(Int)
        /// A Unix socket.
        case socket(FilePath)
    }

    /// The most bytes of one direction of a connection that a path without a distance has read and not yet passed on.
    public static let mostHeldBytes = DelayLine.room + (64 << 10)

    /// The port that leads to the server.
    public let port: Int
    /// `http://127.0.0.1:<port>`, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }
    private let listener: any Channel
    private let way: PathWay

    /// Opens a port that leads to another port of 127.0.0.1.
    ///
    /// - Parameters:
    ///   - roundTrip: The least time from sending bytes to the answer to them; making a connection takes as long.
    ///   - bytesPerSecond: The rate of each connection, in each direction; `nil` is no limit.
    public static func open(
        to port: Int, roundTrip: Duration, bytesPerSecond: Int? = nil
    ) async throws -> DistantPath {
        try await open(to: .port(port), roundTrip: roundTrip, bytesPerSecond: bytesPerSecond)
    }

    /// The same for any server, by default without a distance.
    public static func open(
        to server: Server, roundTrip: Duration = .zero, bytesPerSecond: Int? = nil
    ) async throws -> DistantPath {
        let way = PathWay(delay: .nanoseconds(Int64(roundTrip / .nanoseconds(1)) / 2), bytesPerSecond: bytesPerSecond)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 1_024)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { client in
                let bootstrap = ClientBootstrap(group: client.eventLoop).channelOption(.autoRead, value: false)
                let connected =
                    switch server {
                    case .port(let port): bootstrap.connect(host: "127.0.0.1", port: port)
                    case .socket(let path): bootstrap.connect(unixDomainSocketPath: path.string)
                    }
                return connected.flatMapThrowing { server in try way.join(client, server) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return DistantPath(listener, way)
    }

    private init(_ listener: any Channel, _ way: PathWay) {
        self.listener = listener
        self.way = way
        port = listener.localAddress?.port ?? 0
    }

    deinit {
        listener.close(promise: nil)
    }

    /// Gives the path this fault in place of the one that it has; `nil` ends it. Connections that are open follow.
    public func inject(_ fault: PathFault?) async { await way.inject(fault) }

    /// How many connections were made so far.
    public var connections: Int { way.connections }

    /// How many connections a ``PathFault/cut(afterBytes:_:)`` has ended so that bytes of the server were lost.
    public var lostAnswers: Int { way.lostAnswers }

    /// The rate of a TCP connection whose packets are lost now and then, in bytes per second, by the formula of Mathis, Semke, Mahdavi and Ott (1997):
    /// MSS / RTT × √(3/2) / √p, with a segment of 1,448 bytes. Reno keeps to it; CUBIC does at distances such as these (RFC 9438 §4.3).
    ///
    /// - Parameter loss: The share of packets that are lost, above 0.
    public static func rate(atLoss loss: Double, roundTrip: Duration) -> Int {
        Int(1_448 / (roundTrip / .seconds(1)) * (1.5 / loss).squareRoot())
    }
}
