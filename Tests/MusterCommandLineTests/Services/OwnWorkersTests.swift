import Testing

@testable import MusterCommandLine

/// The state of the workers of `get`.
@Suite struct OwnWorkersTests {
    @Test func commandIsOverWithTheLastWorkerThatWasToldToLeave() {
        let own = OwnWorkers(2)
        own.began()
        #expect(!own.leave())
        #expect(own.leave())
    }

    @Test func workersThatEndWithTheirCommandDoNotLeave() {
        let own = OwnWorkers(1)
        own.began()
        own.areEnding()
        #expect(!own.leave())
    }
}
