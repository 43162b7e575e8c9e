import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// Reports that the coordinator could not store.
struct WorkerMachineRefusalTests {
    private static func refused(_ lease: LeaseDocument) -> RefusedReport {
        RefusedReport(lease: lease.name, reason: "too large")
    }

    @Test func aRefusedReportStopsItsJobAndIsNotRepeated() {
        var harness = MachineHarness()
        let poll = harness.open()
        harness.answer(poll, [lease(1), lease(2)])
        let told = harness.feed(.job(lease(1).name, .progress(DurablePrefix(offset: 5, crc: 1), learned))).syncs.last
        #expect(told?.reports.map(\.lease) == [lease(1).name])
        let effects = harness.answer(told, refused: [Self.refused(lease(1))])
        #expect(effects.aborted == [lease(1).name])
        #expect(effects.contains(.log(.reportRefused(lease(1).name, "too large"))))
        // The lease is held until its job has stopped, and no more is reported on it.
        harness.feed(.job(lease(1).name, .progress(DurablePrefix(offset: 9, crc: 1), nil)))
        let later = harness.passAnswering(.seconds(30)).syncs
        #expect(!later.isEmpty && later.allSatisfy { $0.reports.isEmpty && $0.held.contains(lease(1).name) })
        harness.end(lease(1), .aborted)
        #expect(harness.passAnswering(.seconds(30)).syncs.last?.held == [lease(2).name])
    }

    @Test func aRefusedEndIsForgotten() {
        var harness = MachineHarness()
        let poll = harness.open()
        harness.answer(poll, [lease(1)])
        let told = harness.end(lease(1), done()).syncs.last
        #expect(told?.reports.map(\.kind) == [.done])
        let effects = harness.answer(told, refused: [Self.refused(lease(1))])
        #expect(effects.aborted.isEmpty && effects.contains(.log(.reportRefused(lease(1).name, "too large"))))
        let later = harness.passAnswering(.seconds(30)).syncs
        #expect(later.allSatisfy { $0.reports.isEmpty } && later.last?.held == [])
    }

    @Test func reportsSinceARefusedOneAreDroppedWithIt() {
        var harness = MachineHarness()
        let poll = harness.open()
        harness.answer(poll, [lease(1)])
        let told = harness.feed(.job(lease(1).name, .progress(DurablePrefix(offset: 5, crc: 1), learned))).syncs.last
        // The job ends while the answer is under way.
        harness.end(lease(1), done())
        harness.answer(told, refused: [Self.refused(lease(1))])
        let later = harness.passAnswering(.seconds(30)).syncs
        #expect(later.allSatisfy { $0.reports.isEmpty } && later.last?.held == [])
    }

    @Test func aRefusalOfAnUnknownLeaseChangesNothing() {
        var harness = MachineHarness()
        let poll = harness.open()
        let effects = harness.answer(poll, refused: [Self.refused(lease(9))])
        #expect(effects.aborted.isEmpty)
    }

    @Test func deferredReportComesWithALaterSyncAndTriggersNone() {
        var harness = MachineHarness()
        let poll = harness.open()
        harness.answer(poll, [lease(1), lease(2)])
        let told = harness.end(lease(1), done()).syncs.last
        let effects = harness.answer(told, deferred: [lease(1).name])
        #expect(effects.syncs.allSatisfy { $0.reports.isEmpty })
        // Reports on other leases are not held up.
        let news = harness.end(lease(2), network).syncs.last
        #expect(Set((news?.reports ?? []).map(\.lease)) == [lease(1).name, lease(2).name])
        harness.answer(news, deferred: [lease(1).name])
        let later = harness.pass(.seconds(2)).syncs.last
        #expect(later?.reports.map(\.kind) == [.done] && later?.held == [lease(1).name])
        harness.answer(later)
        #expect(harness.passAnswering(.seconds(30)).syncs.last?.held == [])
    }
}
