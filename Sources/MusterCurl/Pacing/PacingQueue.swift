/// The transfers of one loop that wait for a budget, in the order in which they began to wait. Belongs to the loop's thread.
///
/// A transfer that goes on takes what the budget has, and waits behind the others when nothing is left: transfers take turns.
final class PacingQueue {
    /// The longest wait without a look, in nanoseconds: a rate may be raised or lifted meanwhile.
    static let longestWaitNanoseconds: UInt64 = 250_000_000

    private struct Entry {
        let id: TransferID
        /// When to look again, in monotonic nanoseconds.
        var due: UInt64
    }

    private var entries: [Entry] = []
    /// When the first of them is due; the largest number when none waits.
    private(set) var earliest = UInt64.max

    /// Queues a transfer for `wait` nanoseconds, `nil` for an unknown time.
    func add(_ id: TransferID, wait: UInt64?, at now: UInt64) {
        append(Entry(id: id, due: Self.due(after: wait, at: now)))
    }

    /// Looks at every transfer that is due, in order.
    ///
    /// - Parameter goOn: lets a transfer go on if its budgets allow it, which may add it anew; returns how long it still
    ///   has to wait (`nil` for an unknown time), or 0 when it leaves this queue.
    func visit(at now: UInt64, _ goOn: (TransferID) -> UInt64?) {
        guard now >= earliest else { return }
        let before = entries
        entries = []
        earliest = .max
        var waiting: [Entry] = []
        for var entry in before {
            if entry.due <= now {
                let wait = goOn(entry.id)
                if wait == 0 { continue }
                entry.due = Self.due(after: wait, at: now)
            }
            waiting.append(entry)
        }
        let anew = entries
        entries = []
        earliest = .max
        for entry in waiting + anew { append(entry) }
    }

    private func append(_ entry: Entry) {
        entries.append(entry)
        earliest = min(earliest, entry.due)
    }

    private static func due(after wait: UInt64?, at now: UInt64) -> UInt64 {
        now &+ min(wait ?? longestWaitNanoseconds, longestWaitNanoseconds)
    }
}
