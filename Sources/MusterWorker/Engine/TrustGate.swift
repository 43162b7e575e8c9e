import MusterSystem
import Synchronization

/// Whether writing is allowed right now. Read directly before each write and each rename, on any thread, without a lock:
/// a process that was stopped for an hour and goes on between two instructions must not begin a write (F2).
final class TrustGate: Sendable {
    private let end = Atomic<Int64>(.min)
    /// Whether a job holds bytes back because the gate was closed.
    private let hasDeferred = Atomic<Bool>(false)
    private let clock: @Sendable () -> Int64

    /// How often `opened` looks again for a renewal. Outages are rare and long, so a short extra pause does no harm, and
    /// polling can't miss a wake-up.
    private static let pause: Duration = .milliseconds(100)

    /// A closed gate.
    init(clock: @escaping @Sendable () -> Int64) {
        self.clock = clock
    }

    /// Whether a write may begin.
    var isOpen: Bool { clock() < end.load(ordering: .sequentiallyConsistent) }

    /// Opens the gate until a moment of the clock. Returns whether transfers that hold bytes back have to be resumed.
    func open(until moment: Int64) -> Bool {
        end.store(moment, ordering: .sequentiallyConsistent)
        return clock() < moment && hasDeferred.exchange(false, ordering: .sequentiallyConsistent)
    }

    /// Called by a job that is about to hold bytes back. If it returns `true`, the gate was opened at this very moment
    /// and the write may begin.
    func deferring() -> Bool {
        hasDeferred.store(true, ordering: .sequentiallyConsistent)
        return isOpen
    }

    /// Waits until the gate is open or `stopped` returns `true`. Returns whether the gate is open and the work is still wanted.
    func opened(unless stopped: () -> Bool) async -> Bool {
        while !isOpen {
            if stopped() || Task.isCancelled { return false }
            try? await MonotonicClock.sleep(for: Self.pause)
        }
        return !stopped()
    }
}
