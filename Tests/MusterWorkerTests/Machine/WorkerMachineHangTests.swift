import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// What follows from a call to a sink that does not return (I19).
@Suite struct WorkerMachineHangTests {
    @Test func nothingMoreIsTakenForASinkThatHangsAndWhatHasNotBegunIsGivenBack() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [lease(1, lane: 1), lease(2, lane: 1)])
        let begun = harness.now
        harness.passAnswering(.milliseconds(500))
        let effects = harness.feed(.sinkHangs("default", since: begun))
        #expect(effects.contains(.log(.sinkParked("default", SinkStation.hang))))
        #expect(effects.released == [lease(1).name])
        #expect(effects.syncs.last?.reports.map(\.lease) == [lease(2).name])
        #expect(harness.machine.room == 0)
        #expect(!effects.contains { if case .log(.sessionLost) = $0 { true } else { false } })
    }

    /// The job that waits for the call can't be ended. Its lease goes to another session only when the worker gives up its own session.
    @Test func sessionWhoseJobsHangIsGivenUpForOnceAndLaterEachTime() {
        for (hangs, patience) in [30, 60, 120, 240, 240].enumerated() {
            var harness = MachineHarness(slots: 2)
            harness.machine.sinks[0].hangs = hangs
            harness.answer(harness.open(), [lease(1)])
            let begun = harness.now
            harness.passAnswering(.seconds(patience - 1))
            #expect(harness.feed(.sinkHangs("default", since: begun)).openings == 0, "after \(patience - 1) s")
            harness.passAnswering(.seconds(1))
            let effects = harness.feed(.sinkHangs("default", since: begun))
            #expect(effects.openings == 1 && effects.aborted == [lease(1).name], "after \(patience) s")
            #expect(harness.machine.sinks[0].hangs == hangs + 1)
            // The call does not belong to the session that follows.
            let well = SinkStatus(name: "default")
            harness.feed(.sessionOpened(SessionDocument(id: SessionID(2), ttlMilliseconds: 30_000), sinks: [well]))
            harness.pass(.seconds(600))
            #expect(harness.feed(.sinkHangs("default", since: begun)).openings == 0)
        }
    }

    @Test func sinkOfWhichNothingIsHeldCostsNoSession() {
        var harness = MachineHarness(slots: 2)
        harness.answer(harness.open())
        let begun = harness.now
        harness.passAnswering(.seconds(600))
        #expect(harness.feed(.sinkHangs("default", since: begun)).openings == 0)
    }
}
