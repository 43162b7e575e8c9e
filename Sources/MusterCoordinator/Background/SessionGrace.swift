import Synchronization

/// Whether sessions are owed another time to live: nobody swept before this coordinator started, or while the database was away,
/// and workers could not renew what ran out meanwhile.
final class SessionGrace: Sendable {
    private struct Outages {
        /// The start counts as one.
        var seen = 1
        var settled = 0
    }

    private let outages = Mutex(Outages())

    /// The database is away.
    func notice() {
        outages.withLock { $0.seen += 1 }
    }

    /// Has grace given by `give`, as long as some is owed; it is told whether the outage is the start. Throws what that throws,
    /// and the grace stays owed.
    func settle(_ give: (_ isStart: Bool) async throws -> Void) async throws {
        while true {
            let now = outages.withLock { $0 }
            guard now.settled < now.seen else { return }
            try await give(now.settled == 0)
            outages.withLock { $0.settled = max($0.settled, now.seen) }
        }
    }
}
