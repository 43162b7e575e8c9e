import MusterAPI
import MusterCore

/// A part of the day on the command line: `22:00-06:00`.
struct TimeWindowArgument: Hashable, Sendable {
    /// When it begins, `HH:MM`.
    let from: String
    /// When it ends, `HH:MM`; a time before `from` is on the next day.
    let to: String

    /// Parses `HH:MM-HH:MM`; `nil` for anything else. `8:00` is read as `08:00`, and `24:00` as `00:00`.
    init?(_ text: some StringProtocol) {
        let times = text.split(separator: "-", omittingEmptySubsequences: false).map { Self.time($0) }
        guard times.count == 2, let from = times[0], let to = times[1] else { return nil }
        (self.from, self.to) = (from, to)
    }

    /// What it must look like.
    static let rule = "must be a part of the day such as 22:00-06:00, of another end than its beginning"

    /// Whether it ends where it begins, which is ambiguous: it could mean never or always.
    var isEmpty: Bool { from == to }

    private static func time(_ text: some StringProtocol) -> String? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        let isNumber = parts.allSatisfy { $0.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } }
        guard parts.count == 2, isNumber, (1...2).contains(parts[0].count), parts[1].count == 2,
            let hour = Int(parts[0]), let minute = Int(parts[1]), minute < 60, hour < 24 || hour == 24 && minute == 0
        else { return nil }
        return "\(hour % 24 < 10 ? "0" : "")\(hour % 24):\(parts[1])"
    }
}
