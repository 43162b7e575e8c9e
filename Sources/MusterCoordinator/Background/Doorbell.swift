/// A wake-up signal with a single consumer. Rings that come before the consumer looks count as one ring.
final class Doorbell: Sendable {
    /// One element for each time the consumer is woken. Ends with `finish`.
    let rings: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Wakes the consumer.
    func ring() { continuation.yield() }

    /// Ends `rings`.
    func finish() { continuation.finish() }
}
