/// The current clock (``MonotonicClock/current``) in the form that the standard library gives to clocks: for code that computes with
/// moments, and for functions that measure a limit with any clock.
public struct SteadyClock: Clock {
    /// A moment of the clock.
    public struct Instant: InstantProtocol, Hashable {
        /// Nanoseconds, as ``MonotonicClock/now`` counts them.
        let nanoseconds: Int64

        /// The current moment.
        public static var now: Instant { Instant(nanoseconds: MonotonicClock.now()) }

        /// The moment that is `duration` later.
        public func advanced(by duration: Duration) -> Instant {
            let (seconds, attoseconds) = duration.components
            let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
            let (span, isLonger) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
            let (sum, isTooLate) = nanoseconds.addingReportingOverflow(span)
            guard !isTooLong, !isLonger, !isTooLate else { return Instant(nanoseconds: seconds < 0 ? .min : .max) }
            return Instant(nanoseconds: sum)
        }

        /// The time from this moment to `other`.
        public func duration(to other: Instant) -> Duration { .nanoseconds(other.nanoseconds - nanoseconds) }

        /// The moment that is `duration` later.
        public static func + (moment: Instant, duration: Duration) -> Instant { moment.advanced(by: duration) }
        /// The time from the right moment to the left.
        public static func - (left: Instant, right: Instant) -> Duration { right.duration(to: left) }
        /// The order of the moments.
        public static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }
    }

    /// The clock.
    public init() {}

    /// The current moment.
    public static var now: Instant { .now }
    /// The current moment.
    public var now: Instant { .now }
    /// A nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Waits until `deadline`. Throws `CancellationError` as soon as the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try await MonotonicClock.system.sleep(to: deadline.nanoseconds)
    }
}
