import MusterAPI
import MusterCore
import Synchronization

/// Where a chunk ends. While it is fetched, its end may be brought nearer, so that somebody else fetches the tail: once that is
/// agreed, nothing is written at or beyond the new end.
///
/// The writer claims the bytes before the kernel gets them, and an agreement never cuts off what was claimed: that makes it
/// safe at any moment, whichever thread comes first.
final class ChunkBound: Sendable {
    /// What may be written of a piece.
    struct Claim: Sendable, Hashable {
        /// How many bytes from its start.
        let count: Int
        /// Whether the chunk is complete with them, short of the end that it was leased with.
        let isLast: Bool
    }

    private struct State {
        /// The byte after the last, `nil` as long as it can't be brought nearer.
        var end: Int64?
        /// Everything before it is written, or about to be.
        var claimed: Int64
        var isShrunk = false

        var isFull: Bool { isShrunk && end.map { claimed >= $0 } == true }
    }

    private let start: Int64
    /// What is answered as long as there is nothing to agree on.
    private let leasedEnd: Int64?
    private let state: Mutex<State>

    /// The bound of a lease. It can be brought nearer if the chunks of the task are planned: only then may others fetch the rest.
    init(_ lease: LeaseDocument) {
        let isDivisible = lease.kind == .fetch && lease.planned && lease.rung == .chunks
        start = lease.start
        leasedEnd = lease.kind == .fetch && lease.asksForAll != true ? lease.end : nil
        state = Mutex(
            State(end: isDivisible ? lease.end : nil, claimed: max(lease.start, lease.resume.offset))
        )
    }

    /// A bound that stays where it is.
    init() {
        start = 0
        leasedEnd = nil
        state = Mutex(State(end: nil, claimed: 0))
    }

    /// The end that was agreed on, `nil` if it is the one of the lease.
    var agreedEnd: Int64? { state.withLock { $0.isShrunk ? $0.end : nil } }
    /// Whether everything up to an agreed end is written, or about to be.
    var isFull: Bool { state.withLock { $0.isFull } }

    /// The response taught that others may fetch the rest of the file, and that the chunk ends at `end`.
    func divide(at end: Int64) {
        state.withLock { state in
            if state.end == nil { state.end = end }
        }
    }

    /// To be called before `count` bytes are written at `offset`.
    func claim(_ count: Int, at offset: Int64) -> Claim {
        state.withLock { state in
            var allowed = Int64(count)
            if state.isShrunk, let end = state.end { allowed = max(0, min(allowed, end - offset)) }
            state.claimed = max(state.claimed, offset + allowed)
            return Claim(
                count: Int(allowed), isLast: state.isShrunk && state.end.map { offset + allowed >= $0 } == true)
        }
    }

    /// Brings the end as near to `wanted` as it can be, and returns where it is now; `nil` if there is none.
    ///
    /// An end as it was before says that it is too late, or that the chunk can't be divided.
    func shrink(to wanted: Int64) -> Int64? {
        state.withLock { state in
            guard let end = state.end else { return leasedEnd }
            let possible = max(wanted, state.claimed, start + 1)
            guard possible < end else { return end }
            state.end = possible
            state.isShrunk = true
            return possible
        }
    }
}
