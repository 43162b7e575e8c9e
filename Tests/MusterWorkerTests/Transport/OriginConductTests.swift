import Synchronization
import Testing

@testable import MusterWorker

/// What a worker remembers of origins.
@Suite struct OriginConductTests {
    @Test func silenceIsRememberedUntilTheOriginAnswersOrFiveMinutesArePast() {
        let now = Mutex<Int64>(0)
        let conduct = OriginConduct { now.withLock { $0 } }
        #expect(!conduct.isSilent("a"))
        conduct.silent("a")
        conduct.silent("b")
        #expect(conduct.isSilent("a") && conduct.isSilent("b") && !conduct.isSilent("c"))
        conduct.answered("a", after: .seconds(1))
        conduct.answered("b")
        #expect(conduct.isSilent("a") && !conduct.isSilent("b"))
        now.withLock { $0 += 299_000_000_000 }
        #expect(conduct.isSilent("a"))
        now.withLock { $0 += 1_000_000_000 }
        #expect(!conduct.isSilent("a"))
    }

    @Test func originServesForEightSecondsAfterItsLastAnswer() {
        let now = Mutex<Int64>(0)
        let conduct = OriginConduct { now.withLock { $0 } }
        #expect(!conduct.isServing("a"))
        conduct.enter("a")
        now.withLock { $0 += 60_000_000_000 }
        #expect(conduct.isServing("a") && conduct.isBusy("a"))
        conduct.leave("a")
        now.withLock { $0 += 7_000_000_000 }
        #expect(conduct.isServing("a") && !conduct.isBusy("a"))
        #expect(conduct.isServing("a", despite: 403) && !conduct.isServing("a", despite: 401))
        now.withLock { $0 += 1_000_000_000 }
        #expect(!conduct.isServing("a"))
    }

    /// A request that was made as late, and whose answer took a quarter of that time or less.
    @Test func requestIsOvertakenByOthersThatAreAnsweredSooner() {
        let now = Mutex<Int64>(0)
        let conduct = OriginConduct { now.withLock { $0 } }
        let earlier = conduct.ask("a")
        now.withLock { $0 += 1_000_000_000 }
        let visit = conduct.ask("a")
        conduct.enter("a", earlier)
        now.withLock { $0 += 10_000_000_000 }
        #expect(!conduct.answersOthers(than: visit, of: "a"), "the other one was made before")
        let later = conduct.ask("a")
        now.withLock { $0 += 5_000_000_000 }
        conduct.enter("a", later)
        #expect(!conduct.answersOthers(than: visit, of: "a"), "a third of the time")
        now.withLock { $0 += 5_000_000_000 }
        #expect(conduct.answersOthers(than: visit, of: "a"))
        #expect(!conduct.answersOthers(than: visit, of: "b"))
    }

    @Test func mannerAndTrustInConnectionsAreRememberedForTenMinutes() {
        let now = Mutex<Int64>(0)
        let conduct = OriginConduct { now.withLock { $0 } }
        let wanted = Manner(isAlone: true, saysIdentity: false)
        #expect(conduct.manner(of: "a") == Manner() && conduct.doubtsKept(of: "a"))
        conduct.wants(wanted, "a")
        conduct.trustKept(of: "a")
        now.withLock { $0 += 599_000_000_000 }
        #expect(conduct.manner(of: "a") == wanted && conduct.manner(of: "b") == Manner())
        #expect(!conduct.doubtsKept(of: "a") && conduct.doubtsKept(of: "b"))
        now.withLock { $0 += 1_000_000_000 }
        #expect(conduct.manner(of: "a") == Manner() && conduct.doubtsKept(of: "a"))
    }

    @Test func onlyOneJobAsksAnOriginWithoutIdentityWithinTenMinutes() {
        let now = Mutex<Int64>(0)
        let conduct = OriginConduct { now.withLock { $0 } }
        #expect(conduct.doubtsIdentity(of: "a"))
        conduct.trustIdentity(of: "b")
        #expect(!conduct.doubtsIdentity(of: "a") && !conduct.doubtsIdentity(of: "b") && conduct.doubtsIdentity(of: "c"))
        now.withLock { $0 += 600_000_000_000 }
        #expect(conduct.doubtsIdentity(of: "a"))
    }

    @Test func fasterPlainGETIsRememberedForTenMinutes() {
        let now = Mutex<Int64>(0)
        let conduct = OriginConduct { now.withLock { $0 } }
        #expect(!conduct.isFasterPlainly("a"))
        conduct.servedPlainlyFaster("a")
        #expect(conduct.isFasterPlainly("a") && !conduct.isFasterPlainly("b"))
        now.withLock { $0 += 600_000_000_000 }
        #expect(!conduct.isFasterPlainly("a"))
    }

    @Test func originLingersAsLongAsItsLastAnswerTookLong() {
        let conduct = OriginConduct()
        #expect(!conduct.lingers("a"))
        conduct.answered("a", after: .seconds(5))
        #expect(conduct.lingers("a") && !conduct.lingers("b"))
        conduct.answered("a", after: .milliseconds(4_999))
        #expect(!conduct.lingers("a"))
    }

    /// Otherwise each turn of a file that is refused beside it would wait for it anew.
    @Test func requestThatIsSilentForLongKeepsNoOtherWaiting() async {
        let now = Atomic<Int64>(0)
        let conduct = OriginConduct { now.load(ordering: .sequentiallyConsistent) }
        // A request that would have to wait gives up at once.
        let hasty = LeaseControl()
        hasty.ask(.abort)
        #expect(await conduct.admit("o", for: hasty) != nil)
        #expect(await conduct.admit("o", for: hasty) == nil, "the first one may be answered soon")
        // Each time as many more as are silent, plus one.
        for (seconds, count) in [(2, 2), (4, 4), (6, 8)] as [(Int64, Int)] {
            now.store(seconds * 1_000_000_000, ordering: .sequentiallyConsistent)
            for _ in 0..<count { #expect(await conduct.admit("o", for: hasty) != nil) }
            #expect(await conduct.admit("o", for: hasty) == nil)
        }
    }
}
