/// How long something takes at a speed: the arithmetic that all estimates share.
enum Pace {
    /// The longest estimate, in seconds. An estimate of more than a year comes from a speed that is about to be zero.
    static let longest: Int64 = 365 * 86_400

    /// The seconds that bytes take at a speed in bytes per second, rounded up; `nil` if the speed is 0.
    static func seconds(_ bytes: Int64, at speed: Int64) -> Int64? {
        guard speed > 0 else { return nil }
        return bytes / speed + (bytes % speed == 0 ? 0 : 1)
    }

    /// The same, but at least the time that a part of the bytes takes; `nil` also beyond `longest`, or beyond the time that
    /// is left (`most`).
    static func seconds(
        _ bytes: Int64, at speed: Int64, atLeast least: Int64?, within most: Int64? = nil
    ) -> Int64? {
        guard let even = seconds(max(0, bytes), at: speed) else { return nil }
        let seconds = max(even, least ?? 0)
        return seconds <= min(longest, most ?? longest) ? seconds : nil
    }
}
