import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// URLs that may work once (range contract, row 22): when a lease asks for all of a file, and when the file is divided.
@Suite struct FirstRequestTests {
    /// A lease that fetches all of a file of 1,000 bytes, with chunks of 100, and the trial beside it.
    private static func begin(
        _ fixture: StoreFixture, _ worker: inout TestWorker
    ) async throws -> (whole: GrantedLease, trial: GrantedLease) {
        let whole = try #require(try await worker.claim().first)
        #expect(whole.asksForAll && whole.kind == .fetch)
        #expect(try await worker.answer(whole, size: 1_000, etag: "\"1\"", askedForAll: true))
        try await fixture.check("answered")
        let trial = try #require(try await worker.claim().first)
        #expect(trial.kind == .trial && trial.start == 999 && trial.end == 1_000 && trial.lane > 0)
        return (whole, trial)
    }

    @Test func fileThatMayBeServedOnceIsDividedWhenItsOriginHasServedAgain() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let (whole, trial) = try await Self.begin(fixture, &worker)
            #expect(try await worker.claim(8).isEmpty, "the rest belongs to the one request")
            #expect(try await worker.progress(whole, to: 250))
            try await fixture.passStraggling()
            #expect(try await worker.help(8).asked.isEmpty, "the origin may serve no other request")

            try await worker.servedAgain(trial)
            try await fixture.check("served again")
            #expect(try await worker.help(8).asked == [worker.session])
            let wish = try #require(try await fixture.store.shrinkWishes(of: worker.session).first)
            #expect(wish.lease == whole.name && wish.end == 300)
            #expect(try await worker.shrink(whole, to: 320) == .agreed)
            try await fixture.check("divided")
            let rest = try await worker.claim(16)
            #expect(rest.map(\.start).sorted() == [320, 420, 520, 620, 720, 820, 920])
            #expect(rest.allSatisfy { $0.isPlanned && !$0.asksForAll && !$0.isFenced })
            for lease in rest + [whole] { try await worker.done(lease) }
            try await worker.finishEverything(size: 1_000)
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }

    /// Each idle connection gets its share of the rest, in pieces of at most ten seconds.
    @Test(arguments: [(1, 8), (21, 4), (43, 2)] as [(Int32, Int64)])
    func slowFileIsDividedAmongTheConnectionsThatAreIdle(idle: Int32, mebibytes: Int64) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let whole = try #require(try await worker.claim().first)
            #expect(
                try await worker.answer(whole, size: 100 << 20, etag: "\"1\"", askedForAll: true, chunkSize: 8 << 20))
            try await fixture.setServesAgain()
            try await fixture.capOrigins(at: 64)
            try await fixture.dropTrials()
            #expect(try await worker.progress(whole, to: 12 << 20))
            try await fixture.age(.grant, by: .seconds(4))
            #expect(try await worker.help(idle).asked == [worker.session])
            let tile = try #require(try await fixture.leases()[0].tile)
            #expect((tile + (1 << 20) - 1) >> 20 == mebibytes, "\(tile) bytes")
        }
    }

    /// A file smaller than a chunk is fetched by several connections if it comes slowly: in pieces of ten seconds, of at least one mebibyte.
    @Test(arguments: [true, false], [true, false])
    func smallFileIsDividedIfItComesSlowly(isSlow: Bool, isKnown: Bool) async throws {
        var policy = StoreFixture.smallPolicy
        policy.firstChunk = 8 << 20
        try await StoreFixture.run(policy: policy) { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            if isKnown { try await fixture.setServesAgain() }
            var worker = try await fixture.makeWorker()
            let whole = try #require(try await worker.claim().first)
            #expect(
                try await worker.answer(whole, size: 4 << 20, etag: "\"1\"", askedForAll: !isKnown, chunkSize: 8 << 20))
            try await fixture.setServesAgain()
            try await fixture.dropTrials()
            #expect(try await worker.progress(whole, to: isSlow ? 300_000 : 2 << 20))
            try await fixture.age(.grant, by: .seconds(3))
            let asked = try await worker.help(8).asked
            guard isSlow else {
                #expect(asked.isEmpty, "it ends before helpers could begin")
                return
            }
            #expect(asked == [worker.session])
            let wish = try #require(try await fixture.store.shrinkWishes(of: worker.session).first)
            #expect(wish.end == 1 << 20)
            #expect(try await worker.shrink(whole, to: wish.end) == .agreed)
            try await fixture.check("divided")
            #expect(try await worker.claim(16).map(\.start).sorted() == [1 << 20, 2 << 20, 3 << 20])
        }
    }

    /// The trial is a plain GET beside the running lease. It is made once, whatever its result, and whether or not the origin serves again.
    @Test(arguments: [true, false]) func originThatServesSlowlyIsTriedOnce(isServed: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t"), Wanted("u")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let size: Int64 = 3 << 20
            let leases = try await worker.claim(2)
            for lease in leases {
                #expect(try await worker.answer(lease, size: size, etag: "\"1\"", askedForAll: true))
            }
            try await fixture.dropTiles()
            try await fixture.dropTrials()
            #expect(try await fixture.store.trySlowOrigins() == 0, "the leases are young")
            #expect(try await worker.progress(leases[0], to: 100_000))
            try await fixture.age(.grant, by: .seconds(6))
            #expect(try await fixture.store.trySlowOrigins() == 1)
            try await fixture.check("tried")
            let trial = try #require(try await worker.claim(8).first)
            #expect(trial.kind == .trial && trial.start == 0)
            #expect(trial.end == (trial.key == leases[0].key ? 400_000 : 65_536))
            #expect(try await fixture.store.trySlowOrigins() == 0, "it is under way")
            if isServed { try await worker.servedAgain(trial) } else { try await worker.refuse(trial, 403) }
            try await fixture.check("answered")
            #expect(try await fixture.store.trySlowOrigins() == 0, "once is enough")
            try await fixture.age(.comparison, by: .seconds(660))
            #expect(try await fixture.store.trySlowOrigins() == 1)
        }
    }

    /// Other parts of the file may come fast meanwhile, but this one shows how similar requests will go on.
    @Test(arguments: [true, false]) func originIsTriedBesideAFirstChunkThatHasStalled(
        hasStopped: Bool
    ) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            #expect(try await worker.answer(lease, size: 40 << 20, etag: "\"1\"", askedForAll: true))
            try await fixture.dropTiles()
            try await fixture.set("leases", "last", to: 8 << 20)
            try await fixture.age(.grant, by: .seconds(6))
            try await fixture.dropTrials()
            #expect(try await worker.progress(lease, to: 1 << 20))
            if hasStopped { try await fixture.age(.progress, by: .seconds(6)) }
            #expect(try await fixture.store.trySlowOrigins() == (hasStopped ? 1 : 0))
        }
    }

    @Test func originThatServesFastIsNotTried() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim().first)
            let size: Int64 = 8 << 20
            #expect(try await worker.answer(lease, size: size, etag: "\"1\"", askedForAll: true))
            try await fixture.dropTiles()
            try await fixture.age(.grant, by: .seconds(6))
            try await fixture.dropTrials()
            #expect(try await worker.progress(lease, to: 2 << 20))
            #expect(try await fixture.store.trySlowOrigins() == 0)
            #expect(try await worker.progress(lease, to: size - 1_000))
            try await fixture.age(.grant, by: .seconds(3))
            #expect(try await fixture.store.trySlowOrigins() == 0, "it is nearly complete")
        }
    }

    @Test func fileOfAnOriginThatServesOnceIsFetchedByItsFirstRequest() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t"), Wanted("u")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let (whole, trial) = try await Self.begin(fixture, &worker)
            try await worker.refuse(trial, 403)
            try await fixture.check("refused")
            let next = try await worker.claim(8)
            #expect(next.map(\.key) == ["u"] && next.allSatisfy(\.asksForAll), "nothing is known of the origin")
            let task = try #require(try await fixture.tasks().first { $0.key == "t" })
            let learned = try await fixture.origins()[0].learned
            #expect(
                task.attempts == 0 && task.failureKind == nil && learned == nil,
                "the refusal says nothing of the file, nor of a limit")
            try await worker.finish(whole, size: 1_000)
            try await fixture.check("finished")
            #expect(try await fixture.store.task("t", of: "g").state == .succeeded)
        }
    }

    @Test func originKnownToServeAgainIsAskedForParts() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t"), Wanted("u"), Wanted("v", origins: ["b"])])
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(3)
            #expect(leases.map(\.asksForAll) == [true, true, true])
            try await worker.answer(leases[0], size: 1_000, etag: "\"1\"", askedForAll: true)
            let trial = try #require(try await worker.claim().first)
            try await worker.servedAgain(trial)
            try await worker.servedAgain(trial)
            // This lease had asked for all before that was known.
            try await worker.answer(leases[1], size: 1_000, etag: "\"1\"", askedForAll: true)
            #expect(try await worker.help(8).asked.isEmpty, "the leases may end within a second")
            try await fixture.passStraggling()
            #expect(try await worker.help(8).asked == [worker.session, worker.session])
            #expect(try await fixture.store.shrinkWishes(of: worker.session).map(\.end) == [100, 100])
            try await worker.answer(leases[2], size: 1_000, etag: "\"1\"", askedForAll: true)
            #expect(try await fixture.chunks() == ["trial 999 0 ready 0"], "of the other origin nothing is known")
            try await fixture.makeGroup("h", [Wanted("w"), Wanted("x", origins: ["b"])])
            let more = try await worker.claim(3).filter { $0.kind == .fetch }
            #expect(more.map { "\($0.key) \($0.asksForAll)" }.sorted() == ["w false", "x true"])
            try await fixture.check()
        }
    }

    @Test func fileWhoseFirstLeaseEndedEarlyIsResumedInParts() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let (whole, trial) = try await Self.begin(fixture, &worker)
            try await worker.release(trial)
            try await worker.release(whole, at: 250)
            try await fixture.check("released")
            let rest = try await worker.claim(16).filter { $0.kind == .fetch }
            #expect(rest.map(\.start).sorted() == [0, 300, 400, 500, 600, 700, 800, 900])
            #expect(rest.allSatisfy { !$0.asksForAll })
            for lease in rest { try await worker.release(lease) }
            try await worker.finishEverything(size: 1_000)
        }
    }

    @Test func trialOfALostWorkerIsMadeAgain() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker("holder")
            let whole = try #require(try await worker.claim().first)
            try await worker.answer(whole, size: 1_000, etag: "\"1\"", askedForAll: true)
            var other = try await fixture.makeWorker("other")
            for _ in 0..<fixture.policy.deaths + 1 {
                #expect(try await other.claim().map(\.kind) == [.trial])
                try await fixture.expire(other.session)
                try await fixture.check("lost")
                other = try await fixture.makeWorker("other")
            }
            #expect(try await fixture.store.task("t", of: "g").state == .active, "a trial says nothing of its file")
            try await worker.finish(whole, size: 1_000)
            #expect(try await fixture.chunks().isEmpty)
            try await fixture.check("finished")
        }
    }

    @Test func smallerCapWaitsForFilesThatMayBeServedOnce() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t"), Wanted("u")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            for lease in leases { try await worker.answer(lease, size: 1_000_000, etag: "\"1\"", askedForAll: true) }
            try await fixture.capOrigins(at: 1)
            try await fixture.age(.grant, by: .seconds(10))
            #expect(try await fixture.store.preempt().isEmpty)
            try await fixture.setServesAgain()
            #expect(try await fixture.store.preempt() == [worker.session])
        }
    }

    @Test func pausedFileIsResumedInParts() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let (whole, _) = try await Self.begin(fixture, &worker)
            #expect(try await worker.progress(whole, to: 250))
            _ = try await fixture.store.apply(.pause, to: "g", keys: nil)
            try await fixture.check("paused")
            #expect(
                try await fixture.holdouts(inLanes: true).count == 2,
                "both connections count until the worker releases them")
            #expect(try await fixture.chunks().count == 8)
            _ = try await fixture.store.apply(.resume, to: "g", keys: nil)
            try await worker.letGo()
            try await worker.finishEverything(size: 1_000)
            #expect(try await fixture.store.group("g").state == .succeeded)
        }
    }

    @Test func trialOutlivesItsFileAndIsStillEvaluated() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            var worker = try await fixture.makeWorker()
            let (whole, trial) = try await Self.begin(fixture, &worker)
            try await worker.finish(whole, size: 1_000)
            try await fixture.check("finished")
            try await worker.servedAgain(trial)
            try await fixture.check("served again")
            #expect(try await fixture.origins()[0].servesAgain)
            #expect(try await fixture.count(of: "leases") == 0)
        }
    }

    @Test func originOfAFileThatFinishedAtOnceIsStillTried() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3), isSealed: true)
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(3)
            for lease in leases[..<2] {
                try await worker.answer(lease, size: 1_000, etag: "\"1\"", askedForAll: true)
                try await worker.finish(lease, size: 1_000)
            }
            try await fixture.check("finished")
            let trials = try await worker.claim(8)
            #expect(trials.map(\.kind) == [.trial], "one trial per group at a time")
            try await worker.servedAgain(trials[0])
            try await worker.answer(leases[2], size: 1_000, etag: "\"1\"", askedForAll: true)
            #expect(try await fixture.chunks().isEmpty)
            try await worker.finish(leases[2], size: 1_000)
            try await fixture.check("all")
        }
    }

    @Test func sourcesWithAResolverOrWithoutHTTPAreAskedForParts() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("files", [Wanted("v")])
            try await fixture.set("sources", "url", to: "sftp://a.test/v")
            try await fixture.makeGroup("mirrors", [Wanted("t", origins: ["a", "b"])])
            try await fixture.makeResolvedGroup("resolved", [Wanted("u")])
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(8)
            #expect(leases.count == 3 && leases.filter(\.asksForAll).map(\.group) == ["mirrors"])
        }
    }
}
