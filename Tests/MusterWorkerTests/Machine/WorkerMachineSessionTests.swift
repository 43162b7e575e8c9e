import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

struct WorkerMachineSessionTests {
    @Test func absentCoordinatorIsAskedAgainWithABackoff() {
        var harness = MachineHarness()
        #expect(harness.feed(.tick).openings == 1)
        for _ in 0..<10 {
            #expect(harness.feed(.sessionRefused(.unreachable)).openings == 0)
            #expect(harness.pass(.seconds(3)).openings == 1)
        }
        #expect(harness.effects.count { $0 == .log(.unreachable(.unreachable)) } == 1)
    }

    @Test func eachReasonOfARefusalIsToldWhenItIsNewAndOnceAMinuteWhileItLasts() {
        var harness = MachineHarness()
        harness.feed(.tick)
        func told(_ reason: String) -> Int { harness.effects.count { $0 == .log(.unreachable(.refused(reason))) } }
        for reason in ["one", "one", "two", "one", "two"] {
            harness.feed(.sessionRefused(.refused(reason)))
            harness.pass(.seconds(3))
        }
        #expect(told("one") == 1 && told("two") == 1)
        for _ in 0..<20 {
            harness.feed(.sessionRefused(.refused("two")))
            harness.pass(.seconds(3))
        }
        #expect(told("one") == 1 && told("two") == 2)
    }

    /// As when a coordinator comes back with another database.
    @Test func aRefusalAfterAnOutageIsTold() {
        var harness = MachineHarness()
        let sync = harness.open()
        harness.fail(sync)
        harness.pass(.seconds(3))
        harness.fail(harness.effects.syncs.last, .sessionGone)
        let effects = harness.feed(.sessionRefused(.refused("another directory")))
        #expect(harness.effects.contains(.log(.unreachable(.unreachable))))
        #expect(effects.contains(.log(.unreachable(.refused("another directory")))))
    }

    /// A coordinator refuses the directory of one sink (I19).
    @Test func aSinkThatTheSessionLacksIsParkedAndTheOthersWork() {
        var harness = MachineHarness(sinks: [SinkStatus(name: "mem"), SinkStatus(name: "default")])
        harness.feed(.tick)
        let refused = SinkTrouble(kind: .storage, detail: "a group is not finished")
        let document = SessionDocument(id: SessionID(1), ttlMilliseconds: 30_000)
        let found = [SinkStatus("mem", .trouble(refused)), SinkStatus("default", .well(freeBytes: nil))]
        let opened = harness.feed(.sessionOpened(document, sinks: found))
        #expect(opened.contains(.log(.sinkParked("mem", refused))))
        #expect(opened.syncs.last?.sinks.map(\.detail) == ["a group is not finished", nil])
        #expect(harness.answer(opened.syncs.last, [lease(1)]).started == [lease(1).name])
        #expect(harness.pass(.seconds(10)).contains(.probe(sink: "mem")))
        let other = SinkTrouble(kind: .storage, detail: "another worker")
        #expect(harness.feed(.sinkProbed("mem", .trouble(other))).contains(.log(.sinkParked("mem", other))))
        harness.pass(.seconds(10))
        #expect(harness.feed(.sinkProbed("mem", .well(freeBytes: nil))).contains(.log(.sinkRecovered("mem"))))
    }

    @Test func trustCountsFromBeforeTheRequest() {
        var harness = MachineHarness()
        let asked = harness.now
        harness.feed(.tick)
        harness.now += 2_000_000_000
        let effects = harness.feed(.sessionOpened(SessionDocument(id: SessionID(1), ttlMilliseconds: 30_000)))
        #expect(effects.contains(.trust(until: asked + 27_000_000_000)))
    }

    @Test func endOfTrustSuspendsWritingAndARenewalResumesIt() {
        var harness = MachineHarness(slots: 1)
        let asked = harness.now
        var sync = harness.open()
        harness.answer(sync, [lease(1)])
        sync = harness.pass(.seconds(11)).syncs.last
        let effects = harness.pass(.seconds(17))
        #expect(effects.contains(.suspendWriting))
        #expect(!harness.effects.contains(.resumeWriting))
        // The answer comes late; it renews the trust from the time when the sync was sent.
        let renewed = harness.answer(sync)
        #expect(renewed.contains(.trust(until: asked + 38_000_000_000)))
        #expect(renewed.contains(.resumeWriting))
    }

    @Test func nothingIsStartedWhileWritingIsSuspended() {
        var harness = MachineHarness(slots: 2)
        let sync = harness.open()
        // A process that was stopped for a minute finds an answer in its socket.
        harness.now += 60_000_000_000
        let effects = harness.answer(sync, [lease(1)])
        #expect(effects.started.isEmpty)
        #expect(effects.contains(.suspendWriting))
        let heartbeat = effects.syncs.last
        #expect(harness.answer(heartbeat).started == [lease(1).name])
    }

    @Test func goneSessionAbortsEverythingAndOpensAnother() {
        var harness = MachineHarness(slots: 1)
        let first = harness.open()
        harness.answer(first, [lease(1), lease(2)])
        harness.end(lease(1), network)
        let news = harness.effects.syncs.last
        let effects = harness.fail(news, .sessionGone)
        #expect(effects.aborted == [lease(2).name])
        #expect(effects.contains(.trust(until: .min)))
        #expect(effects.openings == 1)
        let next = harness.feed(.sessionOpened(SessionDocument(id: SessionID(2), ttlMilliseconds: 30_000))).syncs
        // The aborted job still takes the slot, and nothing of the old session is held or reported.
        #expect(next.isEmpty)
        harness.end(lease(2), .aborted)
        let poll = harness.effects.syncs.last
        #expect(poll?.sequence == 1)
        #expect(poll?.held == [])
        #expect(poll?.reports == [])
    }

    @Test func sameChunkWaitsUntilItsAbortedJobHasStopped() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1, epoch: 1)]).syncs.last
        harness.answer(poll, lost: [lease(1, epoch: 1).name])
        let next = harness.effects.syncs.last
        #expect(harness.answer(next, [lease(1, epoch: 2)]).started.isEmpty)
        #expect(harness.end(lease(1, epoch: 1), .aborted).started == [lease(1, epoch: 2).name])
    }

    @Test func lostLeaseIsAbortedAndNotReported() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1)]).syncs.last
        harness.feed(.job(lease(1).name, .progress(DurablePrefix(offset: 5, crc: 5), nil)))
        #expect(harness.answer(poll, lost: [lease(1).name]).aborted == [lease(1).name])
        harness.end(lease(1), .done(nil, nil, nil))
        harness.pass(.seconds(20))
        #expect(harness.effects.syncs.allSatisfy { $0.reports.isEmpty })
        #expect(harness.effects.syncs.last?.held == [])
    }

    @Test func lostLeaseIsHeldUntilItsJobHasStoppedWhichIsToldAtOnce() {
        var harness = MachineHarness(slots: 2)
        let first = harness.open()
        let poll = harness.answer(first, [lease(1), lease(2)]).syncs.last
        harness.pass(.seconds(10))
        harness.answer(harness.effects.syncs.last, lost: [lease(1).name])
        harness.end(lease(2), network)
        let news = harness.effects.syncs.last
        #expect(news?.held == [lease(1).name, lease(2).name])
        // The coordinator names the lease as lost again and again meanwhile, which is not logged again.
        let logged = harness.answer(news, lost: [lease(1).name])
        #expect(!logged.contains(.log(.leaseLost(lease(1).name))))
        let before = harness.effects.syncs.count
        let stopped = harness.end(lease(1), .aborted).syncs.last ?? harness.answer(poll).syncs.last
        #expect(harness.effects.syncs.count > before)
        #expect(stopped?.held == [])
    }

    @Test func sameInputsGiveTheSameEffects() {
        func history() -> [MachineEffect] {
            var harness = MachineHarness(seed: 42)
            harness.feed(.tick)
            harness.feed(.sessionRefused(.unreachable))
            harness.pass(.seconds(3))
            let sync = harness.open()
            harness.fail(sync)
            harness.pass(.seconds(30))
            return harness.effects
        }
        #expect(history() == history())
    }

    /// A lease in a sink where its session has not begun could be worked on after the session was revoked there (adr/0017).
    @Test func aSinkInWhichTheSessionHasNotBegunIsParkedFromTheFirstSyncOn() {
        var harness = MachineHarness()
        harness.feed(.tick)
        let document = SessionDocument(id: SessionID(1), ttlMilliseconds: 30_000)
        let parked = SinkStatus(name: "default", parked: .storage, detail: "it has not answered yet")
        #expect(harness.feed(.sessionOpened(document, sinks: [parked])).syncs.allSatisfy { $0.room == 0 })
        #expect(harness.pass(.seconds(5)).contains(.probe(sink: "default")))
        let sync = harness.feed(.sinkProbed("default", .well(freeBytes: nil))).syncs.last
        #expect(sync?.sinks.map(\.parked) == [nil] && sync?.room == 4)
    }

    /// A restarted coordinator with another rule goes on with the existing sessions.
    @Test func ruleAboutAddressesComesWithEachAnswerAndBeforeItsLeases() throws {
        var harness = MachineHarness()
        let rule = AddressGuard(refusesPrivate: true)
        let guarded = harness.answer(harness.open(), [lease(1)], addresses: rule)
        let place = try #require(guarded.firstIndex(of: .guardAddresses(rule)))
        let start = try #require(guarded.firstIndex { if case .start = $0 { true } else { false } })
        #expect(place < start, "nothing is asked under the old rule")
        harness.pass(.seconds(10))
        let same = harness.answer(harness.effects.syncs.last, addresses: rule)
        #expect(!same.contains { if case .guardAddresses = $0 { true } else { false } })
        harness.pass(.seconds(10))
        let open = harness.answer(harness.effects.syncs.last)
        #expect(open.contains(.guardAddresses(nil)))
    }
}
