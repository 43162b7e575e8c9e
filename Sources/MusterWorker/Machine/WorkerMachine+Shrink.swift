import MusterAPI
import MusterCore

// A chunk whose holder is slow gives its tail to others. From the moment at which the new end is settled, nothing is written at or
// beyond it; only then is it reported. The answer may be later than what was asked for, and is the old end when it is too late.
extension WorkerMachine {
    /// A coordinator asks that a chunk end sooner.
    mutating func shrink(_ wish: Shrink, _ now: Int64) {
        guard let lease = leases[wish.lease], lease.kind == .fetch else { return }
        switch lease.phase {
        // What waits is of no use to a connection that is to be given up.
        case .queued(let document, _) where wish.end <= document.start: giveBackUntouched(wish.lease, now)
        // No job writes yet, and the one that will begins with the shorter chunk.
        case .queued(let document, _):
            if let end = ChunkBound(document).shrink(to: wish.end) { tellEnd(end, of: wish.lease, now) }
        case .running: effects.append(.shrink(wish.lease, end: wish.end))
        // All of its bytes are there.
        case .finishing: if let end = lease.end { tellEnd(end, of: wish.lease, now) }
        // The report that ends it says how far it came.
        case .releasing, .aborting, .ended: break
        }
    }

    /// Reports where a chunk ends by now.
    mutating func tellEnd(_ end: Int64, of name: LeaseName, _ now: Int64) {
        leases.shorten(name, to: end)
        ledger.add(Report(lease: name, kind: .shrunk, end: end), now: now)
    }
}
