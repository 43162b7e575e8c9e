/// The waits between tries that fail: each is twice as long as the last one, up to a bound. A part of each is random, so that callers that
/// failed together do not return together.
///
///     after n failures in a row:  min(longest, first × 2ⁿ⁻¹) × (1 − jitter + jitter × r),  r random within 0..<1
public struct Backoff: Sendable, Hashable {
    /// The bound on the first wait.
    public let first: Duration
    /// The bound on every wait.
    public let longest: Duration
    /// The part of each wait that is random, from 0 to 1.
    public let jitter: Double

    /// Waits from `first` to `longest`.
    public init(first: Duration, longest: Duration, jitter: Double) {
        self.first = first
        self.longest = longest
        self.jitter = jitter
    }

    /// The bound on the wait after `failures` failures in a row; zero without any.
    public func bound(failures: Int) -> Duration {
        guard failures > 0 else { return .zero }
        return failures > 40 ? longest : min(longest, first * (1 << (failures - 1)))
    }

    /// The wait after `failures` failures in a row; zero without any.
    ///
    /// - Parameter random: a number within `0..<1`.
    public func delay(failures: Int, random: Double = .random(in: 0..<1)) -> Duration {
        bound(failures: failures) * (1 - jitter + jitter * random)
    }
}
