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
        conduct.answered("b")
        #expect(conduct.isSilent("a") && !conduct.isSilent("b"))
        now.withLock { $0 += 299_000_000_000 }
        #expect(conduct.isSilent("a"))
        now.withLock { $0 += 1_000_000_000 }
        #expect(!conduct.isSilent("a"))
    }
}
