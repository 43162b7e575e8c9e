import MusterCore
import MusterCurl
import MusterSystem
import Synchronization

/// How the engine reaches a running job from outside.
final class LeaseControl: Sendable {
    /// What is wanted of the job. It only ever becomes more urgent.
    enum Wish: UInt8, Sendable, Comparable, AtomicRepresentable {
        /// Do the work. Exits: `release`, `abort`.
        case work
        /// Make durable what there is and give the lease back. Exits: `abort`.
        case release
        /// Write nothing more and end: the lease is somebody else's.
        case abort

        static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// What the job waits for.
    private enum Awaited {
        /// The end of a transfer.
        case transfer(TransferID, CurlLoop)
        /// That another job rings.
        case bell(Bell)
    }

    /// Where the chunk ends.
    let bound: ChunkBound
    /// The number of its lane among those of the worker, if it has one.
    let seat: Int?
    private let current = Atomic<Wish>(.work)
    private struct State {
        var awaited: Awaited?
        /// Whether writing was allowed again while no transfer was known that may have paused.
        var goesOn = false
    }

    private let state = Mutex(State())

    /// The control of a job whose chunk ends where `bound` says; one that stays where it is when absent.
    init(_ bound: ChunkBound = ChunkBound(), seat: Int? = nil) {
        self.bound = bound
        self.seat = seat
    }

    /// What is wanted now; cheap enough to be asked before every write.
    var wish: Wish { current.load(ordering: .acquiring) }

    /// Tells the job what is wanted. A transfer that is under way is cut either way, and a wait is over.
    func ask(_ wish: Wish) {
        var known = self.wish
        while known < wish {
            let result = current.compareExchange(expected: known, desired: wish, ordering: .acquiringAndReleasing)
            if result.exchanged { break }
            known = result.original
        }
        cut()
    }

    /// Brings the end of the chunk as near to `wanted` as it can be, and returns where it is now (see ``ChunkBound/shrink(to:)``).
    func shrink(to wanted: Int64) -> Int64? {
        let end = bound.shrink(to: wanted)
        // There is nothing to wait for, and the origin may be silent.
        if bound.isFull { cut() }
        return end
    }

    /// Gives the lease back if nothing has come of it, nor is known of its file.
    func releaseIfUntouched() {
        if bound.isUntouched { ask(.release) }
    }

    private func cut() {
        switch state.withLock(\.awaited) {
        case .transfer(let id, let loop)?: loop.cancel(id)
        case .bell(let bell)?: bell.ring()
        case nil: break
        }
    }

    /// Notes the transfer that is under way; one that is not wanted any more is cut at once. It may have begun, and paused, and been told to go on
    /// before it is noted.
    func attach(_ id: TransferID, on loop: CurlLoop) {
        let goesOn = state.withLock { state in
            state.awaited = .transfer(id, loop)
            defer { state.goesOn = false }
            return state.goesOn
        }
        if wish != .work || bound.isFull {
            loop.cancel(id)
        } else if goesOn {
            loop.resume(id)
        }
    }

    /// No socket could be opened, which says nothing of the origin: the job's place stays taken for a second, so that the worker asks for less and
    /// others come to their end, and then the lease goes back untouched.
    func awaitSockets() async {
        guard wish == .work else { return }
        await MonotonicClock.sleep(until: MonotonicClock.now() + 1_000_000_000)
    }

    /// The transfer is over.
    func detach() {
        state.withLock { $0.awaited = nil }
    }

    /// Waits until others have rung a bell more often than `rings`, or `limit` is over. Returns whether to look again: the work is wanted still.
    func wait(at bell: Bell, since rings: Int, limit: Duration? = nil) async -> Bool {
        state.withLock { $0.awaited = .bell(bell) }
        defer { detach() }
        guard wish == .work else { return false }
        if let limit {
            await bell.wait(since: rings, limit: limit, clock: .continuous)
        } else {
            await bell.wait(since: rings)
        }
        return wish == .work && !Task.isCancelled
    }

    /// Goes on with a transfer that was paused, also with one that is about to be noted.
    func resumeTransfer() {
        let paused = state.withLock { state -> (TransferID, CurlLoop)? in
            if case .transfer(let id, let loop)? = state.awaited { return (id, loop) }
            state.goesOn = true
            return nil
        }
        if let (id, loop) = paused { loop.resume(id) }
    }
}
