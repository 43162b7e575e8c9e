import FoundationEssentials
import MusterCore
import MusterTestSupport
import Testing

struct TimestampTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (-1_000_000, "1969-12-31T23:59:59.000Z"),
            (1_772_366_400_000_000, "2026-03-01T12:00:00.000Z"),
            (1_772_366_400_123_999, "2026-03-01T12:00:00.123Z"),
            (951_782_399_999_000, "2000-02-28T23:59:59.999Z"),
            (4_102_444_800_001_000, "2100-01-01T00:00:00.001Z"),
        ] as [(Int64, String)]
    )
    func momentIsWrittenInMilliseconds(microseconds: Int64, text: String) throws {
        let moment = Timestamp(microseconds: microseconds)
        #expect(moment.description == text)
        #expect(String(decoding: try JSONEncoder().encode(moment), as: UTF8.self) == "\"\(text)\"")
    }

    @Test func everyMillisecondIsWrittenAndReadExactly() throws {
        // Seconds as `Double` can't hold most milliseconds exactly: a formatter that truncates instead of rounding would be off by one.
        for millisecond in 0..<1_000 as Range<Int64> {
            let moment = Timestamp(microseconds: (1_772_366_437_000 + millisecond) * 1_000)
            let digits = String(millisecond + 1_000).dropFirst()
            try #require(moment.description == "2026-03-01T12:00:37.\(digits)Z")
            let read = try JSONDecoder().decode(Timestamp.self, from: JSONEncoder().encode(moment))
            try #require(read == moment)
        }
    }

    @Test(arguments: 0..<300 as Range<UInt64>)
    func anyMomentSurvivesJSON(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let moment = Timestamp(microseconds: Int64.random(in: 0...8_000_000_000_000, using: &random) * 1_000)
        #expect(try JSONDecoder().decode(Timestamp.self, from: JSONEncoder().encode(moment)) == moment)
    }

    @Test(
        arguments: [
            ("2026-03-01T12:00:00Z", 1_772_366_400_000_000),
            ("2026-03-01T12:00:00.5Z", 1_772_366_400_500_000),
            ("2026-03-01T13:30:00.000+01:30", 1_772_366_400_000_000),
        ] as [(String, Int64)]
    )
    func otherFormsOfRFC3339AreRead(text: String, microseconds: Int64) throws {
        let moment = try JSONDecoder().decode(Timestamp.self, from: Data("\"\(text)\"".utf8))
        #expect(moment.microseconds == microseconds)
    }

    @Test(
        arguments: [
            #""""#, #""yesterday""#, #""2026-03-01""#, #""2026-13-01T12:00:00Z""#, "1772366400", "null",
            #""10000-01-01T00:00:00Z""#, #""300000-01-01T00:00:00Z""#, #""506713-01-01T00:00:00.5Z""#,
        ])
    func whatIsNoTimestampIsRefused(json: String) {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Timestamp.self, from: Data(json.utf8)) }
    }

    @Test func momentsAreOrderedAndSubtracted() {
        let early = Timestamp(microseconds: 1_000)
        let late = Timestamp(microseconds: 2_500)
        #expect(early < late)
        #expect(late.since(early) == .microseconds(1_500))
        #expect(early.since(late) == .microseconds(-1_500))
    }
}
