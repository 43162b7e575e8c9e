import FoundationEssentials

/// A moment on the **database's** clock, in microseconds since the Unix epoch.
///
/// Workers and coordinators never make a timestamp from their own clock (I11); they only carry and show it.
public struct Timestamp: Hashable, Sendable, Comparable, Codable, CustomStringConvertible {
    /// Microseconds since 1970-01-01T00:00:00Z.
    public let microseconds: Int64

    /// A moment that the database stated.
    public init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    /// What RFC 3339 can write (§1), in milliseconds since the epoch: the years 1 to 9999. The year 300000 would overflow.
    private static let writable: ClosedRange<Double> = -62_135_769_600_000...253_402_300_799_999

    /// Reads an RFC 3339 text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: text.contains("."))
        let milliseconds = (try? style.parse(text)).map { ($0.timeIntervalSince1970 * 1_000).rounded() }
        guard let milliseconds, Self.writable.contains(milliseconds) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an RFC 3339 timestamp")
        }
        microseconds = Int64(milliseconds) * 1_000
    }

    /// Writes an RFC 3339 text in UTC with milliseconds.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    /// RFC 3339 in UTC with milliseconds: `2026-03-01T12:00:00.000Z`.
    public var description: String {
        // Only whole seconds go through `Date`: it holds a `Double`, and its formatter truncates, so that most fractions would lose a
        // millisecond.
        let milliseconds = microseconds / 1_000 - (microseconds % 1_000 < 0 ? 1 : 0)
        let fraction = (milliseconds % 1_000 + 1_000) % 1_000
        let date = Date(timeIntervalSince1970: Double((milliseconds - fraction) / 1_000))
        return "\(date.formatted(Date.ISO8601FormatStyle()).dropLast()).\(String(1_000 + fraction).dropFirst())Z"
    }

    /// The time that passed from `earlier` to this moment.
    public func since(_ earlier: Timestamp) -> Duration {
        .microseconds(microseconds - earlier.microseconds)
    }

    /// Earlier moments come first.
    public static func < (left: Self, right: Self) -> Bool { left.microseconds < right.microseconds }
}
