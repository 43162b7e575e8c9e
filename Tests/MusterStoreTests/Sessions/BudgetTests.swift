import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Synchronization
import Testing

/// Byte budgets: the sum of shares never exceeds the rate, shares follow their use, and those of ended sessions are freed.
@Suite struct BudgetTests {
    @Test func onlySessionGetsAllOfAGroupsRate() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 90))
            try await fixture.makeGroup("free", Wanted.many(4, "f", size: 90))
            try await fixture.limitGroups("g", to: 1_000)
            var worker = try await fixture.makePayer()
            let leases = try await worker.claim(8)
            #expect(leases.count { $0.group == "g" && $0.isLimited } == 4)
            #expect(leases.count { $0.group == "free" && !$0.isLimited } == 4)
            #expect(leases.allSatisfy { $0.origin == "http://a.test:80" })
            #expect(worker.keeps == ["group:g": 1_000])
            try await fixture.check()
        }
    }

    @Test func newcomerGetsOnlySharesThatOthersHaveGivenBack() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40, size: 90))
            try await fixture.limitGroups(to: 1_000)
            try await fixture.stopBudgetClock()
            var first = try await fixture.makePayer("first")
            #expect(try await first.claim(1).count == 1)
            var second = try await fixture.makePayer("second")
            #expect(try await second.claim(1).isEmpty, "nothing is left of the rate")
            // The first session is told its smaller share. The old one counts in full until the session reports that it keeps to
            // the smaller: it may not have received the answer.
            let unheard = try await first.send(used: 0)
            #expect(try await first.arrive(unheard) == ["group:g": 500])
            #expect(try await fixture.total("group:g") == 1_000)
            #expect(try await second.claimAgain(1).isEmpty)
            #expect(try await first.settle(used: 0) == ["group:g": 500])
            #expect(try await fixture.total("group:g") == 1_000)
            #expect(try await second.claimAgain(1).isEmpty)
            #expect(try await first.settle(used: 0) == ["group:g": 500])
            #expect(try await second.claimAgain(1).count == 1)
            #expect(second.keeps == ["group:g": 500])
            try await fixture.check()
        }
    }

    @Test func newcomerWaitsForASizableShare() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40, size: 90))
            try await fixture.limitGroups(to: 1_000)
            try await fixture.stopBudgetClock()
            var first = try await fixture.makePayer("first")
            #expect(try await first.claim(1).count == 1)
            try await fixture.limitGroups(to: 1_009)
            var second = try await fixture.makePayer("second")
            #expect(try await second.claim(1).isEmpty)
            try await first.settle(used: 0)
            try await first.settle(used: 0)
            #expect(try await second.claimAgain(1).count == 1)
            #expect(second.keeps == ["group:g": 505])
            try await fixture.check()
        }
    }

    @Test func sharesFollowTheirUse() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(60, size: 90))
            try await fixture.limitGroups(to: 800_000)
            var workers: [BudgetPayer] = []
            for number in 0..<5 { workers.append(try await fixture.makePayer("w\(number)")) }
            // One worker can use a twentieth of the rate, one an eighth, one nothing, and two any amount.
            let demands: [Int64] = [40_000, 100_000, 0, .max, .max]
            for index in workers.indices { _ = try await workers[index].claim(2) }
            var used: [Int64] = []
            for _ in 0..<12 {
                used = []
                for index in workers.indices {
                    try await workers[index].passSecond()
                    let share = workers[index].keeps["group:g"] ?? 0
                    used.append(min(share, demands[index]))
                    // However slow the test is, a worker that could use any amount uses its share up.
                    let told = demands[index] == .max ? 2 * used[index] : used[index]
                    try await workers[index].settle(used: told, isShort: demands[index] > share)
                    #expect(try await fixture.total("group:g") <= 800_000)
                }
            }
            #expect(used.reduce(0, +) >= 760_000, "within 5 % of the rate: \(used)")
            #expect(abs(used[3] - used[4]) <= 40_000, "\(used)")
            try await fixture.check()
        }
    }

    @Test func sharesThatAreUsedUpFollowTheSlots() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(60, size: 90))
            try await fixture.limitGroups(to: 1_000)
            var wide = try await fixture.makePayer("wide")
            var narrow = try await fixture.makePayer("narrow", slots: 2)
            _ = try await wide.claim(2)
            _ = try await narrow.claim(2)
            #expect(wide.keeps == ["group:g": 800])
            #expect(narrow.keeps == ["group:g": 200])
            // Not by the current number of its leases, which changes all the time.
            _ = try await narrow.claim(8)
            for _ in 0..<3 {
                try await wide.passSecond()
                #expect(try await wide.settle(used: 2_000) == ["group:g": 800])
                try await narrow.passSecond()
                #expect(try await narrow.settle(used: 2_000) == ["group:g": 200])
            }
            try await fixture.check()
        }
    }

    @Test func lateSyncDecidesNothing() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40, size: 90))
            try await fixture.limitGroups(to: 1_000)
            try await fixture.stopBudgetClock()
            var first = try await fixture.makePayer("first")
            var second = try await fixture.makePayer("second")
            _ = try await first.claim(1)
            _ = try await second.claim(1)
            #expect(first.keeps == ["group:g": 500])
            // The first session has 500 when it sends this. Then it gets all, and is about to be told a smaller share again.
            let late = try await first.send(used: 0)
            try await fixture.expire(second.worker.session)
            #expect(try await fixture.store.hasBudgets())
            #expect(try await first.settle(used: 0) == ["group:g": 1_000])
            var third = try await fixture.makePayer("third")
            #expect(try await third.claim(1).isEmpty)
            let unheard = try await first.send(used: 0)
            #expect(try await first.arrive(unheard) == ["group:g": 500])
            _ = try await first.arrive(late)
            #expect(try await fixture.total("group:g") == 1_000)
            #expect(try await third.claimAgain(1).isEmpty, "the first session has not received its smaller share yet")
            try await fixture.check()
        }
    }

    /// A sync that does not mention a share was sent before the session received that share.
    @Test func lateSyncDoesNotDropAShare() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40, size: 90))
            try await fixture.limitGroups(to: 1_000)
            try await fixture.stopBudgetClock()
            var first = try await fixture.makePayer("first")
            _ = try await first.claim(1)
            var second = try await fixture.makePayer("second")
            #expect(try await second.claim(1).isEmpty)
            try await first.settle(used: 0)
            try await first.settle(used: 0)
            let late = try await second.send(used: 0)
            #expect(try await second.settle(used: 0) == ["group:g": 500])
            try await fixture.startBudgetClock()
            try await second.passSecond()
            #expect(try await second.arrive(late) == ["group:g": 500])
            #expect(try await fixture.total("group:g") == 1_000)
            try await fixture.check()
        }
    }

    @Test func shareOfAnEndedSessionIsFreed() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40, size: 90))
            try await fixture.limitGroups(to: 1_000)
            var first = try await fixture.makePayer("first")
            #expect(try await first.claim(1).count == 1)
            var second = try await fixture.makePayer("second")
            #expect(try await second.claim(1).isEmpty)
            try await fixture.expire(first.worker.session)
            #expect(try await second.claimAgain(1).count == 1)
            #expect(second.keeps == ["group:g": 1_000])
            try await fixture.check()
        }
    }

    @Test func fleetShareOfAnEndedSessionGoesToWorkingSessions() async throws {
        var policy = StoreFixture.smallPolicy
        policy.fleetRate = 1_000
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(40, size: 90))
            var first = try await fixture.makePayer("first")
            var second = try await fixture.makePayer("second")
            _ = try await first.claim(1)
            _ = try await second.claim(1)
            #expect(try await second.settle(used: 0) == ["fleet": 500])
            try await fixture.expire(first.worker.session)
            #expect(try await fixture.store.hasBudgets())
            #expect(try await second.settle(used: 0) == ["fleet": 1_000])
            try await fixture.check()
        }
    }

    @Test func shareLostInACrashStillCountsWhileAWorkerKeepsToIt() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40, size: 90))
            try await fixture.limitGroups(to: 1_000)
            var first = try await fixture.makePayer("first")
            #expect(try await first.claim(1).count == 1)
            try await fixture.deleteRows(of: "budget_shares")
            #expect(try await first.settle(used: 0) == ["group:g": 1_000])
            var second = try await fixture.makePayer("second")
            #expect(try await second.claim(1).isEmpty)
            try await fixture.check()
        }
    }

    @Test func rateSetDuringATransferAppliesToItUntilItIsCleared() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 90))
            var worker = try await fixture.makePayer()
            #expect(try await worker.claim(1).map(\.isLimited) == [false])
            #expect(try await !fixture.store.hasBudgets())
            let record = try await fixture.store.setOrigin("http://a.test:80", bytesPerSecond: .set(700))
            #expect(record.bytesPerSecondLimit == 700)
            #expect(try await fixture.store.hasBudgets())
            #expect(try await worker.settle(used: 0) == ["origin:http://a.test:80": 700])
            // The share shrinks at once, however much of it was used.
            _ = try await fixture.store.setOrigin("http://a.test:80", bytesPerSecond: .set(300))
            #expect(try await worker.settle(used: 700) == ["origin:http://a.test:80": 300])
            _ = try await fixture.store.setOrigin("http://a.test:80", maxConnections: .set(9), bytesPerSecond: .clear)
            #expect(try await worker.settle(used: 300).isEmpty)
            #expect(try await !fixture.store.hasBudgets())
            try await fixture.check()
        }
    }

    @Test func fleetHasABudgetToo() async throws {
        var policy = StoreFixture.smallPolicy
        policy.fleetRate = 5_000
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 90))
            try await fixture.limitGroups(to: 1_000)
            try await fixture.makeGroup("f", Wanted.many(4, "f", size: 90))
            var worker = try await fixture.makePayer()
            #expect(try await worker.claim(8).count(where: \.isLimited) == 8)
            #expect(worker.keeps == ["fleet": 5_000, "group:g": 1_000])
            try await fixture.check()
        }
    }

    @Test func sessionWithoutUseOfABudgetLosesItsShare() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("k", size: 90)])
            try await fixture.limitGroups(to: 1_000)
            var payer = try await fixture.makePayer()
            let lease = try #require(try await payer.claim().first)
            try await payer.worker.finish(lease, size: 90)
            try await payer.passSecond()
            #expect(try await payer.settle(used: 90) == ["group:g": 1_000], "the share was used until now")
            try await payer.passSecond()
            #expect(try await payer.settle(used: 0).isEmpty)
            try await fixture.check()
        }
    }

    /// This holds even if the worker keeps to less than its part of the rate would be.
    @Test(arguments: [Int64(1_000), 200])
    func shareThatIsLostUnknownToItsWorkerBringsNoLeases(former: Int64) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(40, size: 90))
            try await fixture.limitGroups(to: former)
            var first = try await fixture.makePayer("first")
            let lease = try #require(try await first.claim().first)
            try await first.worker.finish(lease, size: 90)
            try await first.passSecond()
            let unheard = try await first.send(used: 0)
            #expect(try await first.arrive(unheard).isEmpty)
            try await fixture.limitGroups(to: 1_000)
            var second = try await fixture.makePayer("second")
            #expect(try await second.claim(1).count == 1)
            #expect(try await second.settle(used: 0) == ["group:g": 1_000])
            let sync = try await first.send(used: 0)
            #expect(try await first.arrive(sync) == ["group:g": 0])
            #expect(try await first.claimAgain(1).isEmpty)
            try await fixture.check()
        }
    }

    /// Records what sessions keep to, and the largest sum, which must never exceed the rate.
    private final class Meter: Sendable {
        private let kept = Mutex<[SessionID: Int64]>([:])
        let largest = Mutex<Int64>(0)

        func keep(_ bytesPerSecond: Int64, by session: SessionID) {
            kept.withLock { kept in
                kept[session] = bytesPerSecond
                let sum = kept.values.reduce(0, +)
                largest.withLock { $0 = max($0, sum) }
            }
        }
    }

    @Test func keptSharesNeverExceedTheRateWhateverIsLostOrLate() async throws {
        let seed = UInt64.random(in: .min ... .max)
        try await StoreFixture.run(connections: 6) { fixture in
            try await fixture.makeGroup("g", Wanted.many(400, size: 90))
            try await fixture.limitGroups(to: 100_000)
            let meter = Meter()
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for number in 0..<5 {
                    tasks.addTask {
                        var random = SeededGenerator(seed: seed &+ UInt64(number))
                        var payer = try await fixture.makePayer("w\(number)")
                        var late: [BudgetPayer.Sync] = []
                        for _ in 0..<40 {
                            switch Int.random(in: 0..<12, using: &random) {
                            case 0..<3: _ = try await payer.claim(Int32.random(in: 1...4, using: &random))
                            case 3..<10:
                                let sync = try await payer.send(
                                    used: Int64.random(in: 0...60_000, using: &random), isShort: .random(using: &random)
                                )
                                let fate = Int.random(in: 0..<10, using: &random)
                                if fate == 0 {
                                    late.append(sync)
                                } else {
                                    let answer = try await payer.arrive(sync)
                                    if fate < 7 { payer.hear(answer) }
                                }
                            case 10:
                                if let sync = late.popLast() { _ = try await payer.arrive(sync) }
                            default:
                                // The worker's trust ends before its session.
                                meter.keep(0, by: payer.worker.session)
                                try await fixture.expire(payer.worker.session)
                                (payer, late) = (try await fixture.makePayer("w\(number)"), [])
                            }
                            meter.keep(payer.keeps["group:g"] ?? 0, by: payer.worker.session)
                            try await payer.passSecond()
                            #expect(try await fixture.total("group:g") <= 100_000, "seed \(seed)")
                        }
                    }
                }
                try await tasks.waitForAll()
            }
            let largest = meter.largest.withLock { $0 }
            #expect(largest <= 100_000 && largest > 0, "seed \(seed)")
            try await fixture.check("seed \(seed)")
        }
    }
}
