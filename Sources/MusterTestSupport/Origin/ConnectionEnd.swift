import Glibc
import NIOCore
import NIOPosix

/// Unexpected ends of a connection.
enum ConnectionEnd {
    /// Closes without TLS's closing alert (15), whether there is TLS or not.
    static func unclean(_ channel: any Channel) async throws {
        try await channel.eventLoop.flatSubmit { close(channel) }.get()
    }

    /// Closes with RST rather than FIN: no lingering, at zero seconds (socket(7)).
    static func reset(_ channel: any Channel) async throws {
        if let socket = channel as? any SocketOptionProvider {
            try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        }
        try await unclean(channel)
    }

    /// Closes at once, without waiting for the end.
    static func abort(_ channel: any Channel) {
        channel.eventLoop.execute { _ = close(channel) }
    }

    /// Closes below all handlers, so that neither TLS nor HTTP/2 sends anything.
    private static func close(_ channel: any Channel) -> EventLoopFuture<Void> {
        let closed = channel.eventLoop.makePromise(of: Void.self)
        do {
            try channel.pipeline.syncOperations.context(handlerType: Ground.self).close(mode: .all, promise: closed)
        } catch {
            // The pipeline is gone, and the connection with it.
            channel.close(mode: .all, promise: closed)
        }
        return closed.futureResult
    }

    /// The first handler of a pipeline, next to the socket. It does nothing, but a call on its context bypasses all other handlers.
    final class Ground: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
    }
}
