import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

struct WorkerMachineSyncTests {
    @Test func firstSyncIsAPollForAllSlots() {
        var harness = MachineHarness(slots: 4)
        let poll = harness.open()
        #expect(poll?.sequence == 1)
        #expect(poll?.settled == 0)
        #expect(poll?.room == 4)
        #expect(poll?.waitMilliseconds == 7_500)
        #expect(poll?.reports == [])
        #expect(poll?.sinks == [SinkStatus(name: "default")])
    }

    @Test func endedLeaseIsReportedAtOnceBesideAPoll() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1), lease(2)]).syncs.last
        #expect(poll?.room == 2)
        #expect(poll?.settled == 1)
        let news = harness.end(lease(1), network).syncs
        #expect(news.count == 1)
        #expect(news.first?.waitMilliseconds == 0)
        #expect(news.first?.reports.map(\.kind) == [.failed])
        // The poll is not settled while its answer is awaited.
        #expect(news.first?.settled == 1)
        // A lease whose end is not acknowledged is still said to be held.
        #expect(news.first?.held == [lease(1).name, lease(2).name])
    }

    @Test func atMostOnePollAndOneNewsSyncAreUnderWay() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        harness.answer(first, [lease(1), lease(2), lease(3)])
        let news = harness.end(lease(1), network).syncs.last
        #expect(harness.end(lease(2), network).syncs.isEmpty)
        #expect(harness.end(lease(3), network).syncs.isEmpty)
        let next = harness.answer(news).syncs
        #expect(next.count == 1)
        #expect(next.first?.reports.map(\.lease) == [lease(2).name, lease(3).name])
    }

    @Test func acknowledgedLeaseIsNotHeldAnyMore() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1)]).syncs.last
        let news = harness.end(lease(1), network).syncs.last
        harness.answer(news)
        let next = harness.answer(poll).syncs.last
        #expect(next?.held == [])
        #expect(next?.reports == [])
    }

    @Test func lostAnswerIsRepairedByTheNextSync() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1)]).syncs.last
        let news = harness.end(lease(1), network).syncs.last
        #expect(harness.fail(news).syncs.isEmpty)
        let again = harness.pass(.seconds(4)).syncs.first
        #expect(again?.reports == news?.reports)
        #expect(again?.held == [lease(1).name])
        #expect((again?.sequence ?? 0) > (news?.sequence ?? 0))
        // The poll was superseded and given up meanwhile, so its leases were never received.
        #expect(harness.effects.contains(.abandonSync(sequence: poll?.sequence ?? 0)))
        #expect(again?.settled == news?.sequence || again?.settled == (poll?.sequence ?? 0) - 1)
    }

    @Test func lateAndDoubledAnswersChangeNothing() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1)]).syncs.last
        harness.fail(poll)
        #expect(harness.answer(poll, [lease(2)]).isEmpty)
        #expect(harness.answer(first, [lease(3)]).isEmpty)
        let next = harness.pass(.seconds(4)).syncs.last
        #expect(next?.held == [lease(1).name])
    }

    @Test func answersOfAnOlderSessionChangeNothing() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        harness.fail(first, .sessionGone)
        harness.feed(.sessionOpened(SessionDocument(id: SessionID(2), ttlMilliseconds: 30_000)))
        #expect(harness.answer(first, [lease(1)], session: 1).isEmpty)
    }

    @Test func supersededPollMayStillBringLeases() {
        var harness = MachineHarness(slots: 3)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1)]).syncs.last
        let news = harness.end(lease(1), network).syncs.last
        #expect(news?.settled == 1)
        #expect(harness.answer(poll, [lease(2)]).started == [lease(2).name])
    }

    @Test func supersededPollIsGivenUpAfterAWhile() {
        var harness = MachineHarness(slots: 3)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1)]).syncs.last
        let news = harness.end(lease(1), network).syncs.last
        #expect(harness.answer(news).syncs.isEmpty)
        let later = harness.pass(.seconds(3))
        #expect(later.contains(.abandonSync(sequence: poll?.sequence ?? 0)))
        #expect(later.syncs.first?.settled == news?.sequence)
        #expect((later.syncs.first?.waitMilliseconds ?? 0) > 0)
    }

    @Test func progressIsDelayedAndTheNewestWins() {
        var harness = MachineHarness(slots: 1)
        let first = harness.open()
        harness.answer(first, [lease(1)])
        #expect(harness.feed(.job(lease(1).name, .progress(DurablePrefix(offset: 10, crc: 1), nil))).syncs.isEmpty)
        #expect(harness.feed(.job(lease(1).name, .progress(DurablePrefix(offset: 20, crc: 2), nil))).syncs.isEmpty)
        let syncs = harness.pass(.seconds(1)).syncs
        #expect(syncs.count == 1)
        #expect(syncs.first?.reports.map(\.durable) == [DurablePrefix(offset: 20, crc: 2)])
    }

    @Test func learnedFactsGoOutAtOnceAndAreNotCoalescedAway() {
        var harness = MachineHarness(slots: 1)
        let first = harness.open()
        harness.answer(first, [lease(1)])
        let news = harness.feed(.job(lease(1).name, .progress(nil, learned))).syncs.last
        #expect(news?.reports.first?.learned == learned)
        harness.feed(.job(lease(1).name, .progress(DurablePrefix(offset: 20, crc: 2), nil)))
        harness.fail(news)
        let again = harness.pass(.seconds(4)).syncs.first
        #expect(again?.reports.count == 1)
        #expect(again?.reports.first?.learned == learned)
        #expect(again?.reports.first?.durable?.offset == 20)
    }

    @Test func atMostThousandReportsTravelAtOnce() {
        var ledger = ReportLedger()
        for chunk in 1...1_500 {
            ledger.add(Report(lease: lease(Int64(chunk)).name, kind: chunk > 1_000 ? .done : .progress), now: 0)
        }
        let (reports, receipts) = ledger.carry(limit: Limits.reportsPerSync, now: 0)
        #expect(reports.count == 1_024)
        #expect(reports.prefix(500).allSatisfy { $0.kind == .done })
        #expect(ledger.acknowledge(receipts, now: 0).count == 500)
        #expect(ledger.count == 476)
        #expect(ledger.carry(limit: Limits.reportsPerSync, now: 0).reports.count == 476)
    }

    @Test func busyWorkerKeepsItsSessionAlive() {
        var harness = MachineHarness(slots: 1)
        let first = harness.open()
        #expect(harness.answer(first, [lease(1)]).syncs.isEmpty)
        // Its poll is not answered.
        let syncs = harness.pass(.seconds(11)).syncs
        #expect(syncs.map(\.room) == [0, 0])
        #expect(syncs.last?.waitMilliseconds == 0)
    }

    @Test func workerWithoutRoomListensForWishes() {
        var harness = MachineHarness(slots: 1)
        let first = harness.open()
        harness.answer(first, [lease(1)])
        let poll = harness.pass(.seconds(1)).syncs.last
        #expect(poll?.room == 0 && poll?.ahead == nil && (poll?.waitMilliseconds ?? 0) > 0)
        // Reports go in another sync beside the poll.
        #expect(harness.end(lease(1), network).syncs.first?.waitMilliseconds == 0)
    }

    @Test func coordinatorThatDoesNotWaitIsNotAskedInALoop() {
        var harness = MachineHarness()
        var poll = harness.open()
        #expect(harness.answer(poll).syncs.isEmpty)
        poll = harness.pass(.milliseconds(50)).syncs.last
        #expect(poll != nil)
    }

    @Test func receivedBytesAreToldOnce() {
        var harness = MachineHarness(slots: 1)
        let first = harness.open()
        harness.answer(first, [lease(1)])
        harness.feed(.received(100))
        let news = harness.end(lease(1), network).syncs.last
        #expect(news?.receivedBytes == 100)
        harness.feed(.received(11))
        harness.fail(news)
        let again = harness.pass(.seconds(4)).syncs.first
        #expect(again?.receivedBytes == 111)
        harness.answer(again)
        #expect(harness.effects.syncs.last?.receivedBytes == 0)
    }

    @Test func outageIsToldOnceAndSyncsGoOnWithAPause() {
        var harness = MachineHarness()
        var sync = harness.open()
        for _ in 0..<5 {
            harness.fail(sync)
            sync = harness.pass(.seconds(4)).syncs.last
            #expect(sync != nil)
        }
        #expect(harness.effects.count { $0 == .log(.unreachable(.unreachable)) } == 1)
        #expect(harness.answer(sync).contains(.log(.reachable)))
    }

    @Test func newsThatCameAfterASyncIsNotAcknowledgedByIt() {
        var harness = MachineHarness(slots: 1)
        let first = harness.open()
        harness.answer(first, [lease(1)])
        harness.feed(.job(lease(1).name, .progress(DurablePrefix(offset: 10, crc: 1), nil)))
        let sync = harness.pass(.seconds(1)).syncs.last
        #expect(sync?.reports.first?.durable?.offset == 10)
        harness.feed(.job(lease(1).name, .progress(DurablePrefix(offset: 20, crc: 2), nil)))
        harness.answer(sync)
        #expect(harness.pass(.seconds(1)).syncs.last?.reports.first?.durable?.offset == 20)
    }
}
