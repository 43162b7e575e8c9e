import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Why a group is not done, as the store explains it.
@Suite struct GroupExplanationTests {
    @Test func explanationCountsLeasedReadyAndWaitingChunks() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup(
                "g", Wanted.many(150, "a", size: 90, origins: ["a"]) + Wanted.many(3, "b", size: 250, origins: ["b"]))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(20)
            let b = try #require(leases.first { $0.path == "b1" } ?? leases.first)
            let first = try #require(leases.first { $0.path.hasPrefix("a") && $0.name != b.name })
            try await worker.progress(first, to: 50)
            let second = try #require(
                leases.last { $0.path.hasPrefix("a") && $0.name != first.name && $0.name != b.name })
            try await worker.fail(second, .network)
            try await fixture.run("UPDATE leases SET granted_at = granted_at - interval '10 s'")
            let record = try await fixture.store.explanation(of: "g")
            #expect(record.group.name == "g" && record.leases.connections == Int64(leases.count - 1))
            #expect(record.leases.finalizing == 0 && record.leases.asking == 0)
            #expect((4...5).contains(record.leases.bytesPerSecond))
            #expect(record.putOff.fetching == 1 && record.putOff.dueAt != nil)
            #expect(record.workers.reaching == 1 && record.readyToFinalize == 0)
            // More chunks are ready than are counted.
            let a = try #require(record.origins.first { $0.origin.key == "http://a.test:80" })
            #expect(
                a.readyChunks == GroupExplanationRecord.most + 1
                    && a.connections
                        + record.origins.filter { $0.origin.key != a.origin.key }.reduce(0) { $0 + $1.connections }
                        == record.leases.connections
            )
            #expect(
                record.stragglers.count == 3
                    && record.stragglers.allSatisfy { $0.worker == "worker" && $0.bytesLeft != nil })
            #expect(!record.stragglers.contains { $0.key == first.path })
        }
    }

    @Test func groupNamesTheSilentWorkersWithItsLeases() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2, origins: ["a"]))
            try await fixture.makeGroup("h", Wanted.many(1, "h", origins: ["a"]))
            for name in ["w1", "w2", "w3"] {
                var worker = try await fixture.makeWorker(name)
                _ = try #require(try await worker.claim().first)
            }
            #expect(try await fixture.store.group("g").silent.isEmpty)
            try await fixture.run("UPDATE sessions SET seen_at = seen_at - interval '1 h' WHERE worker <> 'w1'")
            try await fixture.run("UPDATE sessions SET seen_at = seen_at - interval '1 h' WHERE worker = 'w3'")
            var names: [String] = []
            for group in ["g", "h"] { names += try await fixture.store.group(group).silent.map(\.name) }
            #expect(names.sorted() == ["w2", "w3"], "a silent worker is named by the group whose lease it holds")
        }
    }

    @Test func parkedSinksAreCountedOnlyForPresentWorkers() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(1, origins: ["a"]))
            func count() async throws -> [Int64] {
                let group = try await fixture.store.group("g")
                return [group.workersReaching, group.workersPresent, group.workersParked]
            }
            for name in ["w1", "w2", "w3"] {
                var worker = try await fixture.makeWorker(name)
                if name != "w3" { try await worker.sync(parked: ["sink"], isFull: true) }
            }
            #expect(try await count() == [3, 3, 2])
            try await fixture.run("UPDATE sessions SET seen_at = seen_at - interval '1 h' WHERE worker = 'w1'")
            #expect(try await count() == [3, 2, 1], "w1 is silent")
            try await fixture.run("UPDATE sessions SET draining = true WHERE worker = 'w2'")
            #expect(try await count() == [3, 1, 0], "w2 is draining")
        }
    }

    @Test func sessionsAreReadOnceForAPageOfGroups() async throws {
        // A single connection, whose reads are counted when its statements end.
        try await StoreFixture.run(connections: 1) { fixture in
            for number in 1...30 { _ = try await fixture.makeWorker("w\(number)") }
            func read(_ groups: Int32) async throws -> Int64 {
                let count: SQL =
                    "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) AS count FROM pg_stat_user_tables WHERE relname = 'sessions'"
                let flush: SQL = "SELECT pg_stat_force_next_flush()::text"
                _ = try await fixture.pool.query(flush)
                let before: Int64 = try await fixture.pool.query(count)[0].decode("count")
                #expect(try await fixture.store.groups(state: nil, after: nil, limit: groups).count == groups)
                _ = try await fixture.pool.query(flush)
                return try await fixture.pool.query(count)[0].decode("count") - before
            }
            for number in 1...20 {
                try await fixture.makeGroup("g\(number)", Wanted.many(1, "g\(number)", origins: ["a"]))
            }
            try await fixture.run("UPDATE sessions SET seen_at = seen_at - interval '1 h'")
            #expect(try await fixture.store.group("g1").silent.count == 30)
            let one = try await read(1)
            #expect(one > 0, "reads are counted at all")
            #expect(try await read(20) == one)
        }
    }

    /// A worker that receives bytes reports progress every three seconds; one that waits for bytes syncs four times per session TTL.
    @Test func aWorkerThatMissesTwoSyncsIsNamed() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2, origins: ["a"]))
            for name in ["busy", "waiting"] {
                var worker = try await fixture.makeWorker(name)
                let lease = try #require(try await worker.claim().first)
                if name == "busy" { try await worker.progress(lease, to: 10) }
            }
            func names(after seconds: Int64) async throws -> [String] {
                try await fixture.run(
                    """
                    UPDATE sessions SET seen_at = now() - \(seconds) * interval '1 s',
                        expires_at = now() - \(seconds) * interval '1 s' + interval '30 s'
                    """)
                try await fixture.run(
                    """
                    UPDATE leases l SET progress_at = s.seen_at - interval '1 s' FROM sessions s WHERE s.id = l.session_id
                    """)
                return try await fixture.store.group("g").silent.map(\.name).sorted()
            }
            #expect(try await names(after: 4).isEmpty)
            #expect(try await names(after: 7) == ["busy"])
            #expect(try await !fixture.store.group("g").areAllSilent)
            #expect(try await names(after: 12) == ["busy", "waiting"])
            #expect(try await fixture.store.group("g").areAllSilent)
            try await fixture.makeGroup("idle", Wanted.many(1, "i", origins: ["a"]))
            let idle = try await fixture.store.group("idle")
            #expect(idle.silent.count == 2, "an idle group names all silent workers")
            #expect(try await fixture.store.workers(after: nil, limit: 9).map(\.isSilent) == [true, true])
            #expect(try await fixture.store.task("t1", of: "g").bytesPerSecond == 0)
        }
    }

    @Test func explanationCountsBytesLeftPerOriginUpToALimit() async throws {
        var policy = StoreFixture.smallPolicy
        policy.fleetRate = 5_000
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup(
                "g",
                [Wanted("a", size: 250, origins: ["a"])] + Wanted.many(3, "b", size: 90, origins: ["b"])
                    + Wanted.many(101, "c", size: 90, origins: ["c"]))
            var worker = try await fixture.makeWorker()
            let before = try await fixture.store.explanation(of: "g")
            let left = Dictionary(uniqueKeysWithValues: before.origins.map { ($0.origin.key, $0.bytesLeftInAll) })
            #expect(left == ["http://a.test:80": 250, "http://b.test:80": 270, "http://c.test:80": nil])
            #expect(before.fleet?.bytesPerSecondLimit == 5_000 && before.fleet?.bytesPerSecond == 0)
            let lease = try #require(try await worker.claim(8).first { $0.path == "a" })
            let unplanned = try await fixture.store.explanation(of: "g").origins.first {
                $0.connections > 0 && $0.origin.key.contains("a.")
            }
            #expect(unplanned?.bytesLeftInAll == 250, "the chunk ends earlier, the task does not")
            try await worker.learn(lease, size: 250)
            try await worker.progress(lease, to: 40)
            let planned = try await fixture.store.explanation(of: "g").origins.first { $0.origin.key.contains("a.") }
            #expect(planned?.bytesLeftInAll == 210)
        }
    }

    @Test func unknownSizesAreNotTakenFromChunks() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup(
                "g", [Wanted("known", size: 90), Wanted("unknown"), Wanted("b", origins: ["b"])])
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(2).count == 2)
            let record = try await fixture.store.explanation(of: "g")
            let left = Dictionary(uniqueKeysWithValues: record.origins.map { ($0.origin.key, $0.bytesLeftInAll) })
            #expect(left == ["http://a.test:80": 90, "http://b.test:80": nil])
            let chunks = Dictionary(uniqueKeysWithValues: record.stragglers.map { ($0.key, $0.bytesLeft) })
            #expect(chunks.count == 2 && chunks["unknown"] ?? nil == nil)
        }
    }

    @Test func explanationCountsFinalizationsAndQuestions() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2, size: 90), isSealed: true, resolver: "{}")
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            try await worker.learn(leases[0], size: 90)
            try await worker.done(leases[0])
            try await worker.learn(leases[1], size: 90)
            try await worker.fail(leases[1], .authentication, status: 401)
            let record = try await fixture.store.explanation(of: "g")
            #expect(record.readyToFinalize == 1 && record.putOff.fetching == 1 && record.leases.connections == 0)
            #expect(record.stragglers.isEmpty)
            _ = try await worker.claim(9)
            let later = try await fixture.store.explanation(of: "g")
            #expect(later.leases.finalizing == 1 && later.leases.asking == 1)
            #expect(later.stragglers.map(\.kind) == [.finalize] && later.stragglers[0].bytesLeft == nil)
        }
    }

    @Test func explanationCostsTheSameForALargeGroup() async throws {
        // A single connection, since each connection reports its own reads.
        try await StoreFixture.run(connections: 1) { fixture in
            try await fixture.makeGroup("g", Wanted.many(20, size: 90), isSealed: true)
            // Twenty thousand more tasks and chunks, as plain rows.
            try await fixture.run(
                """
                WITH made AS (
                    INSERT INTO tasks (group_id, key, sink, path, size)
                    SELECT g.id, 'x' || n, g.sink, 'x' || n, 90 FROM groups g, generate_series(1, 20000) AS n
                    RETURNING id, group_id, sink
                )
                INSERT INTO ready_chunks (task_id, group_id, origin_id, sink, version, last)
                SELECT m.id, m.group_id, o.id, m.sink, 1, 90 FROM made m, origins o
                """)
            try await fixture.run("ANALYZE")
            let before = try await Self.reads(fixture)
            _ = try await fixture.store.explanation(of: "g")
            let read = try await Self.reads(fixture) - before
            #expect(read < 2_000, "\(read) rows were read")
        }
    }

    /// The rows of tasks and chunks read so far, through an index or not.
    private static func reads(_ fixture: StoreFixture) async throws -> Int64 {
        try await fixture.run("SELECT pg_stat_force_next_flush()")
        return try await fixture.value(
            """
            SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables
            WHERE relname IN ('tasks', 'ready_chunks')
            """)
    }
}
