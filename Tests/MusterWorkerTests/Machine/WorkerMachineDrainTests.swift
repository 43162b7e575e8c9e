import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

struct WorkerMachineDrainTests {
    @Test func idleWorkerClosesItsSessionAndStops() {
        var harness = MachineHarness()
        harness.open()
        #expect(harness.feed(.drain).closings == 1)
        #expect(harness.feed(.sessionClosed).last == .stop)
    }

    @Test func aNewSessionNamesTheOneThatIsOver() {
        var harness = MachineHarness()
        harness.open(7)
        harness.feed(.syncFailed(SessionID(7), sequence: 1, .sessionGone))
        let asked = harness.effects.compactMap { effect -> SessionRequest? in
            if case .openSession(let request) = effect { request } else { nil }
        }
        #expect(asked.map(\.previous) == [nil, SessionID(7)])
    }

    @Test func workerWithoutSessionJustStops() {
        var harness = MachineHarness()
        harness.feed(.tick)
        #expect(harness.feed(.drain).last == .stop)
        #expect(harness.feed(.sessionOpened(SessionDocument(id: SessionID(1), ttlMilliseconds: 30_000))).isEmpty)
    }

    @Test func drainGivesBackFetchesAndQueuedLeases() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        harness.answer(first, [lease(1), lease(2, kind: .finalize), lease(3)])
        let effects = harness.feed(.drain)
        #expect(effects.released == [lease(1).name])
        let news = effects.syncs.last
        #expect(news?.room == 0)
        #expect(news?.reports.map(\.lease) == [lease(3).name])
        harness.end(lease(1), .released(DurablePrefix(offset: 3, crc: 3), nil))
        let next = harness.answer(news).syncs.last
        #expect(next?.reports.first?.durable?.offset == 3)
        #expect(harness.answer(next).closings == 0)
        let last = harness.end(lease(2, kind: .finalize), .done(nil, nil, nil)).syncs.last
        #expect(last?.reports.map(\.kind) == [.done])
        // Closed only when the last report is acknowledged.
        #expect(harness.answer(last).closings == 1)
    }

    @Test func longFinalizationIsGivenBackAfterFiveSeconds() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        harness.answer(first, [lease(2, kind: .finalize)])
        #expect(harness.feed(.drain).released.isEmpty)
        #expect(harness.pass(.seconds(5)).released == [lease(2, kind: .finalize).name])
    }

    @Test func drainEndsWithinTenSecondsWhateverHappens() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        harness.answer(first, [lease(1)])
        harness.feed(.drain)
        let effects = harness.pass(.seconds(10))
        #expect(effects.aborted == [lease(1).name])
        #expect(effects.last == .stop)
    }

    @Test func unreachableCoordinatorDoesNotKeepADrainFromClosing() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1)]).syncs.last
        harness.fail(poll)
        harness.feed(.drain)
        harness.end(lease(1), .released(nil, nil))
        var isStopped = false
        for _ in 0..<100 where !isStopped {
            harness.fail(harness.effects.syncs.last)
            isStopped = harness.pass(.milliseconds(100)).contains(.stop)
        }
        #expect(isStopped)
    }

    @Test func serversDrainIsADrain() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        let effects = harness.answer(first, [lease(1)], drain: true)
        #expect(effects.contains(.log(.draining)))
        #expect(effects.started.isEmpty)
        #expect(effects.syncs.last?.reports.map(\.kind) == [.released])
    }

    @Test func sessionThatIsGoneDuringADrainNeedsNoClosing() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1)]).syncs.last
        harness.feed(.drain)
        #expect(harness.fail(poll, .sessionGone).aborted == [lease(1).name])
        #expect(harness.end(lease(1), .aborted).last == .stop)
    }

    @Test func drainLetsARunningQuestionBeAnswered() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        harness.answer(first, [lease(1, kind: .resolve), lease(2, kind: .resolve), lease(3, kind: .resolve)])
        let effects = harness.feed(.drain)
        #expect(effects.released.isEmpty)
        let news = effects.syncs.last
        #expect(news?.reports.map(\.lease) == [lease(3).name], "what waited for a slot goes back")
        let answer = ResolverAnswer(url: "https://a/")
        harness.end(lease(1), .resolved(answer))
        let next = harness.answer(news).syncs.last
        #expect(next?.reports.first?.kind == .resolved)
        #expect(next?.reports.first?.resolved == answer)
        #expect(harness.pass(.seconds(5)).released == [lease(2).name], "a silent resolver holds up no drain")
    }
}
