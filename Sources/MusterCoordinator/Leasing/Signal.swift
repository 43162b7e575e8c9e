import MusterCore
import Synchronization

/// The dispatcher's wake-up signal, with notes. Rings that come before the dispatcher looks count as one, but no departure
/// is lost.
final class Signal: Sendable {
    /// A sync whose client has gone.
    struct Departure: Sendable {
        let session: SessionID
        let sequence: Int64
    }

    /// What was noted since the dispatcher looked last.
    struct Notes: Sendable {
        /// Whether there may be something new to lease.
        var hasNews = false
        /// The syncs whose clients have gone.
        var departures: [Departure] = []
    }

    private let notes = Mutex(Notes())
    private let door = Doorbell()

    /// Wakes the dispatcher: a sync has come.
    func raise() {
        door.ring()
    }

    /// Wakes the dispatcher, and notes that there may be something new to lease.
    func raiseNews() {
        notes.withLock { $0.hasNews = true }
        door.ring()
    }

    /// Wakes the dispatcher, and notes that the client of a sync has gone.
    func raise(leaving departure: Departure) {
        notes.withLock { $0.departures.append(departure) }
        door.ring()
    }

    /// Ends `stream`.
    func finish() {
        door.finish()
    }

    /// One element for each time the dispatcher is woken.
    var stream: some AsyncSequence<Notes, Never> {
        door.rings.map { [self] in
            notes.withLock { notes in
                defer { notes = Notes() }
                return notes
            }
        }
    }
}
