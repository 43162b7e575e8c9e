import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

struct WorkerMachineShrinkTests {
    /// A planned chunk of 8 MiB in the middle of a file.
    private func chunk(_ number: Int64) -> LeaseDocument {
        var document = lease(number)
        document.start = 8 * mebibyte
        document.end = 16 * mebibyte
        document.planned = true
        document.resume = DurablePrefix(offset: 9 * mebibyte, crc: 1)
        return document
    }

    private func wish(_ lease: LeaseDocument, _ end: Int64) -> Shrink { Shrink(lease: lease.name, end: end) }

    /// A sync that awaits its answer while the first chunk runs.
    private func sync(_ harness: inout MachineHarness) -> SyncRequest? {
        harness.feed(.job(chunk(1).name, .progress(DurablePrefix(offset: 10 * mebibyte, crc: 2), nil)))
        return harness.pass(.seconds(1)).syncs.last
    }

    @Test func jobOfWhichNothingHasComeIsAskedForItsLease() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [chunk(1)])
        let sync = harness.pass(.seconds(10)).syncs.last
        let wish = Shrink(lease: chunk(1).name, end: chunk(1).start, isUntouched: true)
        #expect(harness.answer(sync, shrink: [wish]).contains(.giveBackUntouched(chunk(1).name)))
    }

    @Test func runningJobIsAskedAndItsAnswerReportedAtOnce() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [chunk(1)])
        let sync = harness.pass(.seconds(10)).syncs.last
        let effects = harness.answer(sync, shrink: [wish(chunk(1), 12 * mebibyte)])
        #expect(effects.contains(.shrink(chunk(1).name, end: 12 * mebibyte)))
        #expect(effects.syncs.allSatisfy { $0.waitMilliseconds > 0 })
        let news = harness.feed(.job(chunk(1).name, .shrunk(end: 13 * mebibyte))).syncs.last
        #expect(news?.reports == [Report(lease: chunk(1).name, kind: .shrunk, end: 13 * mebibyte)])
        // Until that is acknowledged, no other report on the lease is sent.
        harness.end(chunk(1), done(13 * mebibyte))
        harness.fail(news)
        let again = harness.pass(.seconds(4)).syncs.last
        #expect(again?.reports == news?.reports)
        #expect(again?.held == [chunk(1).name])
        let last = harness.answer(again).syncs.last
        #expect(last?.reports.map(\.kind) == [.done])
        #expect(last?.reports.first?.durable?.offset == 13 * mebibyte)
        harness.answer(last)
        #expect(harness.machine.ledger.isEmpty)
        #expect(harness.machine.leases.names.isEmpty)
    }

    @Test func leaseThatWaitsForASlotBeginsWithTheShorterChunk() {
        var harness = MachineHarness(slots: 1)
        let effects = harness.answer(harness.open(), [chunk(1), chunk(2)])
        #expect(effects.started == [chunk(1).name])
        let sync = sync(&harness)
        let news = harness.answer(sync, shrink: [wish(chunk(2), 10 * mebibyte)]).syncs.last
        #expect(news?.reports == [Report(lease: chunk(2).name, kind: .shrunk, end: 10 * mebibyte)])
        let started = harness.end(chunk(1), done()).compactMap { effect in
            if case .start(let document, _) = effect { document.end } else { nil }
        }
        #expect(started == [10 * mebibyte])
    }

    @Test func durableBytesAreNotGivenAway() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [chunk(1), chunk(2)])
        let news = harness.answer(sync(&harness), shrink: [wish(chunk(2), 8 * mebibyte + 1)]).syncs.last
        #expect(news?.reports.map(\.end) == [9 * mebibyte])
    }

    @Test func requestThatComesTooLateIsAnsweredWithTheOldEnd() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [chunk(1)])
        let sync = sync(&harness)
        harness.feed(.job(chunk(1).name, .fetched))
        let news = harness.answer(sync, shrink: [wish(chunk(1), 10 * mebibyte)]).syncs.last
        #expect(news?.reports.map(\.end) == [16 * mebibyte])
    }

    @Test func tailGivenBackReachesTheJobAndItsLaterEndTheCoordinator() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [chunk(1), chunk(2)])
        var sync = sync(&harness)
        sync = harness.answer(sync, shrink: [wish(chunk(2), 10 * mebibyte)]).syncs.last
        let further = Shrink(lease: chunk(1).name, end: 20 * mebibyte, isFurther: true)
        let queued = Shrink(lease: chunk(2).name, end: 12 * mebibyte, isFurther: true)
        let effects = harness.answer(sync, shrink: [further, queued])
        #expect(effects.contains(.lengthen(chunk(1).name, end: 20 * mebibyte)))
        #expect(effects.syncs.last?.reports == [Report(lease: chunk(2).name, kind: .shrunk, end: 12 * mebibyte)])
        let news = harness.answer(effects.syncs.last).syncs.last
        #expect(news?.reports.isEmpty != false)
        harness.feed(.job(chunk(1).name, .shrunk(end: 20 * mebibyte)))
        let told = harness.effects.syncs.last
        #expect(told?.reports == [Report(lease: chunk(1).name, kind: .shrunk, end: 20 * mebibyte)])
    }

    @Test func jobThatHasAllBytesIgnoresATailGivenBack() {
        var harness = MachineHarness(slots: 1)
        harness.answer(harness.open(), [chunk(1)])
        let sync = sync(&harness)
        harness.feed(.job(chunk(1).name, .fetched))
        let further = Shrink(lease: chunk(1).name, end: 20 * mebibyte, isFurther: true)
        let effects = harness.answer(sync, shrink: [further])
        #expect(effects.allSatisfy { if case .lengthen = $0 { false } else { true } })
        #expect(harness.machine.ledger.isEmpty)
    }

    @Test func endingJobsAndOtherKindsAreNotAsked() {
        var harness = MachineHarness(slots: 4)
        harness.answer(harness.open(), [chunk(1), lease(2, kind: .purge)])
        harness.end(chunk(1), network)
        let effects = harness.answer(
            harness.effects.syncs.last,
            shrink: [wish(chunk(1), 9), wish(lease(2), 9), wish(lease(3), 9)]
        )
        #expect(effects.allSatisfy { if case .shrink = $0 { false } else { true } })
        #expect(harness.machine.ledger.isEmpty)
    }

    @Test func learnedFactsFollowTheReportOfANearerEnd() {
        var ledger = ReportLedger()
        let name = lease(1).name
        ledger.add(
            Report(lease: name, kind: .progress, durable: DurablePrefix(offset: 9, crc: 9), learned: learned), now: 0)
        ledger.add(Report(lease: name, kind: .shrunk, end: 20), now: 0)
        ledger.add(Report(lease: name, kind: .progress, durable: DurablePrefix(offset: 12, crc: 12)), now: 0)
        #expect(ledger.urgentCount == 1)
        let first = ledger.carry(limit: 10, now: 0)
        #expect(first.reports == [Report(lease: name, kind: .shrunk, end: 20)])
        // The same answer given twice is one report.
        ledger.add(Report(lease: name, kind: .shrunk, end: 20), now: 0)
        #expect(ledger.urgentCount == 0)
        #expect(ledger.acknowledge(first.receipts, now: 0) == [])
        let second = ledger.carry(limit: 10, now: 0).reports
        #expect(second.map(\.durable?.offset) == [12])
        #expect(second.map(\.learned) == [learned])
        #expect(ledger.urgentCount == 0)
    }

    @Test func nearerEndReplacesOneThatWasNotAcknowledged() {
        var ledger = ReportLedger()
        let name = lease(1).name
        ledger.add(Report(lease: name, kind: .shrunk, end: 20), now: 0)
        let first = ledger.carry(limit: 10, now: 0)
        ledger.add(Report(lease: name, kind: .shrunk, end: 15), now: 0)
        ledger.add(Report(lease: name, kind: .done), now: 0)
        #expect(ledger.acknowledge(first.receipts, now: 0) == [])
        let second = ledger.carry(limit: 10, now: 0)
        #expect(second.reports.map(\.end) == [15])
        #expect(ledger.acknowledge(second.receipts, now: 0) == [])
        let third = ledger.carry(limit: 10, now: 0)
        #expect(third.reports.map(\.kind) == [.done])
        #expect(ledger.acknowledge(third.receipts, now: 0) == [name])
        #expect(ledger.isEmpty)
    }
}
