import Glibc

/// A clock that never jumps, and that goes on while the process is stopped and while the machine sleeps. A clock that stood still in a
/// suspended machine would let a worker trust a session that ended long ago. It measures waits; the database dates what is stored (I11).
///
/// Code that gets its clock passed can be tested with a clock that the test controls. The simulation controls the time of all other code
/// by `current` (adr/0050).
public struct MonotonicClock: Sendable {
    /// Nanoseconds since a fixed moment before the process began.
    public let now: @Sendable () -> Int64
    /// Waits until the clock shows a moment; throws `CancellationError` as soon as the task is cancelled.
    private let wait: @Sendable (_ moment: Int64) async throws -> Void

    /// A clock that shows what `now` returns, whose waits take the machine's own time.
    public init(now: @escaping @Sendable () -> Int64) {
        self.init(now: now) { moment in
            let (rest, isPast) = moment.subtractingReportingOverflow(now())
            let span = Duration.nanoseconds(isPast ? 0 : max(0, rest))
            try await Task.sleep(for: span, tolerance: nil, clock: ContinuousClock())
        }
    }

    /// A clock with waits of its own.
    ///
    /// - Parameter wait: returns once the clock shows a moment; throws `CancellationError` as soon as the task is cancelled.
    public init(
        now: @escaping @Sendable () -> Int64, wait: @escaping @Sendable (_ moment: Int64) async throws -> Void
    ) {
        self.now = now
        self.wait = wait
    }

    /// The clock that a task and its child tasks use in place of the machine's own; `nil` outside of the simulation.
    @TaskLocal public static var current: MonotonicClock?

    private static let machine = MonotonicClock { machineTime() }

    /// The current clock, which is the machine's own outside of the simulation.
    public static let system = MonotonicClock(now: { now() }) { try await (current ?? machine).wait($0) }

    /// The time of the current clock.
    public static func now() -> Int64 { current.map { $0.now() } ?? machineTime() }

    private static func machineTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Waits until the current clock shows `moment`, or the task is cancelled.
    public static func sleep(until moment: Int64) async {
        try? await system.wait(moment)
    }

    /// Waits for a time of the current clock. Throws `CancellationError` as soon as the task is cancelled.
    public static func sleep(for span: Duration) async throws {
        try await SteadyClock().sleep(until: SteadyClock.Instant.now.advanced(by: span))
    }

    /// Waits until the clock shows `moment`. Throws `CancellationError` as soon as the task is cancelled.
    func sleep(to moment: Int64) async throws { try await wait(moment) }
}
