import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Parallel use of several sources for one file, if their bytes are known to be the same (range contract, row 30).
@Suite struct PullTests {
    /// A task of `chunks` chunks at `a` and its mirrors, whose first chunk is done and stated a strong ETag.
    private func begin(
        _ fixture: StoreFixture, chunks: Int64 = 20, origins: [String] = ["a", "b"], etag: String = "\"strong\""
    ) async throws -> TestWorker {
        try await fixture.makeGroup("g", [Wanted("t", origins: origins)], isSealed: true)
        var worker = try await fixture.makeWorker()
        let first = try #require(try await worker.claim().first)
        try await worker.answer(first, size: chunks * 100, etag: etag)
        try await worker.done(first)
        return worker
    }

    /// The number of leases per source.
    private func shares(_ leases: [GrantedLease]) -> [Int32: Int] {
        Dictionary(leases.map { ($0.source, 1) }, uniquingKeysWith: +)
    }

    @Test func mirrorsShareTheRoomEvenlyWhileNothingIsKnownOfThem() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture, origins: ["a", "b", "c"])
            let leases = try await worker.claim(9)
            #expect(shares(leases) == [0: 3, 1: 3, 2: 3])
            for lease in leases {
                #expect(lease.isOtherMirror == (lease.source != 0))
                #expect(lease.url == "http://\(["a", "b", "c"][Int(lease.source)]).test/t")
                #expect(lease.representation.etag == "\"strong\"" && lease.representation.isDateStrong == true)
            }
            try await fixture.check()
        }
    }

    @Test func theSlowestMirrorIsUsedLeast() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture)
            try await fixture.run(
                "UPDATE sources SET bytes = 1000000, busy_ms = CASE ordinal WHEN 0 THEN 4000 ELSE 1000 END")
            let leases = try await worker.claim(10)
            #expect(shares(leases) == [0: 2, 1: 8])
            try await fixture.check()
        }
    }

    @Test func chunksBeyondAMirrorsCapGoToTheOthers() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture, origins: ["a", "b", "c"])
            try await fixture.run("UPDATE origins SET max_connections = 2 WHERE key = 'http://a.test:80'")
            try await fixture.run(
                "UPDATE origins SET not_before = statement_timestamp() + interval '1 h' WHERE key = 'http://c.test:80'")
            #expect(shares(try await worker.claim(10)) == [0: 2, 1: 8])
            try await fixture.check()
        }
    }

    @Test func aGroupWhoseOwnOriginIsBusyIsServedByItsMirrors() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture)
            try await fixture.run(
                "UPDATE origins SET not_before = statement_timestamp() + interval '1 h' WHERE key = 'http://a.test:80'")
            #expect(shares(try await worker.claim(4)) == [1: 4])
            try await fixture.check()
        }
    }

    @Test func capsOfGroupsHoldAcrossMirrors() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture)
            try await fixture.run("UPDATE groups SET max_connections = 5")
            #expect(try await worker.claim(10).count == 5)
            #expect(try await worker.claim(10).isEmpty)
            try await fixture.check()
        }
    }

    @Test func nothingIsPulledWithoutAStrongValidator() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture, etag: "W/\"weak\"")
            #expect(shares(try await worker.claim(30)) == [0: 16])
            try await fixture.check()
        }
    }

    @Test func deadDifferingAndQuestionedSourcesTakeNothing() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture, origins: ["a", "b", "c", "d"])
            try await fixture.run("UPDATE sources SET dead = true WHERE ordinal = 1")
            try await fixture.run("UPDATE sources SET differs_in = 1 WHERE ordinal = 2")
            try await fixture.run("UPDATE groups SET resolver = '{}'")
            try await fixture.run(
                """
                INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, source, sink, version, last, status, not_before)
                SELECT 'resolve', id, group_id, 0, 3, sink, version, 0, 'waiting', 'infinity' FROM tasks
                """)
            #expect(shares(try await worker.claim(30)) == [0: 16])
            try await fixture.check()
        }
    }

    @Test func chunkThatFailedIsNotPulled() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture, chunks: 3)
            try await fixture.run("UPDATE ready_chunks SET attempts = 1 WHERE first = 100")
            try await fixture.run("UPDATE ready_chunks SET moves = 1 WHERE first = 200")
            #expect(shares(try await worker.claim(30)) == [0: 2])
            try await fixture.check()
        }
    }

    @Test func groupsWithoutMirrorsAreServedBesideMirrors() async throws {
        try await StoreFixture.run { fixture in
            var worker = try await begin(fixture)
            _ = try await fixture.store.group("g")
            try await fixture.makeGroup("h", Wanted.many(3, "h", origins: ["x"]), isSealed: true)
            let leases = try await worker.claim(64)
            #expect(leases.count { $0.group == "h" } == 3 && leases.count { $0.group == "g" } == 19)
            try await fixture.check()
            for lease in leases where lease.group == "g" { try await worker.done(lease) }
            try await worker.finishEverything()
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }
}
