import MusterCore
import MusterSystem
import Synchronization

/// How fast a check reads a sink: slowly while the worker fetches, so that no fetch waits for it (adr/0048), and never so
/// fast that other programs do.
final class CheckPace: Sendable {
    private struct State {
        /// When body bytes last came in; `nil` before the first.
        var fetchedAt: Int64?
        /// When what was taken so far is paid for.
        var paidAt: Int64 = .min
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> Int64

    /// A pace by a clock that shows nanoseconds and never jumps.
    init(now: @escaping @Sendable () -> Int64 = MonotonicClock.now) {
        self.now = now
    }

    /// Notes that body bytes came in.
    func noteTraffic() {
        state.withLock { $0.fetchedAt = now() }
    }

    /// Takes bytes that are about to be read. Returns how long to wait before that, in nanoseconds: time in which nothing was
    /// read is not made up for.
    func take(_ bytes: Int64) -> Int64 {
        state.withLock { state in
            let now = now()
            let isFetching = state.fetchedAt.map { now - $0 < Limits.checkCalm.wholeNanoseconds } ?? false
            let rate = (isFetching ? Limits.checkReadBeside : Limits.checkRead).bytes
            let begin = max(now, state.paidAt)
            state.paidAt = begin + bytes * 1_000_000_000 / rate
            return begin - now
        }
    }
}
