import NIOCore

/// One direction of a connection: passes bytes on with the delay of its path, and as the path's fault wants it.
final class DelayLine: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer

    /// The most bytes under way, besides those that the rate and the delay need; beyond them nothing is read.
    static let room = 256 << 10

    private let own: any Channel
    private let other: any Channel
    private let way: PathWay
    private let direction: PathFault.Direction
    private let most: Int
    /// When the next bytes can leave.
    private var free: NIODeadline
    /// When the last bytes arrive: none overtake them, also when a delay ends.
    private var due: NIODeadline
    private var underWay = 0
    private var isHeld = false
    /// Bytes that a fault keeps from going on.
    private var kept: [ByteBuffer] = []
    private var hasEnded = false
    /// The bytes that were passed on since the fault of this number has begun.
    private var counted = (fault: 0, bytes: 0)

    init(
        from own: any Channel, to other: any Channel, _ way: PathWay, _ direction: PathFault.Direction,
        begin: NIODeadline
    ) {
        self.own = own
        self.other = other
        self.way = way
        self.direction = direction
        free = begin
        due = begin
        most = Self.room + Int(Double(way.bytesPerSecond ?? 0) * Double(way.delay.nanoseconds) / 1e9)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        underWay += bytes.readableBytes
        kept.append(bytes)
        passOn()
    }

    func read(context: ChannelHandlerContext) {
        if underWay < most { context.read() } else { isHeld = true }
    }

    func channelInactive(context: ChannelHandlerContext) {
        hasEnded = true
        passOn()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    /// Passes on what the present fault lets go. To be called on the event loop of the connection.
    func passOn() {
        let present = way.present
        if present.fault?.holds(direction) == true { return }
        let pieces = kept
        kept = []
        for piece in pieces { pass(piece, present) }
        guard hasEnded else { return }
        later { line in
            line.other.close(promise: nil)
            line.way.forget(line)
        }
    }

    private func pass(_ bytes: ByteBuffer, _ present: PathWay.Present) {
        let rate = way.bytesPerSecond
        switch present.fault {
        case nil, .hang, .partition, .reset: send(bytes, rate: rate)
        case .latency(let delay): send(bytes, rate: rate, after: .nanoseconds(Int64(delay / .nanoseconds(1))))
        case .bandwidth(let most): send(bytes, rate: min(most, rate ?? most))
        case .slices(let size):
            var rest = bytes
            while rest.readableBytes > 0, let slice = rest.readSlice(length: max(1, min(size, rest.readableBytes))) {
                send(slice, rate: rate, apart: .milliseconds(1))
            }
        case .cut(let most, direction): send(bytes, cutAfter: most, present.number)
        case .cut: send(bytes, rate: rate)
        }
    }

    /// Passes on as many bytes as may pass, and ends the connection behind them.
    private func send(_ bytes: ByteBuffer, cutAfter most: Int, _ fault: Int) {
        if counted.fault != fault { counted = (fault, 0) }
        let left = max(0, most - counted.bytes)
        let isFirst = counted.bytes <= most
        counted.bytes += bytes.readableBytes
        guard bytes.readableBytes > left else { return send(bytes, rate: way.bytesPerSecond) }
        if isFirst, direction == .toClient { way.noteLostAnswer() }
        if let part = bytes.getSlice(at: bytes.readerIndex, length: left), left > 0 {
            send(part, rate: way.bytesPerSecond)
        }
        later { line in
            line.other.close(promise: nil)
            line.own.close(promise: nil)
        }
    }

    private func send(
        _ bytes: ByteBuffer, rate: Int?, after delay: TimeAmount = .zero, apart: TimeAmount = .zero
    ) {
        let count = bytes.readableBytes
        free = max(free, .now())
        if let rate { free = free + .nanoseconds(Int64(count) * 1_000_000_000 / Int64(rate)) }
        later(by: delay, apart: apart) { line in
            let written = line.other.writeAndFlush(bytes).hop(to: line.own.eventLoop)
            written.assumeIsolated().whenComplete { _ in line.hasPassed(count) }
        }
    }

    private func hasPassed(_ count: Int) {
        underWay -= count
        if isHeld, underWay < most {
            isHeld = false
            own.read()
        }
    }

    /// Does something behind everything that was passed on so far.
    private func later(
        by delay: TimeAmount = .zero, apart: TimeAmount = .zero, _ body: @escaping (DelayLine) -> Void
    ) {
        due = max(due + max(apart, .nanoseconds(1)), max(free, .now()) + way.delay + delay)
        own.eventLoop.assumeIsolated().scheduleTask(deadline: due) { body(self) }
    }
}
