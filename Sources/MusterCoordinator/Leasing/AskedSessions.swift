import MusterCore
import Synchronization

/// The sessions that, as far as this coordinator knows, are asked to shrink chunks. It is a hint, so that the syncs of all
/// other sessions need not ask the database.
final class AskedSessions: Sendable {
    /// Whether each of them has been told by this coordinator.
    private let sessions = Mutex<[SessionID: Bool]>([:])

    /// Whether there may be something to tell a session.
    func contains(_ session: SessionID) -> Bool { sessions.withLock { $0[session] != nil } }

    /// Whether a session must be told before it waits for work. A session that was told may answer at any time. A worker
    /// whose program is too old never answers, and must not poll in a loop.
    func isUrgent(_ session: SessionID) -> Bool { sessions.withLock { $0[session] == false } }

    /// Adds sessions that are asked something more.
    func add(_ more: [SessionID]) {
        sessions.withLock { known in
            for session in more { known[session] = false }
        }
    }

    /// Replaces the asked sessions. Returns those that have not been told.
    func replace(with all: Set<SessionID>) -> Set<SessionID> {
        sessions.withLock { known in
            known = Dictionary(uniqueKeysWithValues: all.map { ($0, known[$0] ?? false) })
            return all.filter { known[$0] == false }
        }
    }

    /// Notes that the current answer tells a session, or that there was nothing to tell it.
    func settle(_ session: SessionID, isAsked: Bool) {
        sessions.withLock { $0[session] = isAsked ? true : nil }
    }
}
