import MusterCore
import MusterStore
import Testing

/// Chunks that are much slower than their peers (range contract, row 32).
@Suite struct SlowLeaseTests {
    /// Leases on chunks of 1,000 bytes each; `durable` states the bytes that each got in a minute.
    private func begin(
        _ fixture: StoreFixture, durable: [Int64], origins: [String] = ["a"], etag: String = "\"strong\""
    ) async throws -> (TestWorker, [GrantedLease]) {
        try await fixture.makeGroup("g", [Wanted("t", origins: origins)], isSealed: true)
        var worker = try await fixture.makeWorker()
        let first = try #require(try await worker.claim().first)
        try await fixture.store.report(
            learned: .init(
                session: worker.session, lease: first.name,
                representation: Representation(size: 100 + 1_000 * Int64(durable.count), etag: etag),
                rung: .chunks,
                effectiveURL: nil, suggestedName: nil, chunkSize: 1_000)
        ).holds()
        try await worker.done(first)
        // All leases are held at the first source.
        let leases = try await worker.claim(Int32(durable.count)).sorted { $0.start < $1.start }
        try await fixture.moveLeases(to: 0)
        try await fixture.age(.grant, by: .seconds(60))
        for (lease, offset) in zip(leases, durable) { try await worker.progress(lease, to: lease.start + offset) }
        return (worker, leases)
    }

    @Test func aChunkMuchSlowerThanItsPeersIsTakenBackAndFenced() async throws {
        try await StoreFixture.run { fixture in
            var (worker, leases) = try await begin(fixture, durable: [500, 600, 20])
            #expect(try await fixture.store.sweepSlow() == 1)
            try await fixture.check()
            let renewed = try #require(try await worker.sync(held: leases.map(\.name)))
            #expect(renewed.lost == [leases[2].name])
            let again = try #require(try await worker.claim().first)
            #expect(again.start == leases[2].start && again.resume.offset == leases[2].start + 20 && again.isFenced)
            #expect(try await fixture.leases().map(\.deaths).max() == 0, "no session died")
            #expect(try await fixture.store.sweepSlow() == 0, "the new lease is young")
        }
    }

    @Test func slowChunksGoToTheFastestOtherSource() async throws {
        try await StoreFixture.run { fixture in
            let (_, leases) = try await begin(fixture, durable: [500, 600, 20], origins: ["a", "b", "c"])
            try await fixture.setBrought(by: 1, bytes: 10, in: .seconds(1))
            try await fixture.setBrought(by: 2, bytes: 20, in: .seconds(1))
            #expect(try await fixture.store.sweepSlow() == 1)
            #expect(try await fixture.chunks() == ["fetch \(leases[2].start) 2 ready 0"])
            try await fixture.check()
        }
    }

    /// All running leases are slow, since those at the fast mirror have ended.
    @Test func chunksOfASlowMirrorGoToAMirrorThatWasFast() async throws {
        try await StoreFixture.run { fixture in
            let (_, leases) = try await begin(fixture, durable: [20, 30], origins: ["a", "b"])
            try await fixture.setBrought(by: 1, bytes: 60, in: .seconds(60))
            #expect(try await fixture.store.sweepSlow() == 0)
            try await fixture.setBrought(by: 1, bytes: 1_000_000, in: .seconds(1))
            try await fixture.set(.grant, ago: .seconds(9))
            #expect(try await fixture.store.sweepSlow() == 0, "they are young")
            try await fixture.set(.grant, ago: .seconds(11))
            #expect(try await fixture.store.sweepSlow() == 2)
            #expect(try await fixture.chunks() == leases.map { "fetch \($0.start) 1 ready 0" })
            try await fixture.check()
        }
    }

    /// The other mirror may be slow too: it is tried once, and early.
    @Test func aChunkThatNeedsMinutesGoesToAnUntriedMirror() async throws {
        try await StoreFixture.run { fixture in
            var (worker, leases) = try await begin(fixture, durable: [20], origins: ["a", "b"])
            try await fixture.set(.grant, ago: .seconds(9))
            #expect(try await fixture.store.sweepSlow() == 0, "it is young")
            try await fixture.set(.grant, ago: .seconds(11))
            #expect(try await fixture.store.sweepSlow() == 1)
            #expect(try await fixture.chunks() == ["fetch \(leases[0].start) 1 ready 0"])
            try await fixture.setBrought(by: 0, bytes: 20, in: .seconds(11))
            leases = try await worker.claim(1)
            try await worker.progress(leases[0], to: leases[0].start + 140)
            try await fixture.set(.grant, ago: .seconds(60))
            #expect(try await fixture.store.sweepSlow() == 0, "both are slow")
            try await fixture.check()
        }
        try await StoreFixture.run { fixture in
            // 28 bytes per second: the rest needs less than half a minute.
            _ = try await begin(fixture, durable: [310], origins: ["a", "b"])
            try await fixture.set(.grant, ago: .seconds(11))
            #expect(try await fixture.store.sweepSlow() == 0)
        }
    }

    @Test func slowChunksStayWithTheirSourceWithoutAStrongValidator() async throws {
        try await StoreFixture.run { fixture in
            let (_, leases) = try await begin(
                fixture, durable: [500, 600, 20], origins: ["a", "b"], etag: "W/\"weak\"")
            #expect(try await fixture.store.sweepSlow() == 1)
            #expect(try await fixture.chunks() == ["fetch \(leases[2].start) 0 ready 0"])
            try await fixture.check()
        }
    }

    @Test func aChunkIsMovedThreeTimesAtTheMost() async throws {
        try await StoreFixture.run { fixture in
            var (worker, _) = try await begin(fixture, durable: [500, 600, 20])
            for _ in 1...3 {
                #expect(try await fixture.store.sweepSlow() == 1)
                let moved = try await worker.claim(4)
                try #require(moved.count == 1)
                try await fixture.set(.grant, ago: .seconds(60), of: moved[0].name.chunk.rawValue)
            }
            #expect(try await fixture.store.sweepSlow() == 0)
            try await fixture.check()
        }
    }

    @Test func leasesNearlyDoneOrYoungOrWithTooFewPeersStay() async throws {
        // The 30 bytes that are left need less than half a minute; a single peer makes no median.
        for durable in [[999, 999, 970] as [Int64], [600, 20]] {
            try await StoreFixture.run { fixture in
                _ = try await begin(fixture, durable: durable)
                #expect(try await fixture.store.sweepSlow() == 0)
            }
        }
        try await StoreFixture.run { fixture in
            _ = try await begin(fixture, durable: [500, 600, 20])
            try await fixture.age(.grant, by: .seconds(-40))
            #expect(try await fixture.store.sweepSlow() == 0)
            #expect(try await fixture.store.sweepSlow(olderThan: .seconds(15)) == 1)
        }
    }

    @Test func otherFilesOfTheOriginArePeersToo() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 90))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            for (lease, offset) in zip(leases, [60, 50, 70, 1] as [Int64]) {
                try await worker.progress(lease, to: offset)
            }
            try await fixture.setServesAgain()
            try await fixture.passMinute()
            #expect(try await fixture.store.sweepSlow() == 1)
            try await worker.letGo(holding: Array(leases[..<3]))
            let slow = try await worker.claim(9)
            #expect(slow.map(\.path) == [leases[3].path] && slow.first?.resume.offset == 1)
            try await fixture.check()
        }
    }

    @Test func aStreamIsNotTakenFromItsHolder() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3, size: 90))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(3)
            for (lease, offset) in zip(leases, [60, 50, 1] as [Int64]) {
                try await worker.learn(lease, size: 90, isSplittable: false)
                try await worker.progress(lease, to: offset)
            }
            try await fixture.passMinute()
            #expect(try await fixture.store.sweepSlow() == 0)
        }
    }

    /// Taking the lease back would lose a file whose URL works once.
    @Test(arguments: [false, true], [false, true]) func fileThatMayBeServedOnceIsLeftToItsHolder(
        servesAgain: Bool, isLarge: Bool
    ) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t"), Wanted("u"), Wanted("v")], isSealed: true)
            var worker = try await fixture.makeWorker()
            for (lease, offset) in zip(try await worker.claim(3), [500, 600, 20] as [Int64]) {
                #expect(try await worker.answer(lease, size: 1_000, etag: "\"1\"", askedForAll: true))
                #expect(try await worker.progress(lease, to: offset))
            }
            try await fixture.age(.grant, by: .seconds(60))
            if !isLarge { try await fixture.dropTiles() }
            try await fixture.setServesAgain(servesAgain)
            #expect(try await fixture.store.sweepSlow() == (servesAgain ? 1 : 0))
            try await fixture.check()
        }
    }
}

extension Bool {
    /// Requires that the session still held the lease.
    fileprivate func holds() throws { try #require(self) }
}
