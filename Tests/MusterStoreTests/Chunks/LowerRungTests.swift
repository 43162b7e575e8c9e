import MusterCore
import MusterStore
import Testing

/// Refusals that lead down the ladder after more than one try, and those that don't (`ladder.sql`).
@Suite struct LowerRungTests {
    /// Only the last rung of the ladder fails (range contract, row 22a).
    @Test func rangesAboveTheBeginningThatAreNeverServedLeadDownTheLadder() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 250)
            try await worker.done(first)
            for count in 1...2 {
                let lease = try #require(try await worker.claim().first)
                #expect(lease.start > 0 && lease.version == 1)
                try await worker.fail(lease, .httpStatus(500), status: 500, random: 0)
                try await fixture.passBackoffs()
                try await fixture.check()
                #expect(try await fixture.store.task("t", of: "g").version == (count == 1 ? 1 : 2))
            }
            let again = try #require(try await worker.claim().first)
            #expect(again.rung == .stream && again.start == 0 && again.end == nil)
        }
    }

    /// A 206 shows that ranges are served, however it ended.
    @Test func connectionsThatBreakInARangeLeadDownNoLadder() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 250)
            try await worker.done(first)
            for _ in 1...2 {
                let lease = try #require(try await worker.claim().first)
                try await worker.fail(lease, .network, status: 206, random: 0)
                try await fixture.passBackoffs()
            }
            try await fixture.check()
            #expect(try await fixture.store.task("t", of: "g").version == 1)
        }
    }

    @Test func bytesAboveTheBeginningAreNotGivenUpForRefusals() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 250)
            try await worker.done(first)
            let second = try #require(try await worker.claim().first)
            try await worker.fail(second, .network, at: second.start + 10, random: 0)
            for _ in 1...2 {
                try await fixture.passBackoffs()
                let lease = try #require(try await worker.claim().first)
                #expect(lease.version == 1 && lease.rung == .chunks)
                try await worker.fail(lease, .httpStatus(500), status: 500, random: 0)
            }
            try await fixture.check()
            #expect(try await fixture.store.task("t", of: "g").state == .queued)
        }
    }

    @Test func firstRequestThatIsRefusedAgainAndAgainIsMadePlainly() async throws {
        var policy = StoreFixture.smallPolicy
        policy.attempts = 8
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            for _ in 1...3 {
                let lease = try #require(try await worker.claim().first)
                #expect(lease.rung == .chunks)
                try await worker.fail(lease, .httpStatus(503), status: 503, random: 0)
                try await fixture.passBackoffs()
                try await fixture.check()
            }
            #expect(try #require(try await worker.claim().first).rung == .whole)
        }
    }
}
