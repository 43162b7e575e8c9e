import MusterCore
import Synchronization

/// The sessions that are asked to shrink chunks, as far as is known here: a hint, so that the syncs of all others need not ask the
/// database.
final class AskedSessions: Sendable {
    /// Whether each of them has been told by this coordinator.
    private let sessions = Mutex<[SessionID: Bool]>([:])

    /// Whether there may be something to tell a session.
    func contains(_ session: SessionID) -> Bool { sessions.withLock { $0[session] != nil } }

    /// Whether a session should not wait for work before it is told. Once it was, it may answer when it likes: one that never does,
    /// since its program is too old, must not poll in a circle.
    func isUrgent(_ session: SessionID) -> Bool { sessions.withLock { $0[session] == false } }

    /// These are asked something more.
    func add(_ more: [SessionID]) {
        sessions.withLock { known in
            for session in more { known[session] = false }
        }
    }

    /// These are asked, and no others. Returns those that have not been told.
    func replace(with all: Set<SessionID>) -> Set<SessionID> {
        sessions.withLock { known in
            known = Dictionary(uniqueKeysWithValues: all.map { ($0, known[$0] ?? false) })
            return all.filter { known[$0] == false }
        }
    }

    /// A session is told in the answer that is made now, or there was nothing to tell it.
    func settle(_ session: SessionID, isAsked: Bool) {
        sessions.withLock { $0[session] = isAsked ? true : nil }
    }
}
