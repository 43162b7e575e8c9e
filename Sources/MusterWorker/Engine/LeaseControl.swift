import MusterCore
import MusterCurl
import MusterSystem
import Synchronization

/// The engine's handle on a running job.
final class LeaseControl: Sendable {
    /// What the engine wants of the job. It only ever becomes more urgent.
    enum Wish: UInt8, Sendable, Comparable, AtomicRepresentable {
        /// Do the work. Exits: `release`, `abort`.
        case work
        /// Make the received bytes durable and give the lease back. Exits: `abort`.
        case release
        /// Write nothing more and end: another session may hold the lease.
        case abort

        static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// What the job waits for.
    private enum Awaited {
        /// The end of a transfer.
        case transfer(TransferID, any TransferLoop)
        /// A ring by another job.
        case bell(Bell)
    }

    /// Where the chunk ends.
    let bound: ChunkBound
    /// The number of the job's lane among those of the worker; `nil` if it has none.
    let seat: Int?
    private let current = Atomic<Wish>(.work)
    private struct State {
        var awaited: Awaited?
        /// Whether writing was allowed again while no transfer was attached. The next one attached may have paused before.
        var goesOn = false
    }

    private let state = Mutex(State())

    /// The control of a job whose chunk ends where `bound` says; the default is an end that never moves.
    init(_ bound: ChunkBound = ChunkBound(), seat: Int? = nil) {
        self.bound = bound
        self.seat = seat
    }

    /// What is wanted now; cheap enough to be asked before every write.
    var wish: Wish { current.load(ordering: .acquiring) }

    /// Tells the job what is wanted. Every wish cancels a running transfer and ends a wait.
    func ask(_ wish: Wish) {
        var known = self.wish
        while known < wish {
            let result = current.compareExchange(expected: known, desired: wish, ordering: .acquiringAndReleasing)
            if result.exchanged { break }
            known = result.original
        }
        cut()
    }

    /// Moves the end of the chunk as close to `wanted` as possible and returns the new end (see ``ChunkBound/shrink(to:)``).
    func shrink(to wanted: Int64) -> Int64? {
        let end = bound.shrink(to: wanted)
        // The chunk is complete: there is nothing to wait for, and the origin may be silent.
        if bound.isFull { cut() }
        return end
    }

    /// Gives the lease back if no bytes have arrived and nothing is known of its file.
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

    /// Registers the running transfer, and cancels it if it is no longer wanted. The transfer may have started, paused,
    /// and been told to resume before this call.
    func attach(_ id: TransferID, on loop: any TransferLoop) {
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

    /// Keeps the job's place taken for one second after no socket could be opened, which is no fault of the origin.
    /// Meanwhile the worker asks for less work and other transfers end; then the lease goes back untouched.
    func awaitSockets() async {
        guard wish == .work else { return }
        await MonotonicClock.sleep(until: MonotonicClock.now() + 1_000_000_000)
    }

    /// Notes that the transfer or the wait is over.
    func detach() {
        state.withLock { $0.awaited = nil }
    }

    /// Waits until other jobs have rung `bell` more than `rings` times or `limit` has passed. Returns `true` if the work
    /// is still wanted, so that the caller looks again.
    func wait(at bell: Bell, since rings: Int, limit: Duration? = nil) async -> Bool {
        state.withLock { $0.awaited = .bell(bell) }
        defer { detach() }
        guard wish == .work else { return false }
        if let limit {
            await bell.wait(since: rings, limit: limit, clock: SteadyClock())
        } else {
            await bell.wait(since: rings)
        }
        return wish == .work && !Task.isCancelled
    }

    /// Resumes a paused transfer, including one that is about to be attached.
    func resumeTransfer() {
        let paused = state.withLock { state -> (TransferID, any TransferLoop)? in
            if case .transfer(let id, let loop)? = state.awaited { return (id, loop) }
            state.goesOn = true
            return nil
        }
        if let (id, loop) = paused { loop.resume(id) }
    }
}
