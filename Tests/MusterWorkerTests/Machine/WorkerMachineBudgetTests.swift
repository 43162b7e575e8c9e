import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

struct WorkerMachineBudgetTests {
    private let share = BudgetShare(name: "group:g", bytesPerSecond: 1_000)

    private func limited(_ chunk: Int64) -> LeaseDocument {
        var document = lease(chunk)
        document.group = "g"
        return document
    }

    private func told(_ bytes: Int64, keepingTo rate: Int64 = 1_000, isShort: Bool = false) -> Traffic {
        Traffic(budget: "group:g", bytes: bytes, bytesPerSecond: rate, isShort: isShort)
    }

    @Test func sharesAreTakenInBeforeTheLeasesOfTheSameAnswerBegin() {
        var harness = MachineHarness()
        let effects = harness.answer(harness.open(), [limited(1)], budgets: [share])
        let order = effects.compactMap { effect -> String? in
            switch effect {
            case .share(let shares): "share \(shares.count)"
            case .start: "start"
            case .openSession, .sync, .abandonSync, .closeSession, .guardAddresses, .trust,
                .suspendWriting, .resumeWriting, .release, .abort, .shrink, .lengthen, .giveBackUntouched, .probe,
                .look,
                .stopLooking, .log, .stop:
                nil
            }
        }
        #expect(order == ["share 1", "start"])
    }

    @Test func workerWithAShareSyncsEverySecondAndTellsWhatItUsed() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [limited(1)], budgets: [share])
        harness.feed(.traffic([Traffic(budget: "group:g", bytes: 300)]))
        harness.feed(.traffic([Traffic(budget: "group:g", bytes: 40)]))
        #expect(harness.pass(.milliseconds(999)).syncs.isEmpty)
        let sync = harness.pass(.milliseconds(1)).syncs.last
        #expect(sync?.traffic == [told(340)])
        harness.answer(sync, budgets: [share])
        #expect(harness.pass(.seconds(1)).syncs.last?.traffic == [told(0)])
    }

    @Test func pollOfAWorkerWithAShareIsOverBeforeTheNextSyncIsDue() {
        var harness = MachineHarness(slots: 2)
        let poll = harness.answer(harness.open(), [limited(1)], budgets: [share]).syncs.last
        #expect(poll?.waitMilliseconds == 900)
        #expect(poll?.traffic == [told(0)])
    }

    @Test func useThatNoAnswerAcknowledgedIsToldAgain() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [limited(1)], budgets: [share])
        harness.feed(.traffic([Traffic(budget: "group:g", bytes: 300, isShort: true)]))
        harness.fail(harness.pass(.seconds(1)).syncs.last)
        harness.feed(.traffic([Traffic(budget: "group:g", bytes: 5)]))
        #expect(harness.pass(.seconds(4)).syncs.last?.traffic == [told(305, isShort: true)])
    }

    /// The loop counts the received bytes at every step, also when only a sync is due.
    @Test func bytesUsedBeforeASyncIsSentAreInIt() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [limited(1)], budgets: [share])
        let due = harness.now + 1_000_000_000
        #expect(harness.machine.step(.received(400), now: due).isEmpty)
        #expect(harness.machine.step(.traffic([Traffic(budget: "group:g", bytes: 300)]), now: due).isEmpty)
        let sync = harness.machine.step(.tick, now: due).syncs.last
        #expect(sync?.receivedBytes == 400)
        #expect(sync?.traffic == [told(300)])
    }

    @Test func workerThatIsToldToKeepToLessSaysAtOnceThatItDoes() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [limited(1)], budgets: [share])
        let less = BudgetShare(name: "group:g", bytesPerSecond: 400)
        let effects = harness.answer(harness.pass(.seconds(1)).syncs.last, budgets: [less])
        #expect(effects.contains(.share([less])))
        #expect(effects.syncs.last?.traffic == [told(0, keepingTo: 400)])
        #expect(effects.syncs.last?.waitMilliseconds == 0)
        // A larger share is not reported at once.
        #expect(harness.answer(effects.syncs.last, budgets: [share]).syncs.isEmpty)
    }

    @Test func budgetThatAnAnswerDoesNotNameLimitsNoMore() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [limited(1)], budgets: [share])
        let sync = harness.pass(.seconds(1)).syncs.last
        #expect(harness.answer(sync, budgets: nil).contains(.share([])))
        #expect(harness.pass(.seconds(1)).syncs.map(\.traffic) == [nil], "it only listens")
    }

    @Test func answerToASupersededSyncTakesNoShareAwayAndRaisesNone() {
        var harness = MachineHarness(slots: 2)
        let poll = harness.answer(harness.open(), [limited(1)], budgets: [share]).syncs.last
        let news = harness.end(limited(1), network).syncs.last
        #expect(harness.answer(poll, budgets: nil).allSatisfy { if case .share = $0 { false } else { true } })
        let next = harness.answer(news, budgets: [share]).syncs.last
        harness.answer(next, [limited(2)], budgets: [share])
        // Such an answer still brings the share that a lease of its own needs.
        var other = MachineHarness(slots: 2)
        let late = other.answer(other.open(), [lease(3)]).syncs.last
        other.end(lease(3), network)
        let effects = other.answer(late, [limited(4)], budgets: [share])
        #expect(effects.contains(.share([share])))
    }

    @Test func leaseWhoseShareIsNothingYetBeginsWhenItIsMore() {
        var harness = MachineHarness(slots: 4)
        let none = BudgetShare(name: "group:g", bytesPerSecond: 0)
        let effects = harness.answer(harness.open(), [limited(1), lease(2)], budgets: [none])
        #expect(effects.started == [lease(2).name])
        let poll = effects.syncs.last
        #expect(harness.answer(poll, budgets: [share]).started == [limited(1).name])
    }

    @Test func lostSessionEndsItsShares() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [limited(1)], budgets: [share])
        let effects = harness.fail(harness.pass(.seconds(1)).syncs.last, .sessionGone)
        #expect(effects.contains(.share([])))
    }

    @Test func ratesOfTheWorkerItselfAreShown() {
        var configuration = MachineConfiguration(
            name: "w", version: "1", sinks: [SinkStatus(name: "default")], slots: 1)
        configuration.bytesPerSecond = 5
        var machine = WorkerMachine(configuration, seed: 1)
        guard case .openSession(let request)? = machine.step(.tick, now: 0).first else {
            Issue.record("no session was asked for")
            return
        }
        #expect(request.bytesPerSecond == 5)
    }
}
