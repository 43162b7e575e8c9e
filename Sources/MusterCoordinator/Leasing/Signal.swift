import MusterCore
import Synchronization

/// The doorbell of the dispatcher, with notes: many rings before the door is opened count as one, but no departure is forgotten.
final class Signal: Sendable {
    /// A sync whose client has gone.
    struct Departure: Sendable {
        let session: SessionID
        let sequence: Int64
    }

    /// What was left at the door since it was opened last.
    struct Notes: Sendable {
        /// Whether there may be something new to lease.
        var hasNews = false
        /// The syncs whose clients have gone.
        var departures: [Departure] = []
    }

    private let notes = Mutex(Notes())
    private let door = Doorbell()

    /// Rings: somebody has come.
    func raise() {
        door.ring()
    }

    /// Rings and says that there may be something new to lease.
    func raiseNews() {
        notes.withLock { $0.hasNews = true }
        door.ring()
    }

    /// Rings and says who has gone.
    func raise(leaving departure: Departure) {
        notes.withLock { $0.departures.append(departure) }
        door.ring()
    }

    /// No more rings.
    func finish() {
        door.finish()
    }

    /// One element per opening of the door.
    var stream: some AsyncSequence<Notes, Never> {
        door.rings.map { [self] in
            notes.withLock { notes in
                defer { notes = Notes() }
                return notes
            }
        }
    }
}
