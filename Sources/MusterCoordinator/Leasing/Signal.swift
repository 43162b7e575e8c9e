import MusterCore
import Synchronization

/// A doorbell with a note: many rings before the door is opened count as one, but no departure is forgotten.
final class Signal: Sendable {
    /// A sync whose client has gone.
    struct Departure: Sendable {
        let session: SessionID
        let sequence: Int64
    }

    private let departures = Mutex<[Departure]>([])
    private let (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// Rings.
    func raise() {
        continuation.yield()
    }

    /// Rings and says who has gone.
    func raise(leaving departure: Departure) {
        departures.withLock { $0.append(departure) }
        continuation.yield()
    }

    /// No more rings.
    func finish() {
        continuation.finish()
    }

    /// One element per opening of the door: everybody who has gone since the last one.
    var stream: some AsyncSequence<[Departure], Never> {
        rings.map { [self] in
            departures.withLock { gone in
                defer { gone.removeAll() }
                return gone
            }
        }
    }
}
