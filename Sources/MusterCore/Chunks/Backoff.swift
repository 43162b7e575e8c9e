/// How long a chunk waits after a failure: 1 s × 2ⁿ, at most 5 minutes, with full jitter (`docs/range-contract.md`).
///
/// | failures without progress | waits, at the most |
/// | --- | --- |
/// | 1 | 1 s |
/// | 2 | 2 s |
/// | 3 | 4 s |
/// | 8 | 128 s |
/// | 10 and more | 300 s |
///
/// The store applies the same formula in SQL, from a random number that the caller passes in.
public struct Backoff: Sendable, Hashable {
    /// The bound on the first wait.
    public let base: Duration
    /// The bound on every wait.
    public let maximum: Duration

    /// The backoff of chunks, unless a test or a connection wants its own.
    public init(base: Duration = .seconds(1), maximum: Duration = .seconds(300)) {
        self.base = base
        self.maximum = maximum
    }

    /// The wait after `failures` failures in a row, from a random number within `0..<1`.
    public func delay(failures: Int, random: Double) -> Duration {
        guard failures > 0 else { return .zero }
        let bound = failures > 40 ? maximum : min(maximum, base * (1 << (failures - 1)))
        return bound * random
    }
}
