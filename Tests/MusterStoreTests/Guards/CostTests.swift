import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Guards against unnoticed growth of the database's work. Each bound is the measured value at the time of writing, plus up to a quarter.
@Suite(.serialized) struct CostTests {
    private static let files = 1_024
    private static let batch = 128

    private static var policy: Store.Policy {
        var policy = Store.Policy()
        policy.connectionsPerOrigin = 256
        policy.leasesPerSession = 512
        return policy
    }

    @Test func costOfASmallFileStaysWithinItsBounds() async throws {
        try await StoreCosts.run(policy: Self.policy) { costs in
            let fixture = costs.fixture
            // The cost of first uses is not counted.
            try await fixture.makeGroup("first", Wanted.many(Self.batch, "f", size: 1_000))
            var worker = try await fixture.makeWorker()
            try await Self.work(&worker, through: "first")
            try await fixture.logEvents()
            // The tables of running work are mostly empty when they are analyzed: plans are made for few rows.
            try await fixture.run("VACUUM ANALYZE")
            try await fixture.makeGroup("g", Wanted.many(Self.files, size: 1_000), isSealed: true)
            try await fixture.run("CHECKPOINT")
            let sum = try await costs.costs {
                try await Self.work(&worker, through: "g")
                try await fixture.logEvents()
            }
            print("\(Self.files) files: \(sum)")
            let files = Int64(Self.files)
            #expect(try await fixture.store.group("g").state == .succeeded)
            // With the sequencing of its event, a file costs 2,361 bytes, 7.0 row versions (1.0 of them updates that touch indexes)
            // and 74 reads; 32 transactions in all.
            #expect(sum.log <= files * 2_930)
            #expect(sum.versions <= files * 88 / 10)
            #expect(sum.coldUpdates <= files * 13 / 10)
            #expect(sum.reads <= files * 92)
            #expect(sum.commits <= 40)
        }
    }

    /// A plan made while no task had succeeded or failed must not read all that have since (conditions.sql).
    @Test func readsDoNotGrowWithRowsUnknownToThePlans() async throws {
        try await StoreCosts.run(policy: Self.policy) { costs in
            let fixture = costs.fixture
            let rounds = 16
            try await fixture.makeGroup("g", Wanted.many(rounds * Self.batch), isSealed: true, reuses: true)
            try await fixture.run("VACUUM ANALYZE")
            var worker = try await fixture.makeWorker()
            var reads: [Int64] = []
            for _ in 0..<rounds {
                // Each round has the same amount of running work: its tables hold nothing of earlier rounds.
                try await fixture.run("VACUUM leases, ready_chunks, pending_events")
                let sum = try await costs.costs {
                    let leases = try await worker.claim(Int32(Self.batch))
                    try #require(leases.count == Self.batch)
                    for lease in leases.prefix(8) { try await worker.fail(lease, .tooSlow) }
                    try await worker.finishAll(Array(leases.dropFirst(8)))
                }
                reads.append(sum.reads)
            }
            print("reads of \(rounds) rounds: \(reads)")
            let early = reads[2..<5].reduce(0, +)
            let late = reads.suffix(3).reduce(0, +)
            #expect(late <= early * 5 / 4)
        }
    }

    @Test func claimReadsHardlyMoreWithManyOpenGroups() async throws {
        for count in [10, 1_000] {
            try await StoreCosts.run(policy: Self.policy) { costs in
                let fixture = costs.fixture
                for number in 1...count {
                    let tasks = Wanted.many(4, "g\(number)t", origins: ["o\(number % 10)"])
                    try await fixture.makeGroup("g\(number)", tasks)
                }
                try await fixture.run("ANALYZE")
                var worker = try await fixture.makeWorker()
                _ = try await worker.claim(4)
                let sum = try await costs.costs {
                    let leases = try await worker.claim(8)
                    #expect(leases.count == 8)
                }
                print("a claim of 8 with \(count) open groups: \(sum)")
                // 704 with 10 open groups, 1,490 with 1,000: only the most urgent 32 are considered.
                #expect(sum.reads <= 1_660)
            }
        }
    }

    @Test func queuesReadNoMoreWithManyMoreUrgentGroups() async throws {
        try await StoreCosts.run(policy: Self.policy) { costs in
            let fixture = costs.fixture
            let low = try await fixture.makeGroup("low", [Wanted("l")])
            var number = 0
            for count in [300, 1_000] {
                while number < count {
                    number += 1
                    try await fixture.makeGroup("g\(number)", [Wanted("g\(number)t")], priority: 5)
                }
                try await fixture.run("ANALYZE")
                // The cost of first uses is not counted.
                _ = try await fixture.store.queues(of: [low.id])
                let sum = try await costs.costs {
                    let queue = try #require(try await fixture.store.queues(of: [low.id])[low.id])
                    #expect(queue.urgent.values.map(\.count) == [UrgentGroups.considered])
                }
                print("the queue behind \(count) more urgent groups: \(sum)")
                // 506 with 300 of them, 405 with 1,000: only the most urgent 100 are considered. All of them took 906 and 3,006.
                #expect(sum.reads <= 630)
            }
        }
    }

    /// Claims and finishes until nothing is left.
    private static func work(_ worker: inout TestWorker, through group: String) async throws {
        while true {
            let leases = try await worker.claim(Int32(batch))
            if leases.isEmpty { return }
            try await worker.finishAll(leases)
        }
    }
}
