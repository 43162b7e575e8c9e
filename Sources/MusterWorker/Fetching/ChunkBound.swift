import MusterAPI
import MusterCore
import MusterSystem
import Synchronization

/// Where a chunk ends. While it is fetched, its end may be brought nearer, so that somebody else fetches the tail: once that is
/// agreed, nothing is written at or beyond the new end. What was given away may come back, as long as that end is not reached.
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
        /// Whether the request goes on beyond the end, and has to be cut there.
        var isShrunk: Bool
        /// When the first bytes came.
        var begun: Int64?
        /// Where the chunk was not to end before, when that was asked first.
        var kept: Int64?

        var isFull: Bool { isShrunk && end.map { claimed >= $0 } == true }
    }

    private let start: Int64
    /// What is answered as long as there is nothing to agree on.
    private let leasedEnd: Int64?
    /// Whether its request may be the only one that is served.
    private let mayBeOnly: Bool
    private let now: @Sendable () -> Int64
    private let state: Mutex<State>

    /// The bound of a lease. It can be brought nearer if the chunks of the task are planned: only then may others fetch the rest.
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

    /// Whether nothing has come, nor is known of the file.
    var isUntouched: Bool { state.withLock { $0.end == nil && $0.begun == nil } }

    /// The response taught that others may fetch the rest of the file, and that the chunk ends at `end`.
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
    /// An end as it was before says that it is too late, or that the chunk can't be divided.
    func shrink(to wanted: Int64) -> Int64? {
        state.withLock { state in
            guard let end = state.end else { return leasedEnd }
            // One that is to end wherever it is makes room for something more urgent.
            if wanted > start, state.kept == nil { state.kept = state.claimed + bytesToKeep(state) }
            let possible = max(wanted, state.claimed, wanted > start ? state.kept ?? 0 : 0, start + 1)
            guard possible < end else { return end }
            state.end = possible
            state.isShrunk = true
            return possible
        }
    }
    /// Until it is known whether others are served the rest, a request that may be the only one goes on. Bytes of one that is fast are not worth that.
    private func bytesToKeep(_ state: State) -> Int64 {
        guard mayBeOnly, let speed = speed(state), speed < Self.fast else { return 0 }
        return speed * Self.secondsToKeep
    }

    /// How many bytes have come in a second, on average; `nil` when none have.
    var speed: Int64? { state.withLock { speed($0) } }

    private func speed(_ state: State) -> Int64? {
        guard let begun = state.begun else { return nil }
        return Int64(Double(state.claimed - start) / (Double(max(1, now() - begun)) / 1e9))
    }

    /// The patience with the first request for what was given away, the time in which it has to show its pace (`FetchPlan`), and some for the news of it.
    private static let secondsToKeep: Int64 = 10
    /// In bytes per second; `request_beside` has the same.
    private static let fast: Int64 = 1_048_576

    /// Takes back what was given away before `wanted`. Returns where the end is now; `nil` if the chunk has come to its end, or gave nothing away.
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
