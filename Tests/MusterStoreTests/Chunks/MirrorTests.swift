import MusterCore
import MusterStore
import Testing

/// Several sources of one content: when their bytes are mixed, and where a chunk goes when one of them fails (range contract, rows 1, 26 and 30).
@Suite struct MirrorTests {
    /// A task of three chunks, by default at sources `a`, `b` and `c`, and the leases on all of them, held at `a`.
    private func begin(
        _ fixture: StoreFixture, size: Int64 = 300, etag: String = "\"strong\"", origins: [String] = ["a", "b", "c"]
    ) async throws -> (TestWorker, [GrantedLease]) {
        try await fixture.makeGroup("g", [Wanted("t", origins: origins)], isSealed: true)
        var worker = try await fixture.makeWorker()
        let first = try #require(try await worker.claim().first)
        try await worker.answer(first, size: size, etag: etag)
        // An origin that rests gets no chunks pulled to it.
        for origin in origins where origin != "a" { try await fixture.restOrigins(origin, for: .seconds(3_600)) }
        let others = try await worker.claim(2)
        try await fixture.restOrigins(for: nil)
        return (worker, [first] + others)
    }

    @Test func fileWithoutRoomIsTriedAtTheNextSourceAtOnce() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.fail(first, .noSpace)
            var second = try #require(try await worker.claim().first)
            #expect(second.source != first.source)
            #expect(try await fixture.store.task("t", of: "g").attempts == 0)
            #expect(!second.mayMoveOn, "the first source is no alternative, so this one gets full patience")
            try await worker.fail(second, .timeout)
            try await fixture.passBackoffs()
            second = try #require(try await worker.claim().first)
            #expect(second.source != first.source && !second.mayMoveOn)
            // No source is left that may state another size: the task waits for room, and begins with the first source again.
            try await worker.fail(second, .noSpace)
            #expect(try await worker.claim().isEmpty)
            #expect(try await fixture.store.task("t", of: "g").attempts == 2)
            try await fixture.passBackoffs()
            #expect(try await worker.claim().first?.source == first.source)
            try await fixture.check()
        }
    }

    @Test func fileLargerThanTheFileSystemFailsAtTheThirdTry() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            for _ in 0..<3 {
                let known = try await fixture.store.task("t", of: "g")
                #expect(known.state != .failed && known.retry.map { $0.limit == 3 } != false)
                let lease = try #require(try await worker.claim().first)
                let lack = "the file needs 9 TiB more, 1 GiB are free, the whole file system has 2 GiB"
                try await worker.fail(lease, .noSpace, detail: lack)
                try await fixture.check()
                try await fixture.passBackoffs()
            }
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed && task.failure?.kind == .noSpace)
        }
    }

    @Test func mirrorsAreMixedIfTheirContentCanBeCompared() async throws {
        let cases: [(etag: String?, digests: [String: String]?, isSplittable: Bool, origins: [String], mixes: Bool)] = [
            ("\"strong\"", nil, true, ["a", "b"], true),
            ("W/\"weak\"", nil, true, ["a", "b"], false),
            (nil, nil, true, ["a", "b"], false),
            (nil, ["md5": "00"], true, ["a", "b"], true),
            ("\"strong\"", nil, false, ["a", "b"], false),
            ("\"strong\"", nil, true, ["a"], false),
        ]
        for (etag, digests, isSplittable, origins, mixes) in cases {
            try await StoreFixture.run { fixture in
                try await fixture.makeGroup("g", [Wanted("t", origins: origins)])
                var worker = try await fixture.makeWorker()
                let lease = try #require(try await worker.claim().first)
                try await worker.answer(lease, size: 300, etag: etag, digests: digests, isSplittable: isSplittable)
                #expect(try await fixture.tasks()[0].mixes == mixes)
                try await fixture.check()
            }
        }
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])])
            try await fixture.expectDigests()
            var worker = try await fixture.makeWorker()
            try await worker.answer(try #require(try await worker.claim().first), size: 300)
            #expect(try await fixture.tasks()[0].mixes)
        }
    }

    @Test func mirrorWithOtherContentIsDroppedAndTheVersionStays() async throws {
        try await StoreFixture.run { fixture in
            var (worker, leases) = try await begin(fixture)
            try await fixture.moveLeases(to: 1, only: leases[1])
            try await fixture.moveLeases(to: 1, only: leases[2])
            try await worker.progress(leases[1], to: 130)
            for lease in leases[1...] {
                try await worker.fail(lease, .changed, at: lease.start == 100 ? 130 : 200, source: 1)
                try await fixture.check()
            }
            #expect(try await fixture.chunks() == ["fetch 100 2 ready 0", "fetch 200 2 ready 0"])
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.version == 1 && task.attempts == 0 && task.bytesDone == 30)
            #expect(try await fixture.outcomes() == ["nextSource", "nextSource"])
            // The source from which the version was learned decides: different content there is a change.
            try await worker.fail(leases[0], .changed, source: 0)
            try await fixture.check()
            #expect(try await fixture.store.task("t", of: "g").version == 2)
            // In another version the mirror may match.
            try await worker.finishEverything(size: 300)
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }

    @Test func lastMirrorDeterminesTheNextVersion() async throws {
        try await StoreFixture.run { fixture in
            var (worker, leases) = try await begin(fixture, origins: ["a", "b"])
            try await worker.fail(leases[0], .tls, source: 0)
            try await fixture.check()
            let lease = try #require(try await worker.claim().first)
            #expect(lease.source == 1 && lease.version == 1)
            try await worker.fail(lease, .changed, source: 1)
            try await fixture.check()
            let next = try #require(try await worker.claimWork().first)
            #expect(next.source == 1 && next.version == 2 && !next.isPlanned)
        }
    }

    @Test func failOverKeepsTheDurableOffsetOfMixedMirrors() async throws {
        try await StoreFixture.run { fixture in
            var (worker, leases) = try await begin(fixture)
            try await worker.fail(leases[1], .network, at: 150, random: 0)
            try await fixture.check()
            let next = try #require(try await worker.claim().first)
            #expect(next.source == 1 && next.version == 1 && next.start == 100 && next.resume.offset == 150)
        }
    }

    @Test func chunksOfADeadSourceGoToTheOthers() async throws {
        try await StoreFixture.run { fixture in
            let (worker, leases) = try await begin(fixture)
            try await worker.release(leases[2])
            try await worker.refuse(leases[1], 451)
            try await fixture.check()
            #expect(try await fixture.chunks() == ["fetch 100 1 ready 1", "fetch 200 1 ready 0"])
        }
    }

    @Test func sourceWithoutAStrongValidatorIsKeptForThreeTriesAndThenLeft() async throws {
        var policy = StoreFixture.smallPolicy
        policy.attempts = 8
        try await StoreFixture.run(policy: policy) { fixture in
            var (worker, leases) = try await begin(fixture, size: 100, etag: "W/\"weak\"", origins: ["a", "b"])
            // Some bytes have arrived; otherwise there would be nothing to keep.
            try await worker.progress(leases[0], to: 10)
            for tries in 1...3 {
                try await worker.fail(leases[0], .timeout)
                try await fixture.check()
                try await fixture.passBackoffs()
                leases = try await worker.claimWork()
                #expect(leases[0].source == (tries < 3 ? 0 : 1) && leases[0].version == (tries < 3 ? 1 : 2))
            }
            #expect(try await fixture.outcomes() == ["retry", "retry", "nextSource"])
        }
    }

    @Test func flappingMirrorsDoNotStartOverForEver() async throws {
        var policy = StoreFixture.smallPolicy
        policy.attempts = 8
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            var rounds = 0
            while rounds < 100, try await !fixture.store.group("g").state.isTerminal {
                rounds += 1
                try await fixture.passBackoffs()
                for lease in try await worker.claimWork() {
                    // Each version brings some bytes, and then stalls.
                    if !lease.isPlanned { try await worker.answer(lease, size: 100) }
                    try await worker.fail(lease, .timeout, at: 50)
                    try await fixture.check()
                }
            }
            #expect(try await fixture.store.group("g").state == .failed)
            #expect(try await fixture.store.task("t", of: "g").version == fixture.policy.contentVersions)
        }
    }

    @Test func mirrorWithoutRangesIsLeftForThisVersion() async throws {
        try await StoreFixture.run { fixture in
            let (worker, leases) = try await begin(fixture)
            try await fixture.moveLeases(to: 1, only: leases[1])
            try await worker.restart(leases[1])
            try await fixture.check()
            #expect(try await fixture.chunks() == ["fetch 100 2 ready 0"])
            // The version's own source turns the task into a stream.
            try await worker.restart(leases[0])
            try await fixture.check()
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.version == 2 && task.attempts == 0, "a rung further down is no try")
            #expect(try await fixture.tasks()[0].rung == "stream")
        }
    }

    @Test func bytesAreCountedPerSourceWhereThereAreSeveral() async throws {
        try await StoreFixture.run { fixture in
            let (worker, leases) = try await begin(fixture)
            try await fixture.moveLeases(to: 1, only: leases[1])
            try await worker.done(leases[0])
            try await worker.fail(leases[1], .network, at: 140)
            try await worker.release(leases[2], at: 220)
            #expect(try await fixture.sources().map(\.bytes) == [120, 40, 0])
            #expect(try await fixture.sources().map(\.failures) == [0, 1, 0])
            try await fixture.check()
        }
        try await StoreFixture.run { fixture in
            let (worker, leases) = try await begin(fixture, origins: ["a"])
            try await worker.done(leases[0])
            #expect(try await fixture.sources()[0].bytes == 0)
        }
    }

    /// A source dropped for its other content becomes the better one when the version's own source breaks off for good.
    @Test func mirrorWithOtherContentTakesOverFromASourceThatIsLost() async throws {
        var policy = StoreFixture.smallPolicy
        policy.attempts = 8
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim().first)
            try await worker.learn(first, size: 250)
            try await worker.done(first)
            var sources: [Int32] = []
            for _ in 1...8 {
                guard let lease = try await worker.claimWork().first else { break }
                sources.append(lease.source)
                if lease.version > 1 { break }
                try await worker.fail(lease, lease.source == 0 ? .network : .changed, random: 0)
                try await fixture.passBackoffs()
                try await fixture.check()
            }
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.version == 2 && sources.last == 1, "\(sources)")
        }
    }

    /// A mirror that is gone gives the others neither more tries nor fewer.
    @Test(arguments: [false, true]) func eachMirrorIsTriedAsOftenAsASingleSource(isOneGone: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b", "c"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            var asked: [Int32] = []
            while let lease = try await worker.claim().first, asked.count < 100 {
                asked.append(lease.source)
                let isGone = isOneGone && lease.source == 2
                try await worker.fail(
                    lease, isGone ? .notFound : .httpStatus(500), status: isGone ? 404 : 500, random: 0)
                try await fixture.passBackoffs()
                try await fixture.check()
            }
            let task = try await fixture.store.task("t", of: "g")
            #expect(task.state == .failed)
            #expect(asked == (isOneGone ? [0, 1, 2, 0, 1, 0, 1] : [0, 1, 2, 0, 1, 2, 0, 1, 2]))
        }
    }

    /// If nothing can be resumed, another source is compared before it takes over.
    @Test(arguments: [true, false]) func slowSourceIsComparedWithAnother(isFaster: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            let size: Int64 = 20 << 20
            #expect(try await worker.answer(lease, size: size, isSplittable: false))
            #expect(try await worker.progress(lease, to: 5 << 20))
            #expect(try await fixture.store.trySlowOrigins() == 0, "the lease is young")
            try await fixture.age(.grant, by: .seconds(6))
            #expect(try await fixture.store.trySlowOrigins() == 0, "less than half a minute is left")
            try await fixture.age(.grant, by: .seconds(10))
            #expect(try await fixture.store.trySlowOrigins() == 1)
            try await fixture.check("compared")
            let trial = try #require(try await worker.claim(8).first)
            #expect(trial.kind == .trial && trial.source == 1 && trial.start == 0 && trial.isOtherMirror)
            let bytes = try #require(trial.end)
            #expect(bytes > 5 << 20 && bytes <= 20 * (5 << 20) / 16, "four times what comes in 5 s")
            #expect(try await fixture.store.trySlowOrigins() == 0, "it is under way")
            guard isFaster else {
                try await worker.fail(trial, .tooSlow)
                try await fixture.check("slower")
                #expect(try await fixture.store.trySlowOrigins() == 0, "once is enough")
                let task = try await fixture.store.task("t", of: "g")
                #expect(task.version == 1 && task.attempts == 0, "the running lease goes on")
                return
            }
            try await worker.servedAgain(trial)
            try await worker.servedAgain(trial)
            try await fixture.check("faster")
            #expect(try await worker.claimWork().isEmpty, "the slow transfer may still put the file in place")
            try await worker.letGo()
            try await fixture.passBackoffs()
            let next = try #require(try await worker.claimWork().first)
            #expect(next.source == 1 && next.version == 2 && !next.isPlanned)
            #expect(try await worker.answer(next, size: size, isSplittable: false))
            try await fixture.age(.grant, by: .seconds(6))
            #expect(try await fixture.store.trySlowOrigins() == 0, "the first source had its turn")
            #expect(try await fixture.outcomes() == ["nextSource"])
        }
    }

    @Test func sourceLeftForAFasterOneIsNotComparedAgain() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b", "c"])], isSealed: true)
            var worker = try await fixture.makeWorker()
            var lease = try #require(try await worker.claim().first)
            for faster in [1, 2] as [Int32] {
                #expect(try await worker.answer(lease, size: 20 << 20, isSplittable: false))
                #expect(try await worker.progress(lease, to: 5 << 20))
                try await fixture.age(.grant, by: .seconds(16))
                #expect(try await fixture.store.trySlowOrigins() == 1)
                let trial = try #require(try await worker.claim(8).first)
                #expect(trial.kind == .trial && trial.source == faster)
                try await worker.servedAgain(trial)
                try await worker.servedAgain(trial)
                try await worker.letGo()
                lease = try #require(try await worker.claimWork().first)
                #expect(lease.source == faster && lease.version == faster + 1)
                try await fixture.check("source \(faster)")
            }
            #expect(try await worker.answer(lease, size: 20 << 20, isSplittable: false))
            #expect(try await worker.progress(lease, to: 5 << 20))
            try await fixture.age(.grant, by: .seconds(16))
            #expect(try await fixture.store.trySlowOrigins() == 0, "each source had its turn")
        }
    }
}
