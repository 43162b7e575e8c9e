/// A moment in one of the three forms of HTTP-date (RFC 9110 §5.6.7), in whole seconds.
///
/// Nothing here knows what time it is (I11): such dates are only ever compared with others of the same response, or
/// handed on to the file as its modification time.
public struct HTTPDate: Hashable, Sendable, Comparable {
    /// Seconds since 1970-01-01T00:00:00Z, leap seconds not counted.
    public let secondsSince1970: Int64

    /// Reads a date; `nil` for anything else than the three forms, or for a day that is not in the calendar.
    ///
    /// - `Sun, 06 Nov 1994 08:49:37 GMT`, the form that is sent today;
    /// - `Sunday, 06-Nov-94 08:49:37 GMT`, of RFC 850: the day's name determines the century, since it differs between centuries;
    /// - `Sun Nov  6 08:49:37 1994`, of C's `asctime`.
    public init?(_ text: String) {
        let layout = Layout(Array(text.utf8.prefix(Layout.maximumBytes + 1)))
        guard let seconds = layout.fixed() ?? layout.ofRFC850() ?? layout.ofASCTime() else { return nil }
        secondsSince1970 = seconds
    }

    /// Earlier moments come first.
    public static func < (left: Self, right: Self) -> Bool { left.secondsSince1970 < right.secondsSince1970 }
}

/// The bytes of a date. All three forms have every part at a fixed place, counted from the start or from the end.
private struct Layout {
    let bytes: [UInt8]

    static let maximumBytes = "Wednesday, 06-Nov-94 08:49:37 GMT".utf8.count
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    /// Starts with Thursday, the weekday of 1 January 1970.
    private static let weekdays = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    func fixed() -> Int64? {
        guard bytes.count == 29, isShortWeekday, has(", ", at: 3), has(" ", at: 7), has(" ", at: 11), has(" ", at: 16),
            has(" GMT", at: 25), let day = number(at: 5, digits: 2), let month = month(at: 8),
            let year = number(at: 12, digits: 4), let date = Self.days(year: year, month: month, day: day),
            let time = time(at: 17)
        else { return nil }
        return date * 86_400 + time
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`
    func ofRFC850() -> Int64? {
        guard let comma = bytes.firstIndex(of: UInt8(ascii: ",")), bytes.count == comma + 24,
            let weekday = Self.weekdays.firstIndex(where: { $0.utf8.elementsEqual(bytes[..<comma]) }),
            has(" ", at: comma + 1), has("-", at: comma + 4), has("-", at: comma + 8), has(" ", at: comma + 11),
            has(" GMT", at: comma + 20), let day = number(at: comma + 2, digits: 2), let month = month(at: comma + 5),
            let year = number(at: comma + 9, digits: 2), let time = time(at: comma + 12)
        else { return nil }
        // The RFC asks for the year that is at most 50 years ahead of the current one, which is unknown here (I11). The same date in the
        // next century never falls on the same weekday.
        let candidates = [1_900 + year, 2_000 + year].compactMap { Self.days(year: $0, month: month, day: day) }
        guard let date = candidates.first(where: { Self.weekday($0) == weekday }) else { return nil }
        return date * 86_400 + time
    }

    /// `Sun Nov  6 08:49:37 1994`
    func ofASCTime() -> Int64? {
        guard bytes.count == 24, isShortWeekday, has(" ", at: 3), has(" ", at: 7), has(" ", at: 10), has(" ", at: 19),
            let month = month(at: 4), let day = has(" ", at: 8) ? number(at: 9, digits: 1) : number(at: 8, digits: 2),
            let year = number(at: 20, digits: 4), let date = Self.days(year: year, month: month, day: day),
            let time = time(at: 11)
        else { return nil }
        return date * 86_400 + time
    }

    private var isShortWeekday: Bool {
        Self.weekdays.contains { $0.utf8.prefix(3).elementsEqual(bytes.prefix(3)) }
    }

    private func has(_ text: String, at place: Int) -> Bool {
        bytes.dropFirst(place).starts(with: text.utf8)
    }

    private func number(at place: Int, digits: Int) -> Int64? {
        var number: Int64 = 0
        for byte in bytes[place..<(place + digits)] {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            number = number * 10 + Int64(byte - UInt8(ascii: "0"))
        }
        return number
    }

    /// The month, from 1.
    private func month(at place: Int) -> Int64? {
        Self.months.firstIndex { $0.utf8.elementsEqual(bytes[place..<(place + 3)]) }.map { Int64($0 + 1) }
    }

    /// Seconds since midnight of `08:49:37`; a leap second is the first second of the next minute.
    private func time(at place: Int) -> Int64? {
        guard has(":", at: place + 2), has(":", at: place + 5), let hour = number(at: place, digits: 2), hour < 24,
            let minute = number(at: place + 3, digits: 2), minute < 60,
            let second = number(at: place + 6, digits: 2), second <= 60
        else { return nil }
        return hour * 3_600 + minute * 60 + second
    }

    /// Days from 1970-01-01 to a day of the Gregorian calendar; `nil` when its month has no such day.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64? {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths: [Int64] = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        let index = Int(month) - 1
        guard (1...lengths[index]).contains(day) else { return nil }
        // Leap years before this one, counted from year 0, which is a leap year itself.
        let leaps = year == 0 ? 0 : (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 + 1
        let daysTo1970: Int64 = 719_528
        return year * 365 + leaps - daysTo1970 + lengths[..<index].reduce(0, +) + day - 1
    }

    /// The place of a day in `weekdays`.
    private static func weekday(_ days: Int64) -> Int {
        Int((days % 7 + 7) % 7)
    }
}
