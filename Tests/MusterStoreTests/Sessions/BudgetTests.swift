import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// Byte budgets: whose shares are never more than the rate, follow who uses them, and come back from those who are gone.
@Suite struct BudgetTests {
    @Test func onlySessionGetsAllOfAGroupsRate() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 90))
            try await fixture.makeGroup("free", Wanted.many(4, "f", size: 90))
            try await fixture.run("UPDATE groups SET bytes_per_second = 1000 WHERE name = 'g'")
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(8)
            #expect(leases.count { $0.group == "g" && $0.isLimited } == 4)
            #expect(leases.count { $0.group == "free" && !$0.isLimited } == 4)
            #expect(leases.allSatisfy { $0.origin == "http://a.test:80" })
            #expect(try await fixture.shares(of: worker) == ["group:g": 1_000])
            try await fixture.check()
        }
    }

    @Test func newcomerGetsWhatTheOthersHaveGivenBackAndNoSooner() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40, size: 90))
            try await fixture.run("UPDATE groups SET bytes_per_second = 1000")
            var first = try await fixture.makeWorker("first")
            #expect(try await first.claim(1).count == 1)
            var second = try await fixture.makeWorker("second")
            #expect(try await second.claim(1).isEmpty, "nothing is left of the rate")
            // The first one is told of its smaller share, which counts in full until it has settled that.
            #expect(try await fixture.settle(&first, used: 1_000_000) == ["group:g": 500])
            #expect(try await fixture.total("group:g") == 1_000)
            #expect(try await second.claimAgain(1).isEmpty)
            #expect(try await fixture.settle(&first, settled: first.sequence, used: 1_000_000) == ["group:g": 500])
            #expect(try await second.claimAgain(1).count == 1)
            #expect(try await fixture.shares(of: second) == ["group:g": 500])
            try await fixture.check()
        }
    }

    @Test func sharesFollowWhoUsesThem() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(60, size: 90))
            try await fixture.run("UPDATE groups SET bytes_per_second = 800000")
            var workers: [TestWorker] = []
            for number in 0..<4 { workers.append(try await fixture.makeWorker("w\(number)")) }
            // One can use a twentieth of the rate, one nothing, two any amount.
            let demands: [Int64] = [40_000, 0, .max, .max]
            for index in workers.indices { _ = try await workers[index].claim(2) }
            var used: [Int64] = []
            for _ in 0..<12 {
                used = []
                for index in workers.indices {
                    try await fixture.passSecond(workers[index])
                    let share = try await fixture.shares(of: workers[index])["group:g"] ?? 0
                    used.append(min(share, demands[index]))
                    // However slow the test is, who would take any amount uses all of his share up.
                    let told = demands[index] == .max ? 2 * used[index] : used[index]
                    _ = try await fixture.settle(&workers[index], settled: workers[index].sequence, used: told)
                    #expect(try await fixture.total("group:g") <= 800_000)
                }
            }
            #expect(used.reduce(0, +) >= 760_000, "within 5 % of the rate: \(used)")
            #expect(abs(used[2] - used[3]) <= 80_000, "\(used)")
            try await fixture.check()
        }
    }

    @Test func whatASessionThatIsGoneHadIsForTheOthers() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40, size: 90))
            try await fixture.run("UPDATE groups SET bytes_per_second = 1000")
            var first = try await fixture.makeWorker("first")
            #expect(try await first.claim(1).count == 1)
            var second = try await fixture.makeWorker("second")
            #expect(try await second.claim(1).isEmpty)
            try await fixture.expire(first.session)
            #expect(try await second.claimAgain(1).count == 1)
            #expect(try await fixture.shares(of: second) == ["group:g": 1_000])
            try await fixture.check()
        }
    }

    @Test func rateThatIsSetWhileWorkIsUnderWayReachesItAndGoesAgain() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 90))
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(1).map(\.isLimited) == [false])
            #expect(try await !fixture.store.hasBudgets())
            let record = try await fixture.store.setOrigin("http://a.test:80", bytesPerSecond: .set(700))
            #expect(record.bytesPerSecondLimit == 700)
            #expect(try await fixture.store.hasBudgets())
            #expect(try await fixture.settle(&worker, used: 0) == ["origin:http://a.test:80": 700])
            // What it may have becomes less at once, whatever it used.
            _ = try await fixture.store.setOrigin("http://a.test:80", bytesPerSecond: .set(300))
            #expect(try await fixture.settle(&worker, used: 700) == ["origin:http://a.test:80": 300])
            _ = try await fixture.store.setOrigin("http://a.test:80", maxConnections: .set(9), bytesPerSecond: .clear)
            #expect(try await fixture.settle(&worker, used: 300).isEmpty)
            #expect(try await !fixture.store.hasBudgets())
            try await fixture.check()
        }
    }

    @Test func fleetHasABudgetToo() async throws {
        var policy = StoreFixture.smallPolicy
        policy.fleetRate = 5_000
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 90))
            try await fixture.run("UPDATE groups SET bytes_per_second = 1000")
            try await fixture.makeGroup("f", Wanted.many(4, "f", size: 90))
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(8).count(where: \.isLimited) == 8)
            #expect(try await fixture.shares(of: worker) == ["fleet": 5_000, "group:g": 1_000])
            try await fixture.check()
        }
    }

    @Test func whoDrawsFromABudgetNoMoreLosesItsShare() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("k", size: 90)])
            try await fixture.run("UPDATE groups SET bytes_per_second = 1000")
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            try await worker.finish(lease, size: 90)
            try await fixture.passSecond(worker)
            #expect(try await fixture.settle(&worker, used: 90) == ["group:g": 1_000], "it used it until now")
            try await fixture.passSecond(worker)
            #expect(try await fixture.settle(&worker, used: 0).isEmpty)
            try await fixture.check()
        }
    }

    @Test func sharesAreNeverMoreThanTheRateWhateverHappensAtOnce() async throws {
        let seed = UInt64.random(in: .min ... .max)
        try await StoreFixture.run(connections: 6) { fixture in
            try await fixture.makeGroup("g", Wanted.many(400, size: 90))
            try await fixture.run("UPDATE groups SET bytes_per_second = 100000")
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for number in 0..<5 {
                    tasks.addTask {
                        var random = SeededGenerator(seed: seed &+ UInt64(number))
                        var worker = try await fixture.makeWorker("w\(number)")
                        for _ in 0..<25 {
                            let settled = max(0, worker.sequence - Int64.random(in: 0...2, using: &random))
                            switch Int.random(in: 0..<10, using: &random) {
                            case 0..<4: _ = try await worker.claim(Int32.random(in: 1...4, using: &random))
                            case 4..<9:
                                _ = try await fixture.settle(
                                    &worker, settled: settled, used: Int64.random(in: 0...60_000, using: &random))
                            default:
                                try await fixture.expire(worker.session)
                                worker = try await fixture.makeWorker("w\(number)")
                            }
                            try await fixture.passSecond(worker)
                            #expect(try await fixture.total("group:g") <= 100_000, "seed \(seed)")
                        }
                    }
                }
                try await tasks.waitForAll()
            }
            try await fixture.check("seed \(seed)")
        }
    }
}

extension StoreFixture {
    /// A session's shares by budget.
    fileprivate func shares(of worker: TestWorker) async throws -> [String: Int64] {
        Dictionary(
            uniqueKeysWithValues: try await store.budgetShares(of: worker.session).map {
                ($0.budget, $0.bytesPerSecond)
            })
    }

    /// Tells by the session's next sync that it used so much of each of its shares. Returns what they are then.
    fileprivate func settle(
        _ worker: inout TestWorker, settled: Int64 = 0, used: Int64
    ) async throws -> [String: Int64] {
        let budgets = try await shares(of: worker).keys
        try await worker.sync()
        let shares = try await store.settleBudgets(
            worker.session, sequence: worker.sequence, settled: settled,
            use: budgets.map { BudgetUse(budget: $0, bytes: used) })
        return Dictionary(uniqueKeysWithValues: shares.map { ($0.budget, $0.bytesPerSecond) })
    }

    /// What the shares of a budget are together, as they count.
    fileprivate func total(_ budget: String) async throws -> Int64 {
        try await value("SELECT coalesce(sum(share), 0)::bigint FROM budget_shares WHERE budget = \(budget)")
    }

    /// Has a session's use of budgets been told a second ago.
    fileprivate func passSecond(_ worker: TestWorker) async throws {
        try await run(
            """
            UPDATE budget_shares SET used_at = statement_timestamp() - interval '1 s'
            WHERE session_id = \(worker.session.rawValue)
            """)
    }
}
