/// A daily part of the day: from 22:00 to 06:00 in Europe/Berlin.
public struct TimeWindow: Hashable, Sendable, Codable {
    /// When it begins: `HH:MM`, 00:00 to 23:59.
    public var from: String
    /// When it ends. A time before `from` is on the next day; the same time as `from` means the whole day.
    public var to: String
    /// The IANA time zone in which the clock is read, such as `Europe/Berlin`.
    public var timeZone: String

    private enum CodingKeys: String, CodingKey, CaseIterable { case from, to, timeZone }

    /// A part of the day.
    public init(from: String, to: String, timeZone: String) {
        self.from = from
        self.to = to
        self.timeZone = timeZone
    }

    /// Reads a window and refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        from = try container.decode(String.self, forKey: .from)
        to = try container.decode(String.self, forKey: .to)
        timeZone = try container.decode(String.self, forKey: .timeZone)
    }
}
