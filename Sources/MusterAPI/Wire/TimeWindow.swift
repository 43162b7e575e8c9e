import MusterCore

extension TimeWindow {
    /// Throws if a value is impossible, with the JSON pointer below the window. Only the database knows which time zones exist.
    func check() throws(InputRefusal) {
        try Self.check(time: from, at: "/from")
        try Self.check(time: to, at: "/to")
        try Self.check(zone: timeZone, at: "/timeZone")
    }

    static func check(time text: String, at pointer: String) throws(InputRefusal) {
        let bytes = Array(text.utf8)
        let digits = [0, 1, 3, 4].allSatisfy { bytes.indices.contains($0) && (48...57).contains(bytes[$0]) }
        guard bytes.count == 5, digits, bytes[2] == UInt8(ascii: ":"), text.prefix(2) < "24", text.suffix(2) < "60"
        else { throw InputRefusal(pointer: pointer, reason: "must be a time of day from 00:00 to 23:59") }
    }

    /// Accepts what could be the name of a time zone; the database refuses a name that it doesn't know.
    static func check(zone text: String, at pointer: String) throws(InputRefusal) {
        let isName = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "_"), UInt8(ascii: "-"),
                UInt8(ascii: "+"):
                true
            default: false
            }
        }
        guard isName, (1...64).contains(text.utf8.count) else {
            throw InputRefusal(pointer: pointer, reason: "must be an IANA time zone such as Europe/Berlin")
        }
    }
}

/// A line of a group's timetable: its rate in a part of the day.
public struct TimetableEntry: Hashable, Sendable, Codable {
    /// When it begins: `HH:MM`.
    public var from: String
    /// When it ends, as in `TimeWindow`.
    public var to: String
    /// The IANA time zone; when absent, that of the group's window, or UTC.
    public var timeZone: String?
    /// The most bytes per second of the whole group.
    public var bytesPerSecond: Int64

    private enum CodingKeys: String, CodingKey, CaseIterable { case from, to, timeZone, bytesPerSecond }

    /// A rate in a part of the day.
    public init(from: String, to: String, timeZone: String? = nil, bytesPerSecond: Int64) {
        self.from = from
        self.to = to
        self.timeZone = timeZone
        self.bytesPerSecond = bytesPerSecond
    }

    /// Reads an entry and refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        from = try container.decode(String.self, forKey: .from)
        to = try container.decode(String.self, forKey: .to)
        timeZone = try container.decodeIfPresent(String.self, forKey: .timeZone)
        guard let rate = try container.integerIfPresent(Int64.self, forKey: .bytesPerSecond) else {
            throw DecodingError.keyNotFound(
                CodingKeys.bytesPerSecond,
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "is missing"))
        }
        bytesPerSecond = rate
    }

    /// Throws if a value is impossible, with the JSON pointer below the entry.
    func check() throws(InputRefusal) {
        try TimeWindow.check(time: from, at: "/from")
        try TimeWindow.check(time: to, at: "/to")
        if let timeZone { try TimeWindow.check(zone: timeZone, at: "/timeZone") }
        try GroupLimits.check(rate: bytesPerSecond, at: "/bytesPerSecond")
    }
}
