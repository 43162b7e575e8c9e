/// A doorbell with one who answers it: many rings before the door is opened count as one.
final class Doorbell: Sendable {
    /// An element per opening of the door. Ends with `finish`.
    let rings: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Rings.
    func ring() { continuation.yield() }

    /// No more rings.
    func finish() { continuation.finish() }
}
