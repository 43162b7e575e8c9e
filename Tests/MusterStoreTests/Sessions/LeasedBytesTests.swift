import MusterCore
import MusterStore
import Testing

/// The bytes that workers and origins are fetching, and the least time that a task still needs.
@Suite struct LeasedBytesTests {
    @Test func leasedBytesCountChunksOfUnknownLengthSeparately() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup(
                "g",
                [
                    Wanted("a", size: 90), Wanted("b", size: 90, origins: ["b"]), Wanted("c", origins: ["b"]),
                ], isSealed: true)
            var worker = try await fixture.makeWorker()
            let leases = Dictionary(uniqueKeysWithValues: try await worker.claim(3).map { ($0.path, $0) })
            let (a, b, c) = (try #require(leases["a"]), try #require(leases["b"]), try #require(leases["c"]))
            try await worker.progress(a, to: 40)
            try await worker.progress(c, to: 10)
            try await fixture.set(.grant, ago: .seconds(10))
            var hand = try await Self.hand(fixture)
            #expect(hand.leases == 3 && hand.fetching == 3 && hand.unknown == 1)
            #expect(hand.done == 50 && hand.total == 180)
            // 50 bytes at 4 bytes per second; chunks of unknown length have no estimate.
            #expect((13...20).contains(try #require(hand.slowestSeconds)))
            let origins = Dictionary(
                uniqueKeysWithValues: try await fixture.store.origins(after: nil, limit: 9).map { ($0.key, $0) })
            let (first, second) = (origins["http://a.test:80"]?.inHand, origins["http://b.test:80"]?.inHand)
            #expect(first?.done == 40 && first?.total == 90 && first?.unknown == 0 && first?.fetching == 1)
            #expect(second?.done == 10 && second?.total == 90 && second?.unknown == 1 && second?.slowestSeconds == nil)
            // Nor has a chunk without recent bytes.
            try await fixture.age(.progress, by: .seconds(60))
            #expect(try await Self.hand(fixture).slowestSeconds == nil)
            try await worker.learn(b, size: 90)
            try await worker.done(b)
            try await worker.learn(c, size: 60)
            _ = try await worker.claim(9)
            hand = try await Self.hand(fixture)
            #expect(hand.leases == 3 && hand.fetching == 2, "a finalization is a lease, too")
            #expect(hand.unknown == 0 && hand.done == 50 && hand.total == 150)
        }
    }

    private static func hand(_ fixture: StoreFixture) async throws -> LeasedBytes {
        try #require(try await fixture.store.workers(after: nil, limit: 9).first).inHand
    }

    @Test func aTaskNeedsAsLongAsItsSlowestLeaseAndItsPausedChunks() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("a", size: 250)], isSealed: true)
            #expect(try await fixture.store.task("a", of: "g").secondsAtLeast == nil, "no worker fetches it")
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim(1).first)
            try await worker.learn(lease, size: 250)
            try await worker.progress(lease, to: 40)
            try await fixture.set(.grant, ago: .seconds(10))
            var task = try await fixture.store.task("a", of: "g")
            #expect((15...20).contains(try #require(task.secondsAtLeast)) && task.secondsInWindow == nil)
            try await fixture.restOrigins(for: .seconds(3_600))
            try await fixture.setWindow(of: "g", isOpen: true)
            task = try await fixture.store.task("a", of: "g")
            #expect((3_500...3_600).contains(try #require(task.secondsAtLeast)))
            #expect((7_100...7_200).contains(try #require(task.secondsInWindow)))
            try await worker.fail(lease, .network)
            task = try await fixture.store.task("a", of: "g")
            #expect(task.state == .queued && task.secondsAtLeast == nil && task.secondsInWindow == nil)
        }
    }
}
