import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// Every verb races every other (F17): the invariants hold throughout, and then everything completes (I14).
@Suite struct StormTests {
    @Test func everyVerbRacesEveryOther() async throws {
        var random = SeededGenerator.forTest()
        let seeds = (0..<8).map { _ in random.next() }
        try await StoreFixture.run(connections: 10) { fixture in
            for (name, sink) in StormRider.groups {
                try await fixture.makeGroup(name, sink: sink, maxConnections: 8)
            }
            let riding = Observed(seeds.count)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for seed in seeds {
                    group.addTask {
                        defer { riding.update { $0 -= 1 } }
                        var rider = try await StormRider(fixture, seed: seed)
                        try await rider.ride(steps: 150)
                    }
                }
                group.addTask {
                    // One statement sees one snapshot, so that the invariants of every commit can be checked at any time.
                    while riding.value > 0 { try await fixture.check("while others work") }
                }
                try await group.waitForAll()
            }
            try await fixture.check("after the storm")
            try await finish(fixture)
        }
    }

    /// After the faults every group becomes terminal, and again after a retry.
    private func finish(_ fixture: StoreFixture) async throws {
        let store = fixture.store
        try await store.expireAllSessions()
        _ = try await store.sweepSessions()
        try await fixture.restOrigins(for: nil)
        var worker = try await fixture.makeWorker("last", sinks: StormRider.sinks)
        for group in try await store.groups(state: nil, after: nil, limit: 100) {
            do {
                _ = try await store.apply(.resume, to: group.name, keys: nil)
                _ = try await store.seal(group.name)
            } catch Store.Refusal.noSuchGroup {
                // A removal that the storm began has completed meanwhile.
            }
        }
        try await worker.finishEverything()
        try await fixture.check("after the work")
        for group in try await store.groups(state: nil, after: nil, limit: 100) {
            #expect(group.state.isTerminal)
            _ = try await store.apply(.retry, to: group.name, keys: nil)
            // Another group may have failed at the same path.
            try await worker.finishEverything()
        }
        while try await store.sequenceEvents() > 0 {}
        try await fixture.check("in the end")
        for group in try await store.groups(state: nil, after: nil, limit: 100) {
            #expect(group.state == .succeeded || group.state == .cancelled)
            #expect(group.tasks[.failed] == 0)
        }
        for table in ["ready_chunks", "leases", "done_chunks"] {
            #expect(try await fixture.count(of: table) == 0)
        }
    }
}
