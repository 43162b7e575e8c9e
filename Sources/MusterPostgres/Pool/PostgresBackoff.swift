/// How long to wait between attempts.
///
///     attempt n waits  min(cap, base × 2^(n−1)) × (1/2 + r/2),  r random in [0, 1)
///
/// With the default for connecting (base 100 ms, cap 5 s), that is at most:
///
/// | attempt | 1 | 2 | 3 | 4 | 5 | 6 | 7 and on |
/// | --- | --- | --- | --- | --- | --- | --- | --- |
/// | delay | 0.1 s | 0.2 s | 0.4 s | 0.8 s | 1.6 s | 3.2 s | 5 s |
public struct PostgresBackoff: Sendable, Hashable {
    /// The longest first delay.
    public var base: Duration
    /// The longest delay of all.
    public var cap: Duration

    /// A backoff from `base` to `cap`.
    public init(base: Duration, cap: Duration) {
        self.base = base
        self.cap = cap
    }

    /// For connecting.
    public static let connecting = PostgresBackoff(base: .milliseconds(100), cap: .seconds(5))
    /// For transactions that lost a conflict with another.
    public static let transactions = PostgresBackoff(base: .milliseconds(10), cap: .milliseconds(500))

    /// The delay before another try, after `failures` in a row (from 1).
    ///
    /// - Parameter random: In `0..<1`. Half of the delay is random, so that callers that failed together do not return together.
    public func delay(afterFailures failures: Int, random: Double) -> Duration {
        let doublings = min(max(failures - 1, 0), 30)
        let longest = min(cap, base * (1 << doublings))
        return longest * (0.5 + min(max(random, 0), 1) / 2)
    }
}

/// The clock and the random numbers of the pool and the listener. Tests give their own.
public struct PostgresTiming: Sendable {
    /// The current time.
    public var now: @Sendable () -> ContinuousClock.Instant
    /// Waits until then; throws `CancellationError` when the task is cancelled.
    public var sleep: @Sendable (_ until: ContinuousClock.Instant) async throws -> Void
    /// A number in `0..<1`.
    public var random: @Sendable () -> Double

    /// Makes a timing from its three functions.
    public init(
        now: @escaping @Sendable () -> ContinuousClock.Instant,
        sleep: @escaping @Sendable (_ until: ContinuousClock.Instant) async throws -> Void,
        random: @escaping @Sendable () -> Double
    ) {
        self.now = now
        self.sleep = sleep
        self.random = random
    }

    /// The machine's clock and random numbers.
    public static let system = PostgresTiming(
        now: { .now },
        sleep: { try await Task.sleep(until: $0, clock: .continuous) },
        random: { .random(in: 0..<1) }
    )
}
