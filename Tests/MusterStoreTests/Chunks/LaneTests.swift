import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Leases that queue behind others for the same connection (I5, adr/0024).
@Suite struct LaneTests {
    /// The number of leases of each lane, the fullest first.
    private func depths(_ leases: [GrantedLease]) -> [Int] {
        Dictionary(grouping: leases, by: \.lane).mapValues(\.count).values.sorted(by: >)
    }

    @Test func leasesBeyondTheCapWaitInExistingLanesAndOpenNone() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(20))
            try await fixture.capOrigins(at: 2)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(8, ahead: 8)
            #expect(depths(leases) == [5, 5], "two connections, with the leases taken ahead spread over them")
            let explanation = try await fixture.store.explanation(of: "g").situation
            #expect(explanation.leases.connections == 2 && explanation.origins.map(\.connections) == [2])
            try await fixture.check()
            try await fixture.set(.grant, ago: .zero)
            let more = try await worker.claim(8, ahead: 3)
            #expect(more.count == 3 && Set(more.map(\.lane)).isSubset(of: Set(leases.map(\.lane))))
            try await fixture.check()
        }
    }

    @Test func withoutLeasesAheadEachLeaseIsAConnection() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(20))
            try await fixture.capOrigins(at: 3)
            var worker = try await fixture.makeWorker()
            #expect(depths(try await worker.claim(8)) == [1, 1, 1])
            #expect(try await worker.claim(8).isEmpty)
            try await fixture.check()
        }
    }

    @Test func aSessionWithoutALaneGetsALaneOfASessionWithMoreThanItsShare() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40))
            try await fixture.capOrigins(at: 2)
            var first = try await fixture.makeWorker("first")
            var second = try await fixture.makeWorker("second")
            let held = try await first.claim(2, ahead: 2)
            #expect(depths(held) == [2, 2])
            #expect(try await second.claim(2, ahead: 2).isEmpty)
            // From here on both sessions ask at once: what the first is granted goes into one of its lanes, and the other lane empties.
            try await first.sync()
            try await second.sync()
            try await fixture.set(.grant, ago: .zero)
            let surplus = try #require(held.map(\.lane).max())
            let leases = try await fixture.store.claim([
                ClaimRequest(session: first.session, sequence: first.sequence, room: 0, ahead: 2),
                ClaimRequest(session: second.session, sequence: second.sequence, room: 2, ahead: 2),
            ])
            #expect(leases.allSatisfy { $0.session == first.session && $0.lane != surplus } && leases.count == 2)
            for lease in held where lease.lane == surplus {
                try await first.learn(lease, size: 50)
                try await first.done(lease)
            }
            let next = try await second.claim(4)
            #expect(next.filter { $0.kind == .fetch }.count == 1)
            try await fixture.check()
        }
    }

    @Test func aLaneCountsUntilItsHolderHasReleasedIt() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            try await fixture.makeGroup("h", Wanted.many(4, "h"))
            try await fixture.capOrigins(at: 1)
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(1).map(\.group) == ["g"])
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            var other = try await fixture.makeWorker("other")
            #expect(try await other.claim(4, ahead: 4).isEmpty, "the worker may still use the connection")
            try await fixture.check()
            try await worker.letGo()
            #expect(depths(try await other.claim(4, ahead: 4)) == [4])
            try await fixture.check()
        }
    }

    @Test func lanesBeyondASmallerCapGetNothingMore() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40))
            try await fixture.capOrigins(at: 4)
            var worker = try await fixture.makeWorker()
            let held = try await worker.claim(4)
            try await fixture.capOrigins(at: 1)
            try await fixture.set(.grant, ago: .zero)
            let more = try await worker.claim(0, ahead: 4)
            #expect(Set(more.map(\.lane)) == [try #require(held.map(\.lane).min())])
        }
    }

    @Test func noLeaseQueuesBehindAnOldOrShrinkingOne() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40))
            try await fixture.capOrigins(at: 2)
            var worker = try await fixture.makeWorker()
            let held = try await worker.claim(2).sorted { $0.lane < $1.lane }
            try await fixture.set(.grant, ago: .zero)
            try await fixture.age(.grant, by: .seconds(3), of: held[0].name.chunk.rawValue)
            #expect(Set(try await worker.claim(0, ahead: 2).map(\.lane)) == [held[1].lane])
            try await fixture.set("leases", "last", to: 100)
            try await fixture.set("leases", "shrink_to", to: 0)
            #expect(try await worker.claim(0, ahead: 2).isEmpty)
        }
    }

    @Test func aGroupThatJoinsDoesNotPayForProvisionalChargesOfOthers() async throws {
        try await StoreFixture.run(policy: Sharing.policy) { fixture in
            try await fixture.makeGroup("first", Wanted.many(60))
            try await fixture.capOrigins(at: 1)
            var worker = try await fixture.makeWorker()
            // None of the sizes is known: each task is charged as a large file.
            let held = try await worker.claim(1, ahead: 31)
            try #require(held.count == 32)
            try await fixture.makeGroup("second", Wanted.many(60, "s"))
            try await fixture.set(.grant, ago: .zero)
            let next = try await worker.claim(0, ahead: 4)
            #expect(next.allSatisfy { $0.group == "second" } && next.count == 4, "the first group's leases come first")
            for lease in held {
                try await worker.learn(lease, size: 50)
                try await worker.done(lease)
            }
            let ahead = try await fixture.served("second") - fixture.served("first")
            #expect(ahead <= 4 * 8_388_608, "at most the charge of its own leases")
            try await fixture.check()
        }
    }

    @Test func aGroupWithACapKeepsToLanesOfItsOwn() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("wide", Wanted.many(8))
            var worker = try await fixture.makeWorker()
            let wide = Set(try await worker.claim(3).map(\.lane))
            try await fixture.makeGroup("narrow", Wanted.many(20, "n"), priority: 5, maxConnections: 2)
            let narrow = try await worker.claim(8, ahead: 8).filter { $0.group == "narrow" }
            #expect(Set(narrow.map(\.lane)).count == 2 && Set(narrow.map(\.lane)).isDisjoint(with: wide))
            #expect(narrow.count > 2)
            try await fixture.check()
        }
    }

    @Test func theDeathOfASessionDoesNotCountForQueuedLeases() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3))
            try await fixture.capOrigins(at: 1)
            var worker = try await fixture.makeWorker()
            #expect(depths(try await worker.claim(1, ahead: 2)) == [3])
            try await fixture.expire(worker.session)
            #expect(try await fixture.readyChunks().map(\.deaths) == [1, 0, 0])
            try await fixture.check()
        }
    }

    @Test func leasesAheadStayWithinTheSessionsLimit() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(100))
            try await fixture.capOrigins(at: 2)
            var worker = try await fixture.makeWorker()
            // Two lanes are opened, and 56 leases are taken ahead, of at most 64: six slots stay free.
            #expect(try await worker.claim(8, ahead: 200).count == 58)
            try await fixture.set(.grant, ago: .zero)
            #expect(try await worker.claim(0, ahead: 200).count == 6)
            #expect(try await worker.claim(8, ahead: 200).isEmpty)
            try await fixture.check()
        }
    }
}
