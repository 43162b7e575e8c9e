import FoundationEssentials
import Glibc
import MusterCore

/// Moments as a person reads them: by the clock on the wall, to the second, with how long ago that was or in how long it will be.
struct WallClock: Sendable {
    /// Now.
    let now: Timestamp
    /// Seconds east of UTC at a moment in seconds since 1970.
    let offset: @Sendable (Int64) -> Int64
    /// Whether moments name the clock's zone, as they must beside hours in another zone.
    private var namesZone = false

    /// A clock in a time zone: that of this process if none is given.
    init(now: Timestamp, offset: @escaping @Sendable (Int64) -> Int64 = WallClock.ownOffset) {
        self.now = now
        self.offset = offset
    }

    /// The clock of this machine, which may differ a little from the database's.
    static var ofThisMachine: WallClock { WallClock(now: .ofThisMachine) }

    /// The same clock, whose moments name its zone.
    var withZone: WallClock {
        var clock = self
        clock.namesZone = true
        return clock
    }

    /// The offset of the system's zone, in seconds east of UTC.
    private static func ownOffset(_ seconds: Int64) -> Int64 {
        var (time, parts) = (time_t(seconds), tm())
        return localtime_r(&time, &parts) == nil ? 0 : Int64(parts.tm_gmtoff)
    }

    /// `2026-03-01 13:00:00 (in 2h 5m)`, or `… (12s ago)`.
    func text(_ moment: Timestamp) -> String { "\(self.moment(moment)) (\(distance(moment)))" }

    /// `2026-03-01 13:00:00`, for lists of past events.
    func moment(_ moment: Timestamp) -> String {
        let seconds = Self.seconds(moment)
        let east = offset(seconds)
        let local = Timestamp(microseconds: (seconds + east) * 1_000_000).description
        return "\(local.prefix(10)) \(local.dropFirst(11).prefix(8))" + (namesZone ? " \(Self.zone(east))" : "")
    }

    /// `UTC`, or `UTC+05:30`: a zone so many seconds east of it.
    private static func zone(_ east: Int64) -> String {
        guard east != 0 else { return "UTC" }
        let minutes = abs(east) / 60
        func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "UTC\(east < 0 ? "-" : "+")\(padded(minutes / 60)):\(padded(minutes % 60))"
    }

    /// `12s ago`, `in 2h 5m`, or `now`.
    func distance(_ moment: Timestamp) -> String {
        let seconds = Self.seconds(moment) - Self.seconds(now)
        let text = DurationNotation.format(.seconds(abs(seconds)))
        return seconds > 0 ? "in \(text)" : seconds == 0 ? "now" : "\(text) ago"
    }

    /// Whole seconds since 1970, rounded down, so that no second is shown before it begins.
    private static func seconds(_ moment: Timestamp) -> Int64 {
        moment.microseconds / 1_000_000 - (moment.microseconds % 1_000_000 < 0 ? 1 : 0)
    }

    /// Whether a sentence of a coordinator contains hours with their zone: `from 22:00 to 06:00 (Europe/Berlin)`.
    static func tellsHours(_ text: String) -> Bool {
        text.firstMatch(of: /from \d\d?:\d\d to \d\d?:\d\d \([^)]+\)/) != nil
    }

    /// A sentence of a coordinator, which has moments as in JSON, with the moments of this clock.
    func sentence(_ text: String) -> String {
        let clock = Self.tellsHours(text) ? withZone : self
        return text.replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) { match in
            let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
            guard let date = try? style.parse(String(match.output)) else { return String(match.output) }
            return clock.text(Timestamp(microseconds: Int64((date.timeIntervalSince1970 * 1_000).rounded()) * 1_000))
        }
    }
}
