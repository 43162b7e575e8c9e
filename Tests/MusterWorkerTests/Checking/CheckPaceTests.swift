import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

/// How much a check leaves to fetches (adr/0048).
@Suite struct CheckPaceTests {
    @Test func readingIsSlowWhileBytesComeInAndFastOtherwise() {
        let clock = Atomic<Int64>(1_000_000_000)
        let pace = CheckPace { clock.load(ordering: .relaxed) }
        let second = Limits.checkRead.bytes
        #expect(pace.take(second) == 0)
        #expect(pace.take(1) == 1_000_000_000, "what was taken is paid for first")
        clock.store(10_000_000_000, ordering: .relaxed)
        pace.noteTraffic()
        #expect(pace.take(Limits.checkReadBeside.bytes) == 0, "an idle time is not made up for")
        #expect(pace.take(1) == 1_000_000_000)
        clock.store(20_000_000_000, ordering: .relaxed)
        #expect(pace.take(second) == 0)
        #expect(pace.take(1) == 1_000_000_000, "nothing came in for a while")
    }
}
