import MusterTestSupport
import Synchronization
import Testing

@testable import MusterWorker

/// How many requests an origin was seen to serve at once.
@Suite struct ServedAtOnceTests {
    @Test func requestsCountThatWereUnderWayTogether() {
        var served = ServedAtOnce()
        #expect(served.count(since: 0) == 0)
        for (begin, end) in [(0, 10), (10, 20), (20, 30), (25, 40), (28, 29)] as [(Int64, Int64)] {
            served.note(from: begin, to: end)
        }
        #expect(served.count(since: 0) == 3)
        #expect(served.count(since: 29) == 2, "one ended at that moment")
        #expect(served.count(since: 30) == 1)
        #expect(served.count(since: 40) == 0)
    }

    /// Compares it with a count at each moment.
    @Test func countIsTheMostOfAllMoments() {
        var random = SeededGenerator.forTest()
        var served = ServedAtOnce()
        var requests: [(begin: Int64, end: Int64)] = []
        for end in (1...200 as ClosedRange<Int64>) where Bool.random(using: &random) {
            let begin = max(0, end - Int64.random(in: 0...20, using: &random))
            served.note(from: begin, to: end)
            requests.append((begin, end))
        }
        let since = Int64.random(in: 0...200, using: &random)
        let recent = requests.filter { $0.end > since }
        let most = (0...200).map { moment in recent.count { $0.begin <= moment && moment < $0.end } }.max()
        #expect(served.count(since: since) == most)
    }

    @Test func originIsRememberedForTenSeconds() {
        let now = Mutex<Int64>(0)
        let conduct = OriginConduct { now.withLock { $0 } }
        let visits = (0..<3).map { _ in conduct.ask("a") }
        now.withLock { $0 += 1_000_000_000 }
        for visit in visits { conduct.served(visit, of: "a") }
        #expect(conduct.servedAtOnce("a") == 3 && conduct.servedAtOnce("b") == 0)
        now.withLock { $0 += 9_000_000_000 }
        let later = conduct.ask("a")
        now.withLock { $0 += 500_000_000 }
        conduct.served(later, of: "a")
        #expect(conduct.servedAtOnce("a") == 3)
        now.withLock { $0 += 500_000_000 }
        #expect(conduct.servedAtOnce("a") == 1)
    }
}
