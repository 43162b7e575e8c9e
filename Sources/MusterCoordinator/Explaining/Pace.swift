/// How long something takes at a speed: the arithmetic that all estimates share.
enum Pace {
    /// An estimate of more than a year comes from a speed that is about to be none.
    static let longest: Int64 = 365 * 86_400

    /// The seconds that bytes take at bytes per second, a part of one counted as one; `nil` while nothing comes.
    static func seconds(_ bytes: Int64, at speed: Int64) -> Int64? {
        guard speed > 0 else { return nil }
        return bytes / speed + (bytes % speed == 0 ? 0 : 1)
    }

    /// The same where a part of it takes longer than that, at the least; `nil` also beyond `longest`, or beyond the time that there is.
    static func seconds(
        _ bytes: Int64, at speed: Int64, atLeast least: Int64?, within most: Int64? = nil
    ) -> Int64? {
        guard let even = seconds(max(0, bytes), at: speed) else { return nil }
        let seconds = max(even, least ?? 0)
        return seconds <= min(longest, most ?? longest) ? seconds : nil
    }
}
