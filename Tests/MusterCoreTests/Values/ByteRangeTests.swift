import FoundationEssentials
import MusterCore
import MusterTestSupport
import Testing

struct ByteRangeTests {
    @Test(arguments: [(-1, 0), (-5, -1), (1, 0), (Int64.max, 0)] as [(Int64, Int64)])
    func impossibleRangesAreRefused(start: Int64, end: Int64) {
        #expect(ByteRange(start: start, end: end) == nil)
    }

    @Test(
        arguments: [(0, 0, 0), (0, 1, 1), (7, 7, 0), (7, 10, 3), (0, Int64.max, Int64.max)] as [(Int64, Int64, Int64)]
    )
    func rangeCountsItsBytes(start: Int64, end: Int64, count: Int64) throws {
        let range = try #require(ByteRange(start: start, end: end))
        #expect(range.count == count)
        #expect(range.isEmpty == (count == 0))
        #expect(range.description == "[\(start), \(end))")
    }

    @Test func rangeOfTheFirstBytesIsNeverNegative() {
        #expect(ByteRange(first: 5) == ByteRange(start: 0, end: 5))
        #expect(ByteRange(first: -5).isEmpty)
    }

    @Test(arguments: [
        #"{"start":5,"end":4}"#, #"{"start":-1,"end":4}"#, #"{"start":0}"#, #"{"start":0,"end":1.5}"#, "[]",
    ])
    func jsonThatIsNoRangeIsRefused(json: String) {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(ByteRange.self, from: Data(json.utf8)) }
    }

    @Test func rangeSurvivesJSON() throws {
        let range = try #require(ByteRange(start: 3, end: 9))
        #expect(try JSONDecoder().decode(ByteRange.self, from: JSONEncoder().encode(range)) == range)
    }

    private static func ranges(_ pairs: [(Int64, Int64)]) -> [ByteRange] {
        pairs.compactMap { ByteRange(start: $0.0, end: $0.1) }
    }

    @Test(
        arguments: [
            ([], 0, true),
            ([(0, 0)], 0, true),
            ([(0, 10)], 10, true),
            ([(4, 10), (0, 4)], 10, true),
            ([(5, 10), (5, 5), (0, 5)], 10, true),
            ([], 1, false),
            ([(0, 10)], 9, false),
            ([(0, 10)], 11, false),
            ([(1, 10)], 10, false),
            ([(0, 4), (5, 10)], 10, false),
            ([(0, 6), (5, 10)], 10, false),
            ([(0, 5), (0, 5), (5, 10)], 10, false),
            ([(0, 10), (3, 3)], 10, false),
        ] as [([(Int64, Int64)], Int64, Bool)]
    )
    func onlyRangesWithoutGapAndOverlapTile(pairs: [(Int64, Int64)], size: Int64, tiles: Bool) {
        #expect(ByteRange.tile(Self.ranges(pairs), size: size) == tiles)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func shuffledCutsTileAndOneMissingDoesNot(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let size = random.magnitude(upTo: 50) + 1
        let inner = (0..<Int.random(in: 0...20, using: &random)).map { _ in Int64.random(in: 0...size, using: &random) }
        let cuts = ([0, size] + inner).sorted()
        var ranges = zip(cuts, cuts.dropFirst()).compactMap { ByteRange(start: $0, end: $1) }.shuffled(using: &random)
        #expect(ByteRange.tile(ranges, size: size))
        let victim = try #require(ranges.firstIndex { !$0.isEmpty })
        ranges.remove(at: victim)
        #expect(!ByteRange.tile(ranges, size: size))
    }
}
