import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Origins that rest because they or an operator asked for it (range contract, row 25): which lane probes them, and which tasks go
/// elsewhere meanwhile.
@Suite struct RestingOriginTests {
    private static var policy: Store.Policy {
        var policy = StoreFixture.smallPolicy
        policy.firstChunk = 1 << 20
        return policy
    }

    /// Lets the ten seconds pass after which one lane probes an origin.
    private func passTenSeconds(_ fixture: StoreFixture) async throws {
        try await fixture.run(
            """
            UPDATE origins SET try_at = statement_timestamp(), refused_at = refused_at - interval '11 s',
                learned_at = learned_at - interval '11 s'
            """)
        try await fixture.run("UPDATE leases SET granted_at = granted_at - interval '11 s'")
    }

    private func rest(_ fixture: StoreFixture, _ host: String) async throws {
        let later = Timestamp(microseconds: try await fixture.store.now().microseconds + 3_600_000_000)
        _ = try await fixture.store.setOrigin("http://\(host).test:80", pausedUntil: .set(later))
    }

    /// The origins at which the ready chunks wait, by task.
    private func origins(_ fixture: StoreFixture) async throws -> [String] {
        try await fixture.values(
            """
            SELECT t.key || ' ' || o.key FROM ready_chunks c JOIN tasks t ON t.id = c.task_id JOIN origins o ON o.id = c.origin_id
            ORDER BY t.key
            """)
    }

    @Test func aRunningTransferDoesNotKeepAnOriginFromBeingProbed() async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(9, size: 100_000))
            var worker = try await fixture.makeWorker()
            let open = try await worker.claim(2)
            try await worker.refuse(open[0], 503, retryAfter: 3_600)
            #expect(try await worker.claim(8).isEmpty)
            try await passTenSeconds(fixture)
            let tried = try await worker.claim(8)
            #expect(tried.count == 1, "one probe at a time, beside the running transfer")
            #expect(try await worker.claim(8).isEmpty)
            // The running transfer says nothing about new requests.
            #expect(try await worker.progress(open[1], to: 70_000))
            try await fixture.store.foldOriginRates()
            #expect(try await worker.claim(8).isEmpty)
            try await fixture.check()
        }
    }

    /// A large file takes long, but its bytes soon show that the origin serves again.
    @Test func aProbeThatBringsManyBytesEndsTheRest() async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(9, size: 100_000))
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 503, retryAfter: 3_600)
            try await passTenSeconds(fixture)
            let tried = try #require(try await worker.claim(8).first)
            #expect(try await worker.progress(tried, to: 1_000))
            try await fixture.store.foldOriginRates()
            #expect(try await worker.claim(8).isEmpty)
            #expect(try await worker.progress(tried, to: 70_000))
            try await fixture.store.foldOriginRates()
            #expect(try await !worker.claim(8).isEmpty)
            try await fixture.check()
        }
    }

    @Test func unknownFilesGoToTheirOtherSources() async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup(
                "g",
                [
                    Wanted("begun", size: 5 << 20, origins: ["a", "b"]), Wanted("fresh", origins: ["a", "b"]),
                    Wanted("lone"),
                    Wanted("resting", origins: ["a", "c"]), Wanted("third", origins: ["a", "c", "b"]),
                ])
            var worker = try await fixture.makeWorker()
            let begun = try #require(try await worker.claim(1).first)
            try await worker.learn(begun, size: 5 << 20, etag: "W/\"weak\"")
            try await worker.release(begun)
            #expect(try await fixture.store.leaveRestingOrigins() == 0)
            try await rest(fixture, "a")
            try await rest(fixture, "c")
            #expect(try await fixture.store.leaveRestingOrigins() == 2)
            #expect(
                try await Set(origins(fixture)) == [
                    "begun http://a.test:80", "fresh http://b.test:80", "lone http://a.test:80",
                    "resting http://a.test:80",
                    "third http://b.test:80",
                ])
            #expect(try await Set(worker.claim(8).map(\.path)) == ["fresh", "third"])
            #expect(try await fixture.store.leaveRestingOrigins() == 0)
            try await fixture.check()
        }
    }

    /// Tasks that can't go elsewhere don't block those behind them.
    @Test func tasksAreMovedInBatchesUntilAllWereConsidered() async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            let stays = (1...3).map { Wanted("stays\($0)", origins: ["a", "c"]) }
            try await fixture.makeGroup("g", stays + (1...3).map { Wanted("goes\($0)", origins: ["a", "b"]) })
            try await rest(fixture, "a")
            try await rest(fixture, "c")
            var moved: [Int64] = []
            for _ in 0..<4 { moved.append(try await fixture.store.leaveRestingOrigins(limit: 2)) }
            #expect(moved == [0, 1, 2, 0])
            // The tasks that stayed are considered again.
            try await fixture.run("UPDATE origins SET not_before = NULL WHERE key = 'http://c.test:80'")
            moved = []
            for _ in 0..<3 { moved.append(try await fixture.store.leaveRestingOrigins(limit: 2)) }
            #expect(moved.reduce(0, +) == 3)
            try await fixture.check()
        }
    }
}
