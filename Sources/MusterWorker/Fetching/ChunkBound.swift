import MusterAPI
import MusterCore
import MusterSystem
import Synchronization

/// Where a chunk ends. While it is fetched, its end may be brought nearer, so that another worker fetches the tail: once that is agreed, nothing is written
/// at or beyond the new end. The cut-off tail may be given back, as long as that end is not reached.
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
        /// The byte after the last one; `nil` as long as the end can't be brought nearer.
        var end: Int64?
        /// Everything before it is written, or about to be.
        var claimed: Int64
        /// Whether the request goes on beyond the end, and has to be cut there.
        var isShrunk: Bool
        /// When the first bytes came.
        var begun: Int64?
        /// The least end that the first request to shrink allowed; later requests keep to it.
        var kept: Int64?

        var isFull: Bool { isShrunk && end.map { claimed >= $0 } == true }
    }

    private let start: Int64
    /// The answer to a request to shrink as long as the end can't be moved.
    private let leasedEnd: Int64?
    /// Whether its request may be the only one that the origin serves.
    private let mayBeOnly: Bool
    private let now: @Sendable () -> Int64
    private let state: Mutex<State>

    /// The bound of a lease. It can be brought nearer if the chunks of the task are planned: only then may other leases fetch the rest.
    init(_ lease: LeaseDocument, now: @escaping @Sendable () -> Int64 = MonotonicClock.now) {
        let isDivisible = lease.kind == .fetch && lease.planned && lease.rung == .chunks
        start = lease.start
        mayBeOnly = lease.asksForAll == true
        self.now = now
        leasedEnd = lease.kind == .fetch && lease.asksForAll != true ? lease.end : nil
        state = Mutex(
            State(
                end: isDivisible ? lease.end : nil, claimed: max(lease.start, lease.resume.offset),
                isShrunk: isDivisible && lease.isAskedBeyondEnd)
        )
    }

    /// A bound that stays where it is.
    init() {
        start = 0
        leasedEnd = nil
        mayBeOnly = false
        now = MonotonicClock.now
        state = Mutex(State(end: nil, claimed: 0, isShrunk: false))
    }

    /// The end that was agreed on, `nil` if it is the one of the request.
    var agreedEnd: Int64? { state.withLock { $0.isShrunk ? $0.end : nil } }
    /// Whether everything up to an agreed end is written, or about to be.
    var isFull: Bool { state.withLock { $0.isFull } }

    /// Whether no byte has come, and nothing is known of the file.
    var isUntouched: Bool { state.withLock { $0.end == nil && $0.begun == nil } }

    /// Makes the chunk divisible, with its end at `end`: the response showed that other leases may fetch the rest of the
    /// file.
    func divide(at end: Int64) {
        state.withLock { state in
            if state.end == nil { state.end = end }
        }
    }

    /// To be called before `count` bytes are written at `offset`.
    func claim(_ count: Int, at offset: Int64) -> Claim {
        state.withLock { state in
            if state.begun == nil { state.begun = now() }
            var allowed = Int64(count)
            if state.isShrunk, let end = state.end { allowed = max(0, min(allowed, end - offset)) }
            state.claimed = max(state.claimed, offset + allowed)
            return Claim(
                count: Int(allowed), isLast: state.isShrunk && state.end.map { offset + allowed >= $0 } == true)
        }
    }

    /// Brings the end as near to `wanted` as it can be, and returns where it is now; `nil` if there is none.
    ///
    /// An unchanged end means that it is too late, or that the chunk can't be divided.
    func shrink(to wanted: Int64) -> Int64? {
        state.withLock { state in
            guard let end = state.end else { return leasedEnd }
            // A request to shrink to the start makes room for more urgent work: the chunk ends wherever it is.
            if wanted > start, state.kept == nil { state.kept = state.claimed + bytesToKeep(state) }
            let possible = max(wanted, state.claimed, wanted > start ? state.kept ?? 0 : 0, start + 1)
            guard possible < end else { return end }
            state.end = possible
            state.isShrunk = true
            return possible
        }
    }
    /// The bytes that a request which may be the only one still gets, until it is known whether the origin serves the rest to another request. A fast request
    /// gets none: it would bring too many bytes in that time.
    private func bytesToKeep(_ state: State) -> Int64 {
        guard mayBeOnly, let speed = speed(state), speed < Self.fast else { return 0 }
        return speed * Self.secondsToKeep
    }

    /// The average bytes per second so far; `nil` when none have come.
    var speed: Int64? { state.withLock { speed($0) } }

    private func speed(_ state: State) -> Int64? {
        guard let begun = state.begun else { return nil }
        return Int64(Double(state.claimed - start) / (Double(max(1, now() - begun)) / 1e9))
    }

    /// Covers the patience with the first request for the cut-off tail, the time in which it has to show its pace (`FetchPlan`), and the delay of its report.
    private static let secondsToKeep: Int64 = 10
    /// The bytes per second from which a request counts as fast; `request_beside` has the same.
    private static let fast: Int64 = 1_048_576

    /// Takes back the cut-off tail up to `wanted`. Returns the new end; `nil` if the chunk has reached its end, or if nothing was cut off before `wanted`.
    func lengthen(to wanted: Int64) -> Int64? {
        state.withLock { state in
            guard state.isShrunk, !state.isFull, let end = state.end, wanted >= end else { return nil }
            state.end = wanted
            return wanted
        }
    }
}

extension LeaseDocument {
    /// Whether the first request is for more than the chunk.
    var isAskedBeyondEnd: Bool { if let reach, let end { reach > end } else { false } }
}
