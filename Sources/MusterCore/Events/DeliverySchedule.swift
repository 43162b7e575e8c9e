/// When the delivery of an event is tried, and how often (Standard Webhooks).
///
/// | try | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 |
/// |---|---|---|---|---|---|---|---|---|---|---|
/// | after the one before | 0 s | 5 s | 5 min | 30 min | 2 h | 5 h | 10 h | 14 h | 20 h | 24 h |
public struct DeliverySchedule: Hashable, Sendable {
    /// The wait before each try; the first one is that before the first try.
    public var waits: [Duration]
    /// The fraction of itself by which a wait may be shorter or longer, so that deliveries which failed together are not retried together.
    public var jitter: Double

    /// Muster's schedule, or a test's own.
    public init(waits: [Duration] = Self.standard, jitter: Double = 0.1) {
        self.waits = waits
        self.jitter = jitter
    }

    /// The waits of the table.
    public static let standard: [Duration] = [
        .zero, .seconds(5), .seconds(300), .seconds(1_800), .seconds(2 * 3_600), .seconds(5 * 3_600),
        .seconds(10 * 3_600), .seconds(14 * 3_600), .seconds(20 * 3_600), .seconds(24 * 3_600),
    ]

    /// How long to wait after `failures` failed tries; `nil` when the last try has failed.
    ///
    /// - Parameters:
    ///   - retryAfter: the wait that the receiver asked for, of which at most a day counts (`Limits.webhookRetryAfter`). It can only make the
    ///     wait longer: a receiver that asks for a second each time would otherwise use up all tries in ten seconds.
    ///   - random: from 0 to less than 1.
    public func wait(afterFailures failures: Int, retryAfter: Duration?, random: Double) -> Duration? {
        guard failures < waits.count else { return nil }
        let wait = waits[max(0, failures)] * (1 + jitter * (2 * random - 1))
        return max(wait, min(retryAfter ?? .zero, Limits.webhookRetryAfter))
    }
}
