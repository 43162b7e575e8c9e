import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Which sessions are granted which chunks.
@Suite struct ClaimTests {
    @Test func oldSequenceIsGrantedNothing() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            var worker = try await fixture.makeWorker()
            try await worker.sync()
            let old = ClaimRequest(session: worker.session, sequence: worker.sequence, room: 5)
            try await worker.sync()
            #expect(try await fixture.store.claim([old]).isEmpty)
            #expect(try await worker.claimAgain(5).count == 2)
            try await fixture.check()
        }
    }

    @Test func expiredDrainingAndUnknownSessionsAreGrantedNothing() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            var expired = try await fixture.makeWorker("expired")
            try await expired.sync()
            try await fixture.set(.expiry, ago: .seconds(1), of: expired.session.rawValue)
            #expect(try await expired.claimAgain().isEmpty)

            var leaving = try await fixture.makeWorker("leaving")
            try await fixture.store.drain(worker: "leaving")
            let renewed = try #require(try await leaving.sync())
            #expect(renewed.isDraining)
            #expect(try await leaving.claimAgain().isEmpty)

            let unknown = ClaimRequest(session: SessionID(999_999), sequence: 0, room: 1)
            #expect(try await fixture.store.claim([unknown]).isEmpty)
            await #expect(throws: Store.Refusal.noSuchWorker("nobody")) {
                try await fixture.store.drain(worker: "nobody")
            }
            try await fixture.check()
        }
    }

    @Test func sinkThatIsParkedOrNotReachedGetsNothing() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            var worker = try await fixture.makeWorker(sinks: ["sink", "other"])
            #expect(try await worker.claim(5, parked: ["sink"]).isEmpty)
            var stranger = try await fixture.makeWorker("stranger", sinks: ["other"])
            #expect(try await stranger.claim(5).isEmpty)
            #expect(try await worker.claim(5).count == 2)
            try await fixture.check()
        }
    }

    /// Deleting makes room in the sink; nothing else does.
    @Test func inAFullSinkFilesAreDeletedAndNothingElseIsDone() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("done", [Wanted("a"), Wanted("b")])
            var worker = try await fixture.makeWorker(sinks: ["sink", "other"])
            try await worker.finishAll(try await worker.claim(2))
            try await fixture.store.remove("done", keys: ["a", "b"], deletingFiles: true)
            try await fixture.makeGroup("g", Wanted.many(2))
            try await worker.sync(parked: ["sink"], isFull: true)
            #expect(try await worker.claimAgain(9).map(\.kind) == [.purge, .purge])
            #expect(try await worker.claim(9).map(\.kind) == [.fetch, .fetch])
            try await fixture.check()
        }
    }

    @Test func leaseCarriesWhatTheWorkerNeeds() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("k", size: 250, origins: ["a", "b"], path: "dir/k")])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            #expect(lease.kind == .fetch && lease.start == 0 && lease.end == 100 && lease.version == 1)
            #expect(lease.path == "dir/k" && lease.url == "http://a.test/k" && lease.expectedSize == 250)
            #expect(
                !lease.isPlanned && lease.rung == .chunks && !lease.isFenced
                    && lease.resume == DurablePrefix(offset: 0, crc: 0))
            try await fixture.check()
        }
    }

    @Test func capsHoldUnderConcurrentClaims() async throws {
        var policy = StoreFixture.smallPolicy
        policy.connectionsPerOrigin = 7
        policy.leasesPerSession = 3
        try await StoreFixture.run(policy: policy, connections: 8) { fixture in
            try await fixture.makeGroup("capped", Wanted.many(30, "c", origins: ["a"]), maxConnections: 5)
            try await fixture.makeGroup(
                "free", Wanted.many(30, "f", origins: ["a"]) + Wanted.many(30, "b", origins: ["b"]))
            try await fixture.capOrigins("b", at: 4)
            var workers: [TestWorker] = []
            for number in 0..<8 {
                var worker = try await fixture.makeWorker("w\(number)")
                try await worker.sync()
                workers.append(worker)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in workers {
                    group.addTask {
                        // Each session releases a lease after its claim, so that the others go on racing.
                        for _ in 0..<8 {
                            let leases = try await worker.claimAgain(5)
                            try await fixture.check()
                            if let lease = leases.first { try await worker.release(lease) }
                        }
                    }
                }
                try await group.waitForAll()
            }
            // After the race nothing stays unused: sessions can be granted all that the caps allow.
            for worker in workers { _ = try await worker.claimAgain(64) }
            try await fixture.check()
            #expect(try await fixture.count(of: "leases") == 7 + 4)
        }
    }

    @Test func twoGroupsShareTheRoom() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("large", Wanted.many(40, "l"))
            try await fixture.makeGroup("small", Wanted.many(4, "s"))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(8)
            #expect(leases.count == 8)
            #expect(leases.filter { $0.path.hasPrefix("s") }.count == 4)
            try await fixture.check()
        }
    }

    @Test func lateGroupAlternatesWithTheFirst() async throws {
        var policy = StoreFixture.smallPolicy
        policy.connectionsPerOrigin = 1_000
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("first", Wanted.many(30, "f"))
            var worker = try await fixture.makeWorker()
            for _ in 0..<10 { _ = try await worker.claim() }
            // The second group arrives late, and starts level with the first.
            try await fixture.makeGroup("second", Wanted.many(30, "s"))
            var order = ""
            for _ in 0..<20 { order += try await worker.claim().map { String($0.path.prefix(1)) }.joined() }
            #expect(order.count == 20)
            #expect(!order.contains("fff") && !order.contains("sss"))
            try await fixture.check()
        }
    }

    @Test func weightsAreKept() async throws {
        var policy = StoreFixture.smallPolicy
        policy.connectionsPerOrigin = 1_000
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("heavy", Wanted.many(60, "h"), weight: 3)
            try await fixture.makeGroup("light", Wanted.many(60, "l"))
            var worker = try await fixture.makeWorker()
            var heavy = 0
            for _ in 0..<40 { heavy += try await worker.claim().filter { $0.path.hasPrefix("h") }.count }
            #expect((28...32).contains(heavy))
        }
    }

    @Test func higherPriorityGoesFirst() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("low", Wanted.many(4, "l"))
            try await fixture.makeGroup(
                "high", [Wanted("h1"), Wanted("h2", priority: 5), Wanted("h3")], priority: 1)
            var worker = try await fixture.makeWorker()
            var order: [String] = []
            for _ in 0..<4 { order += try await worker.claim().map(\.path) }
            #expect(order == ["h2", "h1", "h3", "l1"])
            try await fixture.check()
        }
    }

    @Test func purgesAndFinalizingGoFirst() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("cancelled"), Wanted("whole")] + Wanted.many(4))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            _ = try await fixture.store.apply(.cancel, to: "g", keys: ["cancelled"])
            let whole = try #require(leases.first { $0.path == "whole" })
            try await worker.learn(whole, size: 50)
            try await worker.done(whole)
            try await fixture.check()
            try await worker.letGo()
            let purge = try #require(try await worker.claim().first)
            #expect(purge.kind == .purge && purge.url == nil)
            let finalize = try #require(try await worker.claim().first)
            #expect(finalize.kind == .finalize && finalize.chunks.map(\.range.end) == [50])
            #expect(try await worker.claim().first?.kind == .fetch)
            try await worker.done(purge)
            try await fixture.check()
            #expect(try await fixture.leases().allSatisfy { $0.kind != "purge" })
        }
    }

    @Test func chunkIsNotGrantedBeforeItsTime() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.fail(lease, .network)
            try await fixture.check()
            #expect(try await worker.claim().isEmpty)
            try await fixture.prolongChunkWaits()
            #expect(try await fixture.store.promoteDueChunks() == 0)
            try await fixture.passBackoffs()
            #expect(try await worker.claim().count == 1)
            try await fixture.check()
        }
    }

    @Test func roomIsSharedAmongSinksAndSessions() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("one", Wanted.many(3, "o"), sink: "one")
            try await fixture.makeGroup("two", Wanted.many(9, "t"), sink: "two")
            var both = try await fixture.makeWorker("both", sinks: ["one", "two"])
            var single = try await fixture.makeWorker("single", sinks: ["two"])
            try await both.sync()
            try await single.sync()
            let leases = try await fixture.store.claim([
                ClaimRequest(session: both.session, sequence: 1, room: 5),
                ClaimRequest(session: single.session, sequence: 1, room: 4),
            ])
            #expect(leases.filter { $0.session == both.session }.count == 5)
            #expect(leases.filter { $0.session == single.session }.count == 4)
            #expect(Set(leases.map(\.name.epoch)).count == 9)
            try await fixture.check()
        }
    }
}
