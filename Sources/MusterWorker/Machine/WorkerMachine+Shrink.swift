import MusterAPI
import MusterCore

// A chunk whose holder is slow gives its tail to another worker. Once the new end is settled, nothing is written at or beyond it; only then is it reported.
// The reported end may lie beyond the one that was asked for, and is the old end when it is too late.
//
// If other sessions are refused the tail, it is given back, as long as the chunk has not reached its new end (adr/0037).
extension WorkerMachine {
    /// A coordinator asks that a chunk end sooner, or allows that it end later.
    mutating func shrink(_ wish: Shrink, _ now: Int64) {
        guard let lease = leases[wish.lease], lease.kind == .fetch else { return }
        guard wish.isFurther != true else { return lengthen(lease, wish, now) }
        switch lease.phase {
        // The connection is to be given up, so the queued lease is given back whole.
        case .queued(let document, _) where wish.end <= document.start: giveBackUntouched(wish.lease, now)
        // No job writes yet; the job will begin with the shorter chunk.
        case .queued(let document, _):
            if let end = ChunkBound(document).shrink(to: wish.end) { tellEnd(end, of: wish.lease, now) }
        case .running where wish.isUntouched == true: effects.append(.giveBackUntouched(wish.lease))
        case .running: effects.append(.shrink(wish.lease, end: wish.end))
        // All of its bytes are there.
        case .finishing: if let end = lease.end { tellEnd(end, of: wish.lease, now) }
        // The terminal report states how far the lease came.
        case .releasing, .aborting, .ended: break
        }
    }

    private mutating func lengthen(_ lease: HeldLease, _ wish: Shrink, _ now: Int64) {
        switch lease.phase {
        case .queued(let document, _):
            if let end = document.end, end < wish.end { tellEnd(wish.end, of: wish.lease, now) }
        case .running: effects.append(.lengthen(wish.lease, end: wish.end))
        // The terminal report states how far the lease came.
        case .finishing, .releasing, .aborting, .ended: break
        }
    }

    /// Reports the new end of a chunk.
    mutating func tellEnd(_ end: Int64, of name: LeaseName, speed: Int64? = nil, _ now: Int64) {
        leases.setEnd(of: name, to: end)
        ledger.add(Report(lease: name, kind: .shrunk, end: end, speed: speed), now: now)
    }
}
