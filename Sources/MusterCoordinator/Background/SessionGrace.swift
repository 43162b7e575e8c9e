import Synchronization

/// Tracks whether expired sessions must get another time to live. Before this coordinator started, and while the database
/// was unreachable, no coordinator swept sessions and workers could not renew theirs.
final class SessionGrace: Sendable {
    private struct Outages {
        /// The start counts as an outage.
        var seen = 1
        var settled = 0
    }

    private let outages = Mutex(Outages())

    /// Notes that the database is unreachable.
    func notice() {
        outages.withLock { $0.seen += 1 }
    }

    /// Calls `give` as long as grace is owed, and tells it whether the outage is the start. Rethrows the errors of `give`;
    /// the grace stays owed then.
    func settle(_ give: (_ isStart: Bool) async throws -> Void) async throws {
        while true {
            let now = outages.withLock { $0 }
            guard now.settled < now.seen else { return }
            try await give(now.settled == 0)
            outages.withLock { $0.settled = max($0.settled, now.seen) }
        }
    }
}
