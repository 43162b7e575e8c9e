import MusterAPI
import MusterCore
import Testing

@testable import MusterWorker

/// The sink fails while a file is put in place or deleted: until a probe has synced the directories, a loss of power may bring a part back that no task
/// would own (I13).
struct WorkerMachineUnsettledTests {
    private static let trouble = SinkTrouble(kind: .storage, detail: "the sync failed")

    /// A worker with one lease whose job has ended, and the sync that tells the state of its sink.
    private func unsettled(
        _ kind: LeaseKind = .finalize, slots: Int = 2
    ) -> (MachineHarness, LeaseDocument, SyncRequest?) {
        var harness = MachineHarness(slots: slots)
        let work = lease(1, kind: kind)
        harness.answer(harness.open(), [work])
        let news = harness.end(work, .unsettled(Self.trouble)).syncs.last
        return (harness, work, news)
    }

    @Test(arguments: [LeaseKind.fetch, .finalize, .purge])
    func leaseIsHeldUntilAProbeHasSucceeded(kind: LeaseKind) {
        var (harness, work, news) = unsettled(kind)
        #expect(news?.sinks.first?.parked == .storage)
        #expect(news?.held == [work.name] && news?.reports.isEmpty == true)
        let waiting = harness.passAnswering(.seconds(20))
        #expect(waiting.contains(.probe(sink: "default")))
        #expect(waiting.syncs.allSatisfy { $0.held == [work.name] && $0.reports.isEmpty })
        let given = harness.feed(.sinkProbed("default", .well(freeBytes: 5))).syncs.last
        #expect(given?.reports.map(\.lease) == [work.name])
        #expect(given?.reports.first?.kind == (kind == .purge ? .failed : .released))
        #expect(given?.sinks.first?.parked == nil)
    }

    /// The probe may have synced the directories before the job failed.
    @Test func probeThatBeganBeforeSettlesNothing() {
        var harness = MachineHarness(slots: 2)
        harness.answer(harness.open(), [lease(1, kind: .finalize), lease(2)])
        harness.end(lease(2), .sinkTrouble(Self.trouble, nil, nil))
        #expect(harness.passAnswering(.seconds(20)).contains(.probe(sink: "default")))
        harness.end(lease(1, kind: .finalize), .unsettled(Self.trouble))
        harness.feed(.sinkProbed("default", .well(freeBytes: 5)))
        let next = harness.passAnswering(.seconds(20))
        #expect(next.syncs.allSatisfy { $0.reports.isEmpty && $0.sinks.first?.parked == .storage })
        #expect(next.contains(.probe(sink: "default")))
        let given = harness.feed(.sinkProbed("default", .well(freeBytes: 5))).syncs.last
        #expect(given?.reports.map(\.lease) == [lease(1).name])
    }

    /// A probe of a full sink syncs the directories before it finds that the sink is full.
    @Test func fullSinkSettlesItsLeases() {
        var (harness, work, _) = unsettled()
        harness.passAnswering(.seconds(20))
        let full = SinkTrouble(kind: .storageFull, detail: "no space")
        let given = harness.feed(.sinkProbed("default", .trouble(full))).syncs.last
        #expect(given?.reports.map(\.lease) == [work.name])
        #expect(given?.sinks.first?.parked == .storageFull)
    }

    /// The leftovers of a cancelled task are deleted once no worker holds a lease of it (I13).
    @Test(arguments: [false, true])
    func leaseThatIsTakenAwayIsHeldAsLong(isTakenFirst: Bool) {
        var harness = MachineHarness(slots: 2)
        let work = lease(1, kind: .finalize)
        let begin = harness.answer(harness.open(), [work])
        harness.feed(.job(work.name, .progress(DurablePrefix(offset: 4, crc: 4), nil)))
        if isTakenFirst { harness.answer(begin.syncs.last, lost: [work.name]) }
        let news = harness.end(work, .unsettled(Self.trouble)).syncs.last
        if !isTakenFirst { harness.answer(news, lost: [work.name]) }
        #expect(harness.passAnswering(.seconds(20)).syncs.allSatisfy { $0.held == [work.name] })
        let after = harness.feed(.sinkProbed("default", .well(freeBytes: 5))).syncs.last
        #expect(after?.held == [] && after?.reports.isEmpty == true)
    }

    /// Another worker may reach the sink. Its session revokes this one there.
    @Test func sessionIsGivenUpWhenTheSinkDoesNotRecover() {
        var (harness, _, _) = unsettled()
        var probes = 0
        while harness.effects.openings < 2, probes < 100 {
            harness.passAnswering(.seconds(1))
            guard case .probing? = harness.machine.sink("default")?.health else { continue }
            harness.feed(.sinkProbed("default", .trouble(Self.trouble)))
            probes += 1
        }
        #expect(harness.effects.openings == 2)
        #expect(probes > 1)
        #expect(harness.machine.leases.names.isEmpty)
    }

    /// Its successors revoke the session before the task goes on.
    @Test(arguments: [false, true])
    func lostSessionKeepsNothing(isLostFirst: Bool) {
        var harness = MachineHarness(slots: 2)
        let work = lease(1, kind: .finalize)
        let begin = harness.answer(harness.open(), [work])
        if isLostFirst {
            harness.fail(begin.syncs.last ?? harness.passAnswering(.seconds(11)).syncs.last, .sessionGone)
        }
        let news = harness.end(work, .unsettled(Self.trouble)).syncs.last
        if !isLostFirst { harness.fail(news, .sessionGone) }
        #expect(harness.machine.leases.names.isEmpty)
    }

    /// A session that is not closed costs its successors the time until it expires.
    @Test func drainTriesTheSinkAndClosesTheSession() {
        var (harness, _, _) = unsettled()
        harness.feed(.drain)
        #expect(harness.passAnswering(.seconds(8)).contains(.probe(sink: "default")))
        let given = harness.feed(.sinkProbed("default", .well(freeBytes: 5))).syncs.last
        #expect(harness.answer(given).closings == 1)
    }
}
