import Glibc

/// A clock that never jumps, and that goes on while the process is stopped and while the machine sleeps: one that stood still in a suspended machine
/// would let a worker trust a session that ended long ago. It measures waits; what is written is dated by the database (I11).
///
/// What is passed a clock can be tested with one whose hands the test holds.
public struct MonotonicClock: Sendable {
    /// Nanoseconds since some moment before the process began.
    public let now: @Sendable () -> Int64

    /// A clock that shows what `now` returns.
    public init(now: @escaping @Sendable () -> Int64) {
        self.now = now
    }

    /// The machine's own.
    public static let system = MonotonicClock { now() }

    /// What the machine's own shows.
    public static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Waits until the machine's own shows `moment`, or the task is cancelled.
    public static func sleep(until moment: Int64) async {
        let span = Duration.nanoseconds(max(0, moment - now()))
        try? await Task.sleep(for: span, tolerance: nil, clock: ContinuousClock())
    }
}
