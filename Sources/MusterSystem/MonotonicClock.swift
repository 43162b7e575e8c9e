import Glibc

/// A clock that never jumps, and that goes on while the process is stopped and while the machine sleeps. A clock that stood still in a
/// suspended machine would let a worker trust a session that ended long ago. It measures waits; the database dates what is stored (I11).
///
/// Code that gets its clock passed can be tested with a clock that the test controls.
public struct MonotonicClock: Sendable {
    /// Nanoseconds since a fixed moment before the process began.
    public let now: @Sendable () -> Int64

    /// A clock that shows what `now` returns.
    public init(now: @escaping @Sendable () -> Int64) {
        self.now = now
    }

    /// The machine's own clock.
    public static let system = MonotonicClock { now() }

    /// The time of the machine's own clock.
    public static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Waits until the machine's own clock shows `moment`, or the task is cancelled.
    public static func sleep(until moment: Int64) async {
        let span = Duration.nanoseconds(max(0, moment - now()))
        try? await Task.sleep(for: span, tolerance: nil, clock: ContinuousClock())
    }
}
