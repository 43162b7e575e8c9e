import NIOCore

/// A channel on its way to the task that serves it.
///
/// NIO stops the process when an async channel that was never served is released. This may happen to a connection that
/// comes in while its server stops, so this class ends the channel.
final class HeldChannel<Inbound: Sendable, Outbound: Sendable>: Sendable {
    /// The channel; served at most once.
    let connection: NIOAsyncChannel<Inbound, Outbound>

    /// Takes over a channel, on its event loop.
    init(wrapping channel: any Channel) throws {
        connection = try NIOAsyncChannel(wrappingChannelSynchronously: channel)
    }

    deinit { connection.endWriting() }
}

/// The writer of an async channel. NIO wants only the task that serves the channel to use it; here there is no such task.
private protocol HasWriter {
    associatedtype Written: Sendable
    var outbound: NIOAsyncChannelOutboundWriter<Written> { get }
}

extension HasWriter {
    fileprivate func endWriting() { outbound.finish() }
}

extension NIOAsyncChannel: HasWriter {}
