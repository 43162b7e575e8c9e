import MusterAPI
import MusterCore

// A chunk whose holder is slow gives its tail to others. From the moment at which the new end is settled, nothing is written at or
// beyond it; only then is it reported. The answer may be later than what was asked for, and is the old end when it is too late.
//
// What others are refused of such a tail is given back, as long as the chunk has not come to its new end (adr/0037).
extension WorkerMachine {
    /// A coordinator asks that a chunk end sooner, or allows that it end later.
    mutating func shrink(_ wish: Shrink, _ now: Int64) {
        guard let lease = leases[wish.lease], lease.kind == .fetch else { return }
        guard wish.isFurther != true else { return lengthen(lease, wish, now) }
        switch lease.phase {
        // What waits is of no use to a connection that is to be given up.
        case .queued(let document, _) where wish.end <= document.start: giveBackUntouched(wish.lease, now)
        // No job writes yet, and the one that will begins with the shorter chunk.
        case .queued(let document, _):
            if let end = ChunkBound(document).shrink(to: wish.end) { tellEnd(end, of: wish.lease, now) }
        case .running where wish.isUntouched == true: effects.append(.giveBackUntouched(wish.lease))
        case .running: effects.append(.shrink(wish.lease, end: wish.end))
        // All of its bytes are there.
        case .finishing: if let end = lease.end { tellEnd(end, of: wish.lease, now) }
        // The report that ends it says how far it came.
        case .releasing, .aborting, .ended: break
        }
    }

    private mutating func lengthen(_ lease: HeldLease, _ wish: Shrink, _ now: Int64) {
        switch lease.phase {
        case .queued(let document, _):
            if let end = document.end, end < wish.end { tellEnd(wish.end, of: wish.lease, now) }
        case .running: effects.append(.lengthen(wish.lease, end: wish.end))
        // The report that ends it says how far it came.
        case .finishing, .releasing, .aborting, .ended: break
        }
    }

    /// Reports where a chunk ends by now.
    mutating func tellEnd(_ end: Int64, of name: LeaseName, speed: Int64? = nil, _ now: Int64) {
        leases.setEnd(of: name, to: end)
        ledger.add(Report(lease: name, kind: .shrunk, end: end, speed: speed), now: now)
    }
}
