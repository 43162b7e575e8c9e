import NIOCore
import NIOHTTPTypes

/// Closes a connection whose peer keeps the coordinator waiting for too long, or whose place a new connection needs. Runs
/// on the connection's own event loop.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let table: ConnectionTable
    private let limits: ConnectionLimits
    private var patience: ConnectionPatience
    /// Whether the coordinator has asked for more bytes than it has received.
    private var wantsBytes = false
    private var alarm: Scheduled<Void>?
    private var alarmTime: NIODeadline?
    private var stuck: Scheduled<Void>?

    init(table: ConnectionTable, limits: ConnectionLimits) {
        self.table = table
        self.limits = limits
        patience = ConnectionPatience(limits, now: .now())
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let table = table
        let channel = context.channel
        guard table.enter(channel, now: .now()) else {
            // Close after the other handlers of the pipeline have been added.
            return context.eventLoop.execute { channel.close(promise: nil) }
        }
        // Called however the connection is closed, and even if this handler has been removed.
        channel.closeFuture.whenComplete { _ in table.leave(channel) }
        watch(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        alarm?.cancel()
        stuck?.cancel()
    }

    func read(context: ChannelHandlerContext) {
        wantsBytes = true
        context.read()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        wantsBytes = false
        context.fireChannelReadComplete()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            patience.receivedHead(now: .now())
            note(context)
        case .body(let buffer): patience.receivedBody(bytes: buffer.readableBytes)
        case .end:
            patience.receivedEnd(now: .now())
            note(context)
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .end = unwrapOutboundIn(data) {
            patience.answered(now: .now())
            note(context)
        }
        context.write(data, promise: promise)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.outputClosed) = event as? ChannelEvent {
            patience.hungUp(now: .now())
            note(context)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        stuck?.cancel()
        stuck = nil
        if !context.channel.isWritable {
            let channel = context.channel
            // Close the connection of a peer that does not read its answer.
            stuck = context.eventLoop.scheduleTask(in: limits.bodyWindow) { channel.close(promise: nil) }
        }
        context.fireChannelWritabilityChanged()
    }

    private func note(_ context: ChannelHandlerContext) {
        table.note(context.channel, waitingSince: patience.waitingSince, isIdle: patience.isIdle)
        watch(context)
    }

    /// Schedules a check at the deadline. If the deadline has moved later by then, the check schedules the next one.
    private func watch(_ context: ChannelHandlerContext) {
        guard let deadline = patience.deadline else { return }
        if let alarmTime, alarmTime <= deadline { return }
        alarm?.cancel()
        alarmTime = deadline
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        alarm = context.eventLoop.scheduleTask(deadline: deadline) {
            let (handler, context) = bound.value
            handler.alarmTime = nil
            if handler.patience.isOver(now: .now(), wantsBytes: handler.wantsBytes) {
                context.close(promise: nil)
            } else {
                handler.note(context)
            }
        }
    }
}
