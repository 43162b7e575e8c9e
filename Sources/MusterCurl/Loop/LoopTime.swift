import MusterSystem

/// Nanoseconds of the monotonic clock.
func monotonicNanoseconds() -> UInt64 { UInt64(MonotonicClock.now()) }

extension Duration {
    /// Whole nanoseconds, 0 for negative durations, saturated at 100 years.
    var nanosecondsClamped: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 3_155_760_000 else { return 3_155_760_000_000_000_000 }
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds) / 1_000_000_000
    }

    /// Milliseconds as libcurl's `long` takes them, at least 1, since 0 means "default" there.
    var millisecondsForCurl: Int {
        Int(Swift.min(Swift.max(nanosecondsClamped / 1_000_000, 1), UInt64(Int32.max)))
    }
}
