import MusterCurl
import MusterTestSupport
import Testing

struct TokenBucketTests {
    private static let millisecond: UInt64 = 1_000_000
    private static let second: UInt64 = 1_000_000_000

    @Test func newBucketIsEmpty() {
        var bucket = TokenBucket(bytesPerSecond: 1_000_000, at: 5)
        // The wait is for a hundredth of a second's bytes.
        #expect(bucket.wait(at: 5) == 10 * Self.millisecond)
        #expect(bucket.wait(at: 5 + 10 * Self.millisecond) == 0)
    }

    @Test func debtIsWaitedFor() {
        var bucket = TokenBucket(bytesPerSecond: 1_000, at: 0)
        #expect(bucket.wait(at: Self.second / 10) == 0)
        bucket.take(2_100, at: Self.second / 10)
        #expect(bucket.wait(at: Self.second / 10) == 2 * Self.second + 10 * Self.millisecond)
        #expect(bucket.wait(at: 2 * Self.second + Self.second / 10) != 0)
        #expect(bucket.wait(at: 2 * Self.second + Self.second / 10 + Self.millisecond) == 0)
    }

    @Test func noMoreThanAQuarterOfASecondIsKept() {
        var bucket = TokenBucket(bytesPerSecond: 1_000, at: 0)
        #expect(bucket.wait(at: 3_600 * Self.second) == 0)
        bucket.take(249, at: 3_600 * Self.second)
        #expect(bucket.wait(at: 3_600 * Self.second) == 0)
        bucket.take(1, at: 3_600 * Self.second)
        #expect(bucket.wait(at: 3_600 * Self.second) != 0)
    }

    @Test func rateOfZeroLetsNothingThroughUntilItIsRaised() {
        var bucket = TokenBucket(bytesPerSecond: -5, at: 0)
        #expect(bucket.wait(at: 100 * Self.second) == nil)
        bucket.change(to: 100, at: 100 * Self.second)
        #expect(bucket.wait(at: 100 * Self.second) == 10 * Self.millisecond)
        #expect(bucket.wait(at: 101 * Self.second) == 0)
    }

    @Test func changedRateCountsFromItsChange() {
        var bucket = TokenBucket(bytesPerSecond: 1_000, at: 0)
        bucket.take(3_000, at: 0)
        bucket.change(to: 10_000, at: Self.second)
        // 2,000 are still owed.
        #expect(bucket.wait(at: Self.second) == 210 * Self.millisecond)
        bucket.change(to: 100, at: 2 * Self.second)
        bucket.take(24, at: 2 * Self.second)
        #expect(bucket.wait(at: 2 * Self.second) == 0)
        bucket.take(1, at: 2 * Self.second)
        #expect(bucket.wait(at: 2 * Self.second) != 0)
    }

    @Test func clockThatStandsOrGoesBackGivesNothing() {
        var bucket = TokenBucket(bytesPerSecond: 1_000, at: Self.second)
        bucket.take(100, at: 0)
        #expect(bucket.wait(at: 0) == 110 * Self.millisecond)
        #expect(bucket.wait(at: Self.second) == 110 * Self.millisecond)
    }

    @Test func largestRateAndLongestTimeDoNotOverflow() {
        var bucket = TokenBucket(bytesPerSecond: .max, at: 0)
        bucket.take(.max, at: 0)
        #expect(bucket.wait(at: .max) == 0)
        bucket.change(to: 1, at: .max)
        bucket.take(.max, at: .max)
        #expect(bucket.wait(at: .max) == .max)
    }

    /// Callers that take pieces of any size at any time get the rate, neither more nor less.
    @Test(arguments: 0..<50) func overTenSecondsExactlyTheRateComesThrough(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let rate = Int64.random(in: 50_000...20_000_000, using: &random)
        var bucket = TokenBucket(bytesPerSecond: rate, at: 0)
        var now: UInt64 = 0
        var taken: Int64 = 0
        var mostAhead: Int64 = 0
        let allowed = { (now: UInt64) in Int64(Int128(now) * Int128(rate) / Int128(Self.second)) }
        while now < 10 * Self.second {
            guard let wait = bucket.wait(at: now) else { break }
            if wait == 0 {
                let piece = Int64.random(in: 1...16_384, using: &random)
                bucket.take(piece, at: now)
                taken += piece
                mostAhead = max(mostAhead, taken - allowed(now))
            } else {
                // Loops wake late, by milliseconds.
                now += wait + UInt64.random(in: 0...20 * Self.millisecond, using: &random)
            }
        }
        #expect(mostAhead <= 16_384, "seed \(seed)")
        // The bytes earned during the last wait are not taken.
        #expect(taken >= allowed(now) - rate / 30 - 1, "seed \(seed): \(taken) of \(allowed(now))")
    }
}
