import FoundationEssentials
import MusterCore
import MusterTestSupport
import Testing

struct HTTPDateTests {
    @Test(
        arguments: [
            // The examples of RFC 9110 §5.6.7: one moment in three forms.
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Thursday, 01-Jan-70 00:00:00 GMT", 0), ("Thu Jan  1 00:00:00 1970", 0),
            ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600), ("Tue Feb 29 12:00:00 2000", 951_825_600),
            ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800), ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
            ("Mon, 01 Jan 0001 00:00:00 GMT", -62_135_596_800),
            // A leap second is the first second of the next minute.
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            // The name of the day tells the century.
            ("Friday, 31-Dec-99 23:59:59 GMT", 946_684_799), ("Thursday, 31-Dec-99 23:59:59 GMT", 4_102_444_799),
            ("Sunday, 01-Mar-26 12:00:00 GMT", 1_772_366_400), ("Monday, 01-Mar-26 12:00:00 GMT", -1_383_393_600),
            ("Tuesday, 29-Feb-00 00:00:00 GMT", 951_782_400),
        ] as [(String, Int64)]
    )
    func threeFormsAreRead(text: String, seconds: Int64) {
        #expect(HTTPDate(text)?.secondsSince1970 == seconds)
    }

    @Test(
        arguments: [
            "", "0", "784111777", "yesterday", "1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 gmt", "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "sun, 06 Nov 1994 08:49:37 GMT",
            "Son, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Okt 1994 08:49:37 GMT",
            "Sun,  6 Nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 29 Feb 2023 08:49:37 GMT", "Sun, 32 Jan 2023 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov -994 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
            " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday 06-Nov-94 08:49:37 GMT",
            // No century has this day on a Wednesday.
            "Wednesday, 06-Nov-94 08:49:37 GMT", "Sunday, 29-Feb-23 08:49:37 GMT", ", 06-Nov-94 08:49:37 GMT",
            "Sun Nov 6 08:49:37 1994", "Sun Nov  6 08:49:37 94", "Sun Nov   08:49:37 1994",
            "Sun Nov 06 08:49:37 1994 GMT",
            "Sun, ٠٦ Nov 1994 08:49:37 GMT", String(repeating: "S", count: 100_000), "Sunday,", "Wednesday, ",
        ])
    func whatIsNoneIsRefused(text: String) {
        #expect(HTTPDate(text) == nil)
    }

    @Test func earlierComesFirst() throws {
        let (first, second) = (
            try #require(HTTPDate("Sun, 06 Nov 1994 08:49:37 GMT")), try #require(HTTPDate("Sun Nov  6 08:49:38 1994"))
        )
        #expect(first < second)
        #expect(!(second < first))
    }

    /// Any moment, as Foundation gives its parts, is read back in each of the three forms.
    @Test(arguments: 0..<500 as Range<UInt64>)
    func anyMomentSurvives(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        // The years 1583 to 9999: before that Foundation counts by the Julian calendar.
        let seconds = Int64.random(in: -12_212_553_600...253_402_300_799, using: &random)
        let fixed = Self.written(seconds)
        #expect(HTTPDate(fixed.text)?.secondsSince1970 == seconds, "seed \(seed): \(fixed.text)")
        let (day, month, year, time) = (fixed.day, fixed.month, fixed.year, fixed.time)
        let padded = day.hasPrefix("0") ? " " + day.dropFirst() : day
        let asctime = "\(fixed.weekday.prefix(3)) \(month) \(padded) \(time) \(year)"
        #expect(HTTPDate(asctime)?.secondsSince1970 == seconds, "seed \(seed): \(asctime)")
        guard (1_900...2_099).contains(Int(year) ?? 0) else { return }
        let old = "\(fixed.weekday), \(day)-\(month)-\(year.suffix(2)) \(time) GMT"
        #expect(HTTPDate(old)?.secondsSince1970 == seconds, "seed \(seed): \(old)")
    }

    @Test(arguments: 0..<500 as Range<UInt64>)
    func oldFormSurvivesInBothCenturies(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        // The years 1900 to 2099.
        let seconds = Int64.random(in: -2_208_988_800...4_102_444_799, using: &random)
        let fixed = Self.written(seconds)
        let old = "\(fixed.weekday), \(fixed.day)-\(fixed.month)-\(fixed.year.suffix(2)) \(fixed.time) GMT"
        #expect(HTTPDate(old)?.secondsSince1970 == seconds, "seed \(seed): \(old)")
    }

    private struct Written {
        let text: String
        let weekday: String
        let day: String
        let month: String
        let year: String
        let time: String
    }

    /// The moment as Foundation writes it.
    private static func written(_ seconds: Int64) -> Written {
        let style = Date.ISO8601FormatStyle()
        let parts = Date(timeIntervalSince1970: Double(seconds)).formatted(style).split { "-T:Z".contains($0) }.map(
            String.init)
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let month = months[(Int(parts[1]) ?? 1) - 1]
        let weekdays = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"]
        let day = Int((Double(seconds) / 86_400).rounded(.down))
        let weekday = weekdays[(day % 7 + 7) % 7]
        let time = parts[3...5].joined(separator: ":")
        return Written(
            text: "\(weekday.prefix(3)), \(parts[2]) \(month) \(parts[0]) \(time) GMT", weekday: weekday, day: parts[2],
            month: month, year: parts[0], time: time)
    }

    private static let pieces = [
        "Sun", "Sunday", "Thursday", ",", " ", "  ", "06", "6", "Nov", "1994", "94", "-", "08:49:37", ":", "GMT", "99",
        "ä", "\0",
    ]

    @Test(arguments: 0..<2_000 as Range<UInt64>)
    func noTextMakesTheParserFail(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var text = "Sunday, 06-Nov-94 08:49:37 GMT"
        switch Int.random(in: 0...2, using: &random) {
        case 0:
            text = (0..<Int.random(in: 0...14, using: &random)).compactMap { _ in
                Self.pieces.randomElement(using: &random)
            }
            .joined()
        case 1:
            text = String(decoding: (0..<29).map { _ in UInt8.random(in: 0...255, using: &random) }, as: UTF8.self)
        default:
            var bytes = Array(text.utf8)
            bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...127, using: &random)
            bytes.removeLast(Int.random(in: 0...2, using: &random))
            text = String(decoding: bytes, as: UTF8.self)
        }
        guard let date = HTTPDate(text) else { return }
        #expect(abs(date.secondsSince1970) < 1 << 40, "seed \(seed): \(text)")
    }
}
