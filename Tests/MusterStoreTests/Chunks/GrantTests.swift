import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// What a lease carries, and the allowance of an origin after it refused (range contract, rows 21 and 24).
@Suite struct GrantTests {
    @Test func leaseCarriesOptionsPolicyAndTheResolversAnswer() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("k", size: 90)], resolver: #"{"url": "http://resolver.test/"}"#)
            try await fixture.set("groups", "fetch_options", to: PostgresJSON(#"{"proxy": "p"}"#))
            try await fixture.set("groups", "policy", to: PostgresJSON(#"{"names": "given"}"#))
            try await fixture.set("tasks", "fetch_options", to: PostgresJSON(#"{"netrc": "n"}"#))
            try await fixture.set("tasks", "content_type", to: "application/zip")
            try await fixture.set("tasks", "stated_digests", to: PostgresJSON(#"{"md5": "00"}"#))
            try await fixture.set("tasks", "date_strong", to: true)
            try await fixture.set("tasks", "failure_status", to: 403)
            try await fixture.set("sources", "headers", to: PostgresJSON(#"{"A": "1"}"#))
            try await fixture.set("sources", "fresh_url", to: "http://fresh.test/k?s=1")
            try await fixture.set("sources", "fresh_headers", to: PostgresJSON(#"{"B": "2"}"#))
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            #expect(lease.group == "g" && lease.key == "k" && lease.contentType == "application/zip")
            #expect(lease.groupOptions == #"{"proxy": "p"}"# && lease.taskOptions == #"{"netrc": "n"}"#)
            #expect(lease.policy == #"{"names": "given"}"# && lease.failureStatus == 403)
            #expect(lease.url == "http://a.test/k" && lease.freshURL == "http://fresh.test/k?s=1")
            #expect(lease.headers == #"{"A": "1"}"# && lease.freshHeaders == #"{"B": "2"}"#)
            #expect(lease.representation.digests == ["md5": "00"] && lease.representation.isDateStrong == true)
            // A fetch lease does not need the resolver's secrets.
            #expect(lease.resolver == nil && !lease.isOtherMirror)
            try await fixture.check()
        }
    }

    @Test func aQuestionCarriesTheResolverAndTheSourceAsItWasAdded() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeResolvedGroup("g", [Wanted("k", origins: ["a", "b"])])
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 403)
            let question = try #require(try await worker.claim(9).first)
            #expect(question.kind == .resolve && question.url == "http://a.test/k" && question.freshURL == nil)
            #expect(question.resolver?.contains("resolver.test") == true && question.failureStatus == 403)
            #expect(try await fixture.store.task("k", of: "g").state == .queued, "a question fetches nothing")
            try await fixture.check()
        }
    }

    @Test func resolverIsNotAskedForAPausedGroup() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeResolvedGroup("g", [Wanted("k")])
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 403)
            // Pausing drops the question. If one exists nevertheless, it is not leased along with the finalizations.
            try await fixture.set("groups", "desired", to: "pause")
            try await fixture.set("groups", "finalizing", to: 1)
            #expect(try await worker.claim(9).isEmpty)
            try await fixture.set("groups", "desired", to: "run")
            try await fixture.set("groups", "finalizing", to: 0)
            #expect(try await worker.claim(9).map(\.kind) == [.resolve])
        }
    }

    @Test func anOriginGetsMoreLeasesWithTheTimeAfterItRefused() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40))
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(40).count == 16)
            try await fixture.passChunkWaits()
            try await fixture.learnLimit(16)
            #expect(try await worker.claim(40).isEmpty)
            try await fixture.learnLimit(17)
            try await fixture.capOrigins(at: 100)
            #expect(try await worker.claim(40).count == 1)
            try await fixture.age(.learning, by: .seconds(11))
            #expect(try await worker.claim(40).count == 1)
            try await fixture.age(.learning, by: .seconds(5))
            #expect(try await worker.claim(40).count == 2)
            try await fixture.age(.learning, by: .seconds(1_000_000))
            try await fixture.capOrigins(at: 21)
            #expect(try await worker.claim(40).count == 1, "never more than its cap")
            try await fixture.check()
        }
    }

    @Test func aRefusalKeepsHeldLeasesAndGrantsNoneBeyondHalf() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(16)
            try await worker.refuse(leases[0], 429)
            try await worker.refuse(leases[1], 429)
            try await fixture.check("one burst halves once, and recalls no lease")
            try await fixture.passBackoffs()
            #expect(try await worker.claim(40).isEmpty)
            #expect(try await fixture.store.origins(after: nil, limit: 10).map(\.allowedConnections) == [8])
            for lease in leases[2..<10] { try await worker.release(lease) }
            #expect(try await worker.claim(40).count == 2)
            try await fixture.check()
        }
    }

    @Test func plansMadeForAnEmptyQueueUseIndexesOnAFullOne() async throws {
        try await StoreFixture.run(connections: 1) { fixture in
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(4).isEmpty)
            try await fixture.makeGroup("g", Wanted.many(4_000, size: 50))
            try await fixture.run("SET enable_seqscan = on")
            // No statistics have been gathered since; a claim must still not scan the whole queue.
            let before: Int64 = try await fixture.value(Self.scans)
            for _ in 0..<3 { #expect(try await worker.claim(4).count == 4) }
            try await fixture.run("SELECT pg_stat_force_next_flush()::text")
            #expect(try await fixture.value(Self.scans) == before)
        }
    }

    private static let scans: SQL = """
        SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_user_tables WHERE relname IN ('ready_chunks', 'leases', 'tasks')
        """
}
