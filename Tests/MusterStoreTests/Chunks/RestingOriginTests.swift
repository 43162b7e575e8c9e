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

    /// Lets the pause of an origin pass, in which nothing is leased there.
    private static func passPause(of seconds: Int64, worker: inout TestWorker, _ fixture: StoreFixture) async throws {
        #expect(try await worker.claim(1).isEmpty)
        try await fixture.age(
            .refusal, .firstRefusal, .rest, .grant, .originBytes, by: .milliseconds(1_150 * seconds))
        try await fixture.passBackoffs()
        try await fixture.learnLimit(nil)
    }

    @Test func aRunningTransferDoesNotKeepAnOriginFromBeingProbed() async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(9, size: 100_000))
            var worker = try await fixture.makeWorker()
            let open = try await worker.claim(2)
            try await worker.refuse(open[0], 503, retryAfter: 3_600)
            #expect(try await worker.claim(8).isEmpty)
            try await fixture.passProbePause()
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

    /// The origin may have meant one group alone, as its token or its proxy: others don't wait until a file of that group is served (I19).
    @Test func anotherGroupThanTheRefusedOneProbesTheOrigin() async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("a", Wanted.many(9, size: 100_000))
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 429, retryAfter: 3_600)
            try await fixture.makeGroup("b", Wanted.many(9, "b", size: 100_000))
            try await fixture.run("UPDATE groups SET priority = 5 WHERE name = 'a'")
            #expect(try await worker.claim(8).isEmpty)
            for asked in ["b", "a", "b"] {
                try await fixture.passProbePause()
                let probes = try await worker.claim(8)
                #expect(probes.map(\.group) == [asked])
                try await worker.refuse(try #require(probes.first), 429, retryAfter: 3_600)
                try await fixture.check()
            }
            // A group that is alone probes the origin, whether it was refused or not.
            _ = try await fixture.store.apply(.pause, to: "a", keys: nil)
            try await fixture.passProbePause()
            #expect(try await worker.claim(8).map(\.group) == ["b"])
        }
    }

    /// Once another group was served while one was refused, a Retry-After for that one holds up nothing else.
    @Test func aGroupThatIsRefusedAloneRestsAlone() async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("a", Wanted.many(9, size: 100_000))
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 429, retryAfter: 3_600)
            try await fixture.makeGroup("b", Wanted.many(9, "b", size: 100_000))
            try await fixture.passProbePause()
            let probe = try #require(try await worker.claim(8).first)
            #expect(probe.group == "b")
            #expect(try await worker.progress(probe, to: 70_000))
            try await fixture.store.foldOriginRates()
            let both = try await worker.claim(3)
            let refused = try #require(both.first { $0.group == "a" })
            try await worker.refuse(refused, 429, retryAfter: 3_600)
            for lease in both where lease.group == "a" && lease.name != refused.name { try await worker.release(lease) }
            let others = try await worker.claim(4)
            #expect(Set(others.map(\.group)) == ["b"])
            let origin = try await fixture.store.explanation(of: "a").situation.origins.first?.origin
            #expect(origin?.pausedUntil != nil)
            #expect(try await fixture.store.explanation(of: "b").situation.origins.first?.origin.pausedUntil == nil)
            // That the origin serves others again after a while ends no wait of the refused files.
            try await fixture.run(
                "UPDATE origins SET alone_until = statement_timestamp(), rate_at = rate_at - interval '1 min'")
            #expect(try await worker.progress(try #require(others.first), to: 70_000))
            try await fixture.store.foldOriginRates()
            let waiting: Int64 = try await fixture.value(
                "SELECT count(*) FROM ready_chunks WHERE not_before > statement_timestamp() + interval '20 s'")
            #expect(waiting == 2)
            #expect(try await worker.claim(1).map(\.group) == ["a"])
            try await fixture.check()
        }
    }

    /// Each pause is over before another group has to try the origin.
    @Test func aGroupThatIsRefusedAloneForSecondsHoldsUpNoOtherAfterTenSeconds() async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("a", Wanted.many(9, size: 100_000))
            try await fixture.makeGroup("b", Wanted.many(99, "b", size: 100_000))
            var worker = try await fixture.makeWorker()
            for round in 0...3 {
                let leases = try await worker.claim(8)
                #expect(Set(leases.map(\.group)) == ["a", "b"], "round \(round)")
                let refused = try #require(leases.first { $0.group == "a" })
                try await worker.refuse(refused, 429, retryAfter: 3)
                for lease in leases where lease.group == "b" { try await worker.finish(lease, size: 100_000) }
                for lease in leases where lease.group == "a" && lease.name != refused.name {
                    try await worker.release(lease)
                }
                try await fixture.store.foldOriginRates()
                guard round < 3 else { break }
                try await Self.passPause(of: 3, worker: &worker, fixture)
            }
            // A lease that was granted twelve seconds after the first refusal of `a` was served.
            #expect(try await Set(worker.claim(8).map(\.group)) == ["b"])
            #expect(try await fixture.store.explanation(of: "a").situation.origins.first?.origin.pausedUntil != nil)
            try await fixture.check()
        }
    }

    /// An origin that serves the refused group as well, in every round or in every other one, has a limit for all.
    @Test(arguments: [(11, 1), (3, 2)])
    func aGroupThatIsServedBetweenItsRefusalsIsNotMeantAlone(pause: Int64, interval: Int) async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("a", Wanted.many(29, size: 100_000))
            try await fixture.makeGroup("b", Wanted.many(99, "b", size: 100_000))
            var worker = try await fixture.makeWorker()
            for round in 0...6 {
                let leases = try await worker.claim(8)
                #expect(Set(leases.map(\.group)) == ["a", "b"], "round \(round)")
                let refused = try #require(leases.last { $0.group == "a" })
                for group in round % interval == 0 ? ["a", "b"] : ["b"] {
                    try await worker.finish(try #require(leases.first { $0.group == group }), size: 100_000)
                }
                try await worker.refuse(refused, 429, retryAfter: pause)
                for lease in leases { try await worker.release(lease) }
                try await fixture.store.foldOriginRates()
                try await Self.passPause(of: pause, worker: &worker, fixture)
            }
            try await fixture.check()
        }
    }

    /// A large file takes long, but its bytes soon show that the origin serves again.
    @Test func aProbeThatBringsManyBytesEndsTheRest() async throws {
        try await StoreFixture.run(policy: Self.policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(9, size: 100_000))
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 503, retryAfter: 3_600)
            try await fixture.passProbePause()
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
            try await fixture.restOrigins("a", for: .seconds(3_600))
            try await fixture.restOrigins("c", for: .seconds(3_600))
            #expect(try await fixture.store.leaveRestingOrigins() == 2)
            let places = try await fixture.readyChunks().map { "\($0.key ?? "") \($0.origin ?? "")" }
            #expect(
                Set(places) == [
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
            try await fixture.restOrigins("a", for: .seconds(3_600))
            try await fixture.restOrigins("c", for: .seconds(3_600))
            var moved: [Int64] = []
            for _ in 0..<4 { moved.append(try await fixture.store.leaveRestingOrigins(limit: 2)) }
            #expect(moved == [0, 1, 2, 0])
            // The tasks that stayed are considered again.
            try await fixture.restOrigins("c", for: nil)
            moved = []
            for _ in 0..<3 { moved.append(try await fixture.store.leaveRestingOrigins(limit: 2)) }
            #expect(moved.reduce(0, +) == 3)
            try await fixture.check()
        }
    }
}
