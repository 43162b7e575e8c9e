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

    /// There are two lanes; the first transfer and the coordinator's first answer take the given milliseconds.
    @Test(
        arguments: [(100, 100, 4), (100, 60, 4), (100, 51, 2), (100, 1, 0), (1, 100, 62), (2_000, 20, 0)]
            as [(Int64, Int64, Int)])
    func leasesAreTakenAheadForEachLaneThatBridgeTwoRoundTrips(transfer: Int64, answer: Int64, ahead: Int) {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        #expect(first?.room == 4 && first?.ahead == nil, "it is not known yet how long anything takes")
        harness.answer(first, [lease(1, lane: 1), lease(2, lane: 1), lease(3, lane: 2)])
        harness.now += transfer * 1_000_000
        let news = harness.end(lease(1, lane: 1), done()).syncs.last
        #expect(news?.ahead == nil)
        harness.now += answer * 1_000_000
        harness.answer(news)
        #expect(harness.machine.ahead == ahead)
    }

    @Test func onlyTransfersSayHowManyLeasesAreTakenAhead() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        harness.answer(first, [lease(1, kind: .finalize), lease(2, kind: .resolve), lease(3, kind: .purge)])
        harness.now += 1_000_000
        harness.end(lease(1, kind: .finalize), .done(nil, nil, nil))
        harness.end(lease(2, kind: .resolve), .resolved(ResolverAnswer(url: "https://a/")))
        harness.end(lease(3, kind: .purge), .done(nil, nil, nil))
        #expect(harness.machine.meanTime == nil && harness.machine.ahead == 0)
    }

    /// Otherwise an origin that refuses at once would be asked in rounds of one lease per lane.
    @Test(arguments: [(404, true), (206, false), (nil, false)] as [(Int?, Bool)])
    func refusalsSayHowLongTransfersTakeAndSilencesDoNot(status: Int?, isCounted: Bool) {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        harness.answer(first, [lease(1, lane: 1)])
        harness.now += 1_000_000
        var failure = Report.Failure(kind: status == 404 ? .notFound : .tooSlow, detail: "")
        failure.status = status
        harness.end(lease(1, lane: 1), .failed(failure, nil, nil))
        #expect(harness.machine.meanTime == (isCounted ? 1_000_000 : nil))
    }

    @Test func oneLeaseOfALaneIsAtWorkAtATime() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        let leases = [lease(1, lane: 1), lease(2, lane: 1), lease(3, lane: 2), lease(4, lane: 1)]
        #expect(harness.answer(first, leases).started == [leases[0].name, leases[2].name])
        #expect(harness.machine.room == 2, "what waits in a lane that is busy needs no slot")
        // The next lease of the lane begins when the last byte has come; the file is put in place meanwhile.
        #expect(harness.feed(.job(leases[0].name, .fetched)).started == [leases[1].name])
        #expect(harness.end(leases[0], done()).started.isEmpty)
        #expect(harness.end(leases[1], network).started == [leases[3].name])
    }

    @Test func theLeasesOfALaneBeginInTheOrderInWhichTheyWereGranted() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        // The most urgent one was granted first.
        let leases = [lease(1, epoch: 7, lane: 1), lease(2, epoch: 8, lane: 1), lease(3, epoch: 6, lane: 1)]
        #expect(harness.answer(first, leases).started == [leases[2].name])
        #expect(harness.end(leases[2], done()).started == [leases[0].name])
        #expect(harness.end(leases[0], done()).started == [leases[1].name])
    }

    @Test func theTransfersOfALaneRunInOnePlace() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        let leases = [lease(1, lane: 7), lease(2, lane: 9), lease(3, lane: 9), lease(4, lane: 7)]
        harness.answer(first, leases)
        harness.end(leases[1], done())
        harness.end(leases[0], done())
        let seats = harness.effects.compactMap { effect -> [Int64?]? in
            if case .start(let lease, let seat) = effect { [lease.lane, seat.map(Int64.init)] } else { nil }
        }
        #expect(seats == [[7, 0], [9, 1], [9, 1], [7, 0]])
    }

    @Test func aLaneIsBusyUntilAnAbortedTransferHasStopped() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        let leases = [lease(1, lane: 1), lease(2, lane: 1)]
        let sync = harness.answer(first, leases).syncs.last
        #expect(harness.answer(sync, lost: [leases[0].name]).started.isEmpty)
        #expect(harness.end(leases[0], .released(nil, nil)).started == [leases[1].name])
    }

    @Test func leasesThatWaitForAnOriginThatRefusesGoBack() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        let leases = [
            lease(1, lane: 1, origin: "a"), lease(2, lane: 1, origin: "a"), lease(3, lane: 2, origin: "b"),
            lease(4, lane: 2, origin: "b"),
        ]
        harness.answer(first, leases)
        var refusal = Report.Failure(kind: .httpStatus(429), detail: "slow down")
        refusal.status = 429
        let effects = harness.end(leases[0], .failed(refusal, nil, nil))
        #expect(effects.started.isEmpty)
        #expect(effects.syncs.last?.reports.map(\.kind) == [.failed, .released])
        #expect(effects.syncs.last?.reports.last?.lease == leases[1].name)
        #expect(harness.end(leases[2], done()).started == [leases[3].name])
    }

    @Test func aLeaseThatWaitsIsGivenBackWhenItsLaneIsWanted() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        let leases = [lease(1, lane: 1), lease(2, lane: 1)]
        let sync = harness.answer(first, leases).syncs.last
        let effects = harness.answer(sync, shrink: leases.map { Shrink(lease: $0.name, end: 0) })
        #expect(effects.contains { if case .shrink(leases[0].name, end: 0) = $0 { true } else { false } })
        #expect(effects.syncs.last?.reports.map(\.lease) == [leases[1].name])
        #expect(effects.syncs.last?.reports.map(\.kind) == [.released])
    }

    @Test func leasesWhoseBytesHaveComeTakeNoSlot() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        harness.answer(first, [lease(1), lease(2)])
        harness.feed(.job(lease(1).name, .fetched))
        #expect(harness.machine.room == 1)
        #expect(harness.machine.leases.counts.occupying == 1)
    }

    @Test func leasesThatAreNotDurableYetKeepNoMoreFilesOpenThanAllowed() {
        var harness = MachineHarness(slots: 1)
        let first = harness.open()
        let leases = (1...6).map { lease($0, lane: 1) }
        harness.answer(first, leases)
        for lease in leases.prefix(4) { harness.feed(.job(lease.name, .fetched)) }
        #expect(harness.effects.started == leases.prefix(4).map(\.name))
        #expect(harness.machine.room == 0)
        #expect(harness.end(leases[1], done()).started == [leases[4].name])
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
        let news = harness.end(lease(1), .restart("no ranges", on: .stream)).syncs.last
        #expect(news?.reports.map(\.kind) == [.restart])
        #expect(news?.reports.map(\.rung) == [.stream])
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

    /// Deleting makes room in a full sink. The coordinator grants a purge that failed there again after a pause.
    @Test func inAFullSinkFilesAreDeletedAllTheSame() {
        var harness = MachineHarness(slots: 4)
        let first = harness.open()
        harness.answer(first, [lease(1)])
        let full = SinkTrouble(kind: .storageFull, detail: "no space")
        let news = harness.end(lease(1), .sinkTrouble(full, nil, nil)).syncs.last
        #expect((news?.room ?? 0) > 0)
        let purge = lease(2, kind: .purge)
        let next = harness.answer(news, [purge, lease(3)])
        #expect(next.started == [purge.name])
        #expect(next.syncs.last?.reports.map(\.lease) == [lease(3).name])
        harness.answer(next.syncs.last)
        let report = harness.end(purge, .sinkTrouble(full, nil, nil)).syncs.last?.reports.last
        #expect(report?.lease == purge.name && report?.kind == .failed && report?.failure?.kind == .storageFull)
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

    /// Otherwise a file system that came back without the session's directory would keep the sink parked for good.
    @Test func anotherSessionBeginsWhereASinkHasLostTheSession() {
        var harness = MachineHarness(slots: 4)
        harness.answer(harness.open(), [lease(1)])
        harness.end(lease(1), .sinkTrouble(SinkTrouble(kind: .storage, detail: "gone"), nil, nil))
        harness.passAnswering(.seconds(60))
        let effects = harness.feed(.sinkProbed("default", .sessionEnded))
        #expect(effects.contains { if case .openSession = $0 { true } else { false } }, "\(effects)")
        #expect(effects.contains { if case .log(.sessionLost) = $0 { true } else { false } })
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

    @Test func troubleOfASinkIsLoggedWhenItChanges() {
        var harness = MachineHarness(slots: 4)
        harness.answer(harness.open(), [lease(1)])
        harness.end(lease(1), .sinkTrouble(SinkTrouble(kind: .storage, detail: "gone"), nil, nil))
        harness.passAnswering(.seconds(60))
        let other = SinkTrouble(kind: .storage, detail: "read-only")
        #expect(harness.feed(.sinkProbed("default", .trouble(other))).contains(.log(.sinkParked("default", other))))
        harness.passAnswering(.seconds(60))
        #expect(!harness.feed(.sinkProbed("default", .trouble(other))).contains(.log(.sinkParked("default", other))))
    }

    @Test func unusedSinkIsProbedOnceInAWhile() {
        var harness = MachineHarness(slots: 4)
        harness.answer(harness.open())
        let trouble = SinkTrouble(kind: .storage, detail: "read-only")
        let gone = harness.passAnswering(.seconds(59))
        #expect(!gone.contains(.probe(sink: "default")))
        #expect(harness.passAnswering(.seconds(2)).contains(.probe(sink: "default")))
        #expect(harness.feed(.sinkProbed("default", .well(freeBytes: 5))).isEmpty)
        #expect(harness.passAnswering(.seconds(61)).contains(.probe(sink: "default")))
        #expect(harness.feed(.sinkProbed("default", .trouble(trouble))).contains(.log(.sinkParked("default", trouble))))
        #expect(harness.machine.room == 0)
    }

    @Test func usedSinkIsNotProbed() {
        var harness = MachineHarness(slots: 4)
        harness.answer(harness.open(), [lease(1)])
        #expect(!harness.passAnswering(.seconds(200)).contains(.probe(sink: "default")))
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
}
