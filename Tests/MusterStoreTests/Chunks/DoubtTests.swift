import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Refusals that may or may not be connection limits: at first that can't be told (range contract, row 24).
@Suite struct DoubtTests {
    /// The record of the only origin.
    private func origin(_ fixture: StoreFixture) async throws -> OriginRecord {
        try #require(try await fixture.store.origins(after: nil, limit: 1).first)
    }

    @Test func connectionsRefusedWhileNothingIsServedAreAnOutageAndNoLimit() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(12, size: 10))
            var worker = try await fixture.makeWorker()
            var leases = try await worker.claim(4)
            try await worker.finishAll([leases[0]])
            #expect(try await fixture.store.foldOriginRates() == 1)
            // The origin served a moment ago: this may still be a limit.
            for lease in leases[1...] { try await worker.fail(lease, .network, isUnreached: true) }
            leases = try await worker.claim(4)
            for lease in leases[..<2] { try await worker.fail(lease, .network, isUnreached: true) }
            #expect(try await fixture.allowance() == 16)
            #expect(try await fixture.tries() == 0)
            try await fixture.age(.doubt, .originBytes, by: .seconds(5))
            for lease in leases[2...] { try await worker.fail(lease, .network, isUnreached: true) }
            try await fixture.check()
            #expect(try await fixture.allowance() == 16)
            #expect(try await fixture.tries() == 2)
            let out = try await origin(fixture)
            #expect(out.limit == nil && out.secondsSinceRefusal == nil)
            #expect(try #require(out.secondsOut) >= 5)
            try await fixture.prolongChunkWaits()
            try await worker.finishAll(try await worker.claim(1))
            #expect(try await fixture.store.promoteDueChunks() == 0)
            #expect(try await fixture.store.foldOriginRates() == 1)
            #expect(try await origin(fixture).secondsOut == nil)
            #expect(try await fixture.store.promoteDueChunks() > 0, "they are tried as soon as it serves again")
        }
    }

    /// Connections taken from an origin while it serves nothing are given back once it serves: there were not too many. 429 does
    /// mean too many, and a lane that the origin keeps open may be why it refuses the others.
    @Test(arguments: [(503, false, 16), (429, false, 1), (503, true, 1)] as [(Int, Bool, Int32)])
    func refusalsWhileNothingIsServedCostNoConnectionsAfterwards(status: Int, isKept: Bool, after: Int32) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(30, size: 10))
            var worker = try await fixture.makeWorker()
            let kept = isKept ? try await worker.claim(1) : []
            if isKept {
                try await fixture.age(.grant, .progress, by: .seconds(5))
            }
            for _ in 0..<6 {
                for lease in try await worker.claim(4) {
                    try await worker.fail(lease, .httpStatus(status), status: Int32(status), random: 0)
                }
                try await fixture.age(.doubt, .originBytes, by: .seconds(1))
                try await fixture.restOrigins(for: nil)
                try await fixture.passBackoffs()
            }
            #expect(try await fixture.allowance() == 1)
            try await worker.finishAll(isKept ? kept : try await worker.claim(1))
            #expect(try await fixture.store.foldOriginRates() == 1)
            #expect(try await fixture.allowance() == after)
            try await fixture.check()
        }
    }

    /// The allowance is one more after ten seconds, which a limit would refuse; without a refusal, all that was taken comes back
    /// within half a minute.
    @Test(arguments: [(0, 1), (9, 1), (10, 2), (15, 4), (20, 8), (25, 16), (1_000_000, 16)] as [(Int, Int32)])
    func allowanceGrowsFasterTheLongerNothingIsRefused(seconds: Int, expected: Int32) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            try await fixture.learnLimit(1)
            try await fixture.age(.learning, by: .milliseconds(1_000 * seconds + 100))
            #expect(try await fixture.allowance() == expected)
        }
    }

    @Test(arguments: [true, false])
    func connectionsRefusedWhileOthersStayOpenAreALimit(isServed: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(8, size: 100))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await worker.fail(leases[0], .network, isUnreached: true)
            #expect(try await fixture.allowance() == 16)
            // A refusal after a break counts as a first one again.
            try await fixture.age(.doubt, .refusal, by: .seconds(9))
            try await worker.fail(leases[3], .network, isUnreached: true)
            #expect(try await fixture.allowance() == 16)
            try await fixture.age(.doubt, .originBytes, by: .seconds(5))
            // The others wait for an answer, or bring bytes.
            try await fixture.age(.grant, .progress, by: .seconds(5))
            if isServed { #expect(try await worker.progress(leases[1], to: 10)) }
            try await worker.fail(try #require(try await worker.claim().first), .network, isUnreached: true)
            #expect(try await fixture.allowance() == 8)
            #expect(try await origin(fixture).secondsOut == nil)
            #expect(try await fixture.tries() == 0)
            try await fixture.check()
        }
    }
}
