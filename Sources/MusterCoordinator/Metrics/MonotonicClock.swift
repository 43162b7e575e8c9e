import Synchronization

/// The coordinator's monotonic clock in nanoseconds, passed in so that tests can hold the hands. It measures waits; what is
/// written is dated by the database (I11).
struct MonotonicClock: Sendable {
    /// Nanoseconds since some fixed moment.
    let now: @Sendable () -> Int64

    /// The machine's own.
    static var system: MonotonicClock {
        let start = ContinuousClock.now
        return MonotonicClock {
            let passed = (ContinuousClock.now - start).components
            return passed.seconds * 1_000_000_000 + passed.attoseconds / 1_000_000_000
        }
    }
}
