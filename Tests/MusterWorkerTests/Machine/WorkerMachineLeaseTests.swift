import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

struct WorkerMachineLeaseTests {
    @Test func leasesBeyondTheSlotsWaitAndThenGoBack() {
        var harness = MachineHarness(slots: 1)
        let first = harness.open()
        #expect(harness.answer(first, [lease(1), lease(2)]).started == [lease(1).name])
        let syncs = harness.pass(.seconds(5)).syncs
        let report = syncs.flatMap(\.reports).first
        #expect(report?.lease == lease(2).name)
        #expect(report?.kind == .released)
        #expect(report?.durable == nil)
    }

    @Test func freedSlotStartsTheNextLease() {
        var harness = MachineHarness(slots: 1)
        let first = harness.open()
        harness.answer(first, [lease(1), lease(2)])
        #expect(harness.feed(.job(lease(1).name, .fetched)).started == [lease(2).name])
    }

    @Test func smallFilesAreFetchedAhead() {
        var harness = MachineHarness(slots: 4)
        var poll = harness.open()
        poll = harness.answer(poll, [lease(1)]).syncs.last
        #expect(poll?.room == 3)
        harness.end(lease(1), done(10_000))
        #expect(harness.effects.syncs.last?.room == 16)
    }

    @Test func roomShrinksWithTheSizeOfFiles() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        harness.answer(first, [lease(1)])
        harness.end(lease(1), done(1 << 20))
        // 4 MiB may wait: four files of 1 MiB.
        #expect(harness.effects.syncs.last?.room == 8)
        var large = MachineHarness(slots: 4)
        let other = large.open()
        large.answer(other, [lease(1)])
        large.end(lease(1), done(64 << 20))
        #expect(large.effects.syncs.last?.room == 4)
    }

    @Test func verifyingALargeFileSaysNothingAboutTheSizeOfFiles() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        harness.answer(first, [lease(1), lease(2, kind: .finalize)])
        harness.end(lease(1), done(64 << 20))
        harness.end(lease(2, kind: .finalize), .done(nil, nil, nil, bytes: 0))
        #expect(harness.machine.meanBytes == 64 << 20)
    }

    @Test func finishingLeasesTakeRoomButNoSlot() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        harness.answer(first, [lease(1), lease(2)])
        harness.feed(.job(lease(1).name, .fetched))
        #expect(harness.machine.room == 0)
        #expect(harness.machine.leases.counts.occupying == 1)
    }

    @Test func doubledGrantStartsOnce() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        harness.answer(first, [lease(1), lease(1)])
        #expect(harness.effects.started == [lease(1).name])
    }

    @Test func restartAndReleaseAreReported() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        harness.answer(first, [lease(1), lease(2)])
        let news = harness.end(lease(1), .restart("no ranges")).syncs.last
        #expect(news?.reports.map(\.kind) == [.restart])
        harness.end(lease(2), .released(DurablePrefix(offset: 7, crc: 7), learned))
        let next = harness.answer(news).syncs.last
        #expect(next?.reports.first?.durable?.offset == 7)
        #expect(next?.reports.first?.learned == learned)
    }

    @Test func terminalReportKeepsWhatWasLearnedAndDurable() {
        var ledger = ReportLedger()
        let name = lease(1).name
        ledger.add(
            Report(lease: name, kind: .progress, durable: DurablePrefix(offset: 9, crc: 9), learned: learned),
            now: 0
        )
        ledger.add(Report(lease: name, kind: .failed, failure: Report.Failure(kind: .network, detail: "x")), now: 0)
        let report = ledger.carry(limit: 10, now: 0).reports.first
        #expect(report?.learned == learned)
        #expect(report?.durable?.offset == 9)
        #expect(report?.kind == .failed)
    }

    @Test func fullSinkIsParkedAndItsLeasesGoBack() {
        var harness = MachineHarness(slots: 4, sinks: [SinkStatus(name: "a"), SinkStatus(name: "b")])
        let first = harness.open()
        harness.answer(first, [lease(1, sink: "a"), lease(2, sink: "a"), lease(3, sink: "b")])
        let full = SinkTrouble(kind: .storageFull, detail: "no space")
        let effects = harness.end(lease(1, sink: "a"), .sinkTrouble(full, DurablePrefix(offset: 4, crc: 4), nil))
        #expect(effects.released == [lease(2, sink: "a").name])
        let news = effects.syncs.last
        #expect(news?.sinks.first?.parked == .storageFull)
        #expect(news?.sinks.last?.parked == nil)
        #expect(news?.reports.map(\.kind) == [.released])
        #expect(news?.reports.first?.durable?.offset == 4)
        // There is room for the other sink.
        #expect((news?.room ?? 0) > 0)
        // A lease of the parked sink that was already on its way goes straight back.
        let next = harness.answer(news, [lease(4, sink: "a")])
        #expect(next.started.isEmpty)
        #expect(next.syncs.last?.reports.map(\.kind) == [.released])
    }

    @Test func parkedSinkIsProbedUntilItWorks() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        harness.answer(first, [lease(1)])
        harness.end(lease(1), .sinkTrouble(SinkTrouble(kind: .storage, detail: "gone"), nil, nil))
        #expect(harness.machine.room == 0)
        for _ in 0..<3 {
            let effects = harness.passAnswering(.seconds(60))
            #expect(effects.contains(.probe(sink: "default")))
            harness.feed(.sinkProbed("default", .trouble(SinkTrouble(kind: .storage, detail: "gone"))))
        }
        harness.passAnswering(.seconds(60))
        let effects = harness.feed(.sinkProbed("default", .well(freeBytes: 5)))
        #expect(effects.contains(.log(.sinkRecovered("default"))))
        #expect(effects.syncs.last?.sinks == [SinkStatus(name: "default", freeBytes: 5)])
        #expect(effects.syncs.last?.room == 4)
    }

    @Test func sinkInWhichASessionBeginsLateDoesNotWaitForItsProbe() {
        var harness = MachineHarness(slots: 4)
        harness.feed(.tick)
        let slow = SinkStatus(name: "default", parked: .storage, detail: "it has not answered yet")
        harness.feed(.sessionOpened(SessionDocument(id: SessionID(1), ttlMilliseconds: 30_000), sinks: [slow]))
        #expect(harness.machine.room == 0)
        let effects = harness.feed(.sinkProbed("default", .well(freeBytes: 5)))
        #expect(effects.contains(.log(.sinkRecovered("default"))))
        #expect(harness.machine.room == 4)
        #expect(harness.feed(.sinkProbed("default", .trouble(SinkTrouble(kind: .storage, detail: "gone")))).isEmpty)
    }

    @Test func whatIsWrongWithASinkIsLoggedWhenItIsSomethingElse() {
        var harness = MachineHarness(slots: 4)
        harness.answer(harness.open(), [lease(1)])
        harness.end(lease(1), .sinkTrouble(SinkTrouble(kind: .storage, detail: "gone"), nil, nil))
        harness.passAnswering(.seconds(60))
        let other = SinkTrouble(kind: .storage, detail: "read-only")
        #expect(harness.feed(.sinkProbed("default", .trouble(other))).contains(.log(.sinkParked("default", other))))
        harness.passAnswering(.seconds(60))
        #expect(!harness.feed(.sinkProbed("default", .trouble(other))).contains(.log(.sinkParked("default", other))))
    }

    @Test func sinkThatWasBadAtTheStartIsNotOffered() {
        var harness = MachineHarness(sinks: [SinkStatus(name: "a", parked: .storage, detail: "absent")])
        #expect(harness.feed(.tick).contains(.probe(sink: "a")))
        #expect(harness.open() == nil)
    }

    @Test func freshURLIsReportedAtOnceUntilItIsAcknowledged() {
        var harness = MachineHarness()
        let first = harness.open()
        harness.answer(first, [lease(1, kind: .resolve)])
        let answer = ResolverAnswer(url: "https://a/", headers: ["X-Fresh": "1"])
        let sync = harness.end(lease(1), .resolved(answer)).syncs.last
        #expect(sync?.reports == [Report(lease: lease(1).name, kind: .resolved, resolved: answer)])
        harness.fail(sync)
        let again = harness.pass(.seconds(5)).syncs.last
        #expect(again?.reports == sync?.reports)
        #expect(again?.held == [lease(1).name])
        harness.answer(again)
        #expect(harness.machine.ledger.isEmpty)
        #expect(harness.machine.leases[lease(1).name] == nil)
    }

    @Test func questionsSayNothingAboutTheSizeOfFiles() {
        var harness = MachineHarness()
        let first = harness.open()
        harness.answer(first, [lease(1, kind: .resolve)])
        harness.end(lease(1), .resolved(ResolverAnswer(url: "https://a/")))
        #expect(harness.machine.meanBytes == nil)
    }
}
