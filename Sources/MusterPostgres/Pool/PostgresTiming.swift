public import MusterSystem

extension Backoff {
    /// Between attempts to connect to a server.
    public static let connecting = Backoff(first: .milliseconds(100), longest: .seconds(5), jitter: 0.5)
    /// Before a transaction that lost a conflict with another is run again.
    public static let transactions = Backoff(first: .milliseconds(10), longest: .milliseconds(500), jitter: 0.5)
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
