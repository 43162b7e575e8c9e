import MusterCore
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
            try await fixture.age(.grant, by: .seconds(10))
            let (group, record) = try await fixture.store.explanation(of: "g")
            #expect(group.name == "g" && record.leases.connections == Int64(leases.count - 1))
            #expect(record.leases.finalizing == 0 && record.leases.asking == 0)
            #expect(record.putOff.fetching == 1 && record.putOff.dueAt != nil)
            #expect(record.workers?.reaching == 1)
            // More chunks are ready than are counted.
            let a = try #require(record.origins.first { $0.origin.key == "http://a.test:80" })
            #expect((4...5).contains(a.bytesPerSecond))
            #expect(
                a.readyChunks == GroupSituation.most + 1
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
            var sessions: [Int64] = []
            for name in ["w1", "w2", "w3"] {
                var worker = try await fixture.makeWorker(name)
                _ = try #require(try await worker.claim().first)
                sessions.append(worker.session.rawValue)
            }
            #expect(try await fixture.store.group("g").silent.isEmpty)
            try await fixture.age(.sync, by: .seconds(3_600), of: sessions[1])
            try await fixture.age(.sync, by: .seconds(7_200), of: sessions[2])
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
            var first = try await fixture.makeWorker("w1")
            var second = try await fixture.makeWorker("w2")
            _ = try await fixture.makeWorker("w3")
            try await first.sync(parked: ["sink"], isFull: true)
            try await second.sync(parked: ["sink"], isFull: true)
            #expect(try await count() == [3, 3, 2])
            try await fixture.age(.sync, by: .seconds(3_600), of: first.session.rawValue)
            #expect(try await count() == [3, 2, 1], "w1 is silent")
            try await fixture.store.drain(worker: "w2")
            #expect(try await count() == [3, 1, 0], "w2 is draining")
        }
    }

    @Test func sessionsAreReadOnceForAPageOfGroups() async throws {
        // A single connection, whose reads are counted when its statements end.
        try await StoreFixture.run(connections: 1) { fixture in
            for number in 1...30 { _ = try await fixture.makeWorker("w\(number)") }
            func read(_ groups: Int32) async throws -> Int64 {
                let before = try await fixture.rowsRead(from: "sessions")
                #expect(try await fixture.store.groups(state: nil, after: nil, limit: groups).count == groups)
                return try await fixture.rowsRead(from: "sessions") - before
            }
            for number in 1...20 {
                try await fixture.makeGroup("g\(number)", Wanted.many(1, "g\(number)", origins: ["a"]))
            }
            try await fixture.age(.sync, by: .seconds(3_600))
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
                try await fixture.set(.sync, ago: .seconds(seconds))
                try await fixture.set(.expiry, ago: .seconds(seconds - 30))
                try await fixture.set(.progress, ago: .seconds(seconds + 1))
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
            let before = try await fixture.store.explanation(of: "g").situation
            let left = Dictionary(uniqueKeysWithValues: before.origins.map { ($0.origin.key, $0.bytesLeftInAll) })
            #expect(left == ["http://a.test:80": 250, "http://b.test:80": 270, "http://c.test:80": nil])
            #expect(before.fleet?.bytesPerSecondLimit == 5_000 && before.fleet?.bytesPerSecond == 0)
            let lease = try #require(try await worker.claim(8).first { $0.path == "a" })
            let unplanned = try await fixture.store.explanation(of: "g").situation.origins.first {
                $0.connections > 0 && $0.origin.key.contains("a.")
            }
            #expect(unplanned?.bytesLeftInAll == 250, "the chunk ends earlier, the task does not")
            try await worker.learn(lease, size: 250)
            try await worker.progress(lease, to: 40)
            let planned = try await fixture.store.explanation(of: "g").situation.origins.first {
                $0.origin.key.contains("a.")
            }
            #expect(planned?.bytesLeftInAll == 210)
        }
    }

    @Test func unknownSizesAreNotTakenFromChunks() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup(
                "g", [Wanted("known", size: 90), Wanted("unknown"), Wanted("b", origins: ["b"])])
            var worker = try await fixture.makeWorker()
            #expect(try await worker.claim(2).count == 2)
            let record = try await fixture.store.explanation(of: "g").situation
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
            let record = try await fixture.store.explanation(of: "g").situation
            #expect(record.putOff.fetching == 1 && record.leases.connections == 0)
            #expect(record.stragglers.isEmpty)
            _ = try await worker.claim(9)
            let later = try await fixture.store.explanation(of: "g").situation
            #expect(later.leases.finalizing == 1 && later.leases.asking == 1)
            #expect(later.stragglers.map(\.kind) == [.finalize] && later.stragglers[0].bytesLeft == nil)
        }
    }

    @Test func explanationCostsTheSameForALargeGroup() async throws {
        // A single connection, since each connection reports its own reads.
        try await StoreFixture.run(connections: 1) { fixture in
            try await fixture.makeGroup("g", Wanted.many(20, size: 90), isSealed: true)
            try await fixture.addManyTasks()
            let before = try await fixture.rowsRead(from: "tasks", "ready_chunks")
            _ = try await fixture.store.explanation(of: "g")
            let read = try await fixture.rowsRead(from: "tasks", "ready_chunks") - before
            #expect(read < 2_000, "\(read) rows were read")
        }
    }
}
