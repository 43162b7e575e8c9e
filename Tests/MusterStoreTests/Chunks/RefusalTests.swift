import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// Origins that refuse unknown files by 400, 403 or 404, either because they are overloaded or because the files don't exist (range
/// contract, rows 24 and 26).
@Suite struct RefusalTests {
    /// The origin serves the files when it has less to do, as origins do that limit in this way.
    @Test(arguments: [400, 403, 404]) func fileThatIsRefusedBesideOthersIsTriedAgainWithFewer(status: Int) async throws
    {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            for lease in leases[..<2] { try await worker.refuse(lease, status) }
            #expect(try await fixture.allowance() == 8)
            try await worker.finishAll(Array(leases[2...]))
            try await fixture.check()
            // No other lease is left beside which this one could be too much; but the other lanes may just have ended.
            try await fixture.passBackoffs()
            let again = try await worker.claim(1)
            try await worker.refuse(again[0], status)
            try await fixture.passBackoffs()
            try await worker.finishAll(try await worker.claim(2))
            #expect(try await fixture.store.group("g").tasks[.succeeded] == 4)
            _ = try await fixture.store.foldOriginRates()
            #expect(try await fixture.origins()[0].limitsWith == [Int32(status)])
            try await fixture.check()
        }
    }

    /// A connection that ends is taken for a limit at once; a status is not. Three files that stay refused show what the status
    /// means at this origin; ten thousand dead links then cost no further tries.
    @Test(arguments: [400, 403, 404]) func threeFinalRefusalsMakeTheNextOnesFinalAtOnce(
        status: Int
    ) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            for lease in leases[..<3] { try await worker.refuse(lease, status) }
            var tries = 3
            while try await fixture.store.group("g").tasks[.failed, default: 0] < 3 {
                // The remaining lease may use all of the allowance by now, and goes on.
                try await fixture.set(.learning, ago: .seconds(10))
                try await fixture.passBackoffs()
                for lease in try await worker.claim(3) {
                    try await worker.refuse(lease, status)
                    tries += 1
                }
                try await fixture.check()
            }
            #expect((9...27).contains(tries), "\(tries)")
            #expect(try await fixture.allowance() == 16, "it was no limit")
            try await worker.refuse(leases[3], status)
            #expect(try await fixture.store.task(leases[3].key, of: "g").state == .failed)
            #expect(try await fixture.allowance() == 16)
            try await fixture.check()
        }
    }

    /// The worker alternates requests for a file that was served and for the refused one: the served file is the witness (adr/0033).
    @Test(arguments: [400, 403, 404]) func resultOfAWitnessIsBelievedAtOnce(status: Int) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await worker.refuse(leases[0], status, isLimit: false)
            #expect(try await fixture.store.task(leases[0].key, of: "g").state == .failed)
            #expect(try await fixture.allowance() == 16, "it was no limit")
            // What earlier refusals of this kind took is given back, as long as none was shown to be a limit.
            try await fixture.learnLimit(1, from: Int32(status))
            #expect(try await fixture.allowance() == 1)
            try await worker.refuse(leases[3], status, isLimit: false)
            #expect(try await fixture.allowance() == 16)
            try await worker.refuse(leases[1], status, isLimit: true)
            #expect(try await fixture.store.task(leases[1].key, of: "g").state == .queued)
            #expect(try await fixture.allowance() == 8)
            // An origin that refuses a file on its own, after having served it, is retried like an overloaded one.
            try await worker.finishAll([leases[2]])
            try await fixture.passBackoffs()
            try await worker.refuse(try #require(try await worker.claim(1).first), status, isLimit: true)
            #expect(try await fixture.store.task(leases[1].key, of: "g").state == .queued)
            try await fixture.passBackoffs()
            try await worker.finishAll(try await worker.claim(1))
            #expect(try await fixture.store.group("g").tasks[.succeeded] == 2)
            try await fixture.check()
        }
    }

    /// The same holds for a status that is usually no limit, but was one here.
    @Test func resultOfAWitnessIsBelievedForAnyStatus() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await worker.refuse(leases[0], 401, isLimit: true)
            #expect(try await fixture.store.task(leases[0].key, of: "g").state == .queued)
            #expect(try await fixture.allowance() == 8)
            try await worker.refuse(leases[1], 401, isLimit: false)
            #expect(try await fixture.store.task(leases[1].key, of: "g").state == .failed)
            try await fixture.check()
        }
    }

    /// An origin that serves this worker nothing shows it no limit; but other workers may be served.
    @Test(arguments: [false, true]) func refusalOfAnOriginThatServesNothingIsForItsFile(isShared: Bool) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(2)
            var other = try await fixture.makeWorker()
            if isShared { _ = try await other.claim(1) }
            try await worker.refuse(leases[0], 404, isUnserved: true)
            let state = try await fixture.store.task(leases[0].key, of: "g").state
            #expect(state == (isShared ? .queued : .failed))
            // The allowance is not reduced for it.
            if !isShared { #expect(try await fixture.allowance() == 16) }
            try await fixture.check()
        }
    }

    /// The origin has served something a moment ago: that may be all that it serves for now.
    @Test func refusalOfAnOriginThatHasJustServedMayBeForALimit() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(3)
            _ = try await worker.learn(leases[0], size: 1_000, isSplittable: false)
            _ = try await worker.progress(leases[0], to: 100)
            try await worker.refuse(leases[1], 404, isUnserved: true)
            #expect(try await fixture.store.task(leases[1].key, of: "g").state == .queued)
            try await fixture.check()
        }
    }

    /// A file whose other chunks are served exists, whatever the status says.
    @Test(arguments: [405, 410, 451], [true, false]) func refusalOfAChunkBesideOthersOfTheFileIsNotForTheFile(
        status: Int, isServed: Bool
    ) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            let first = try #require(try await worker.claim(1).first)
            #expect(try await worker.answer(first, size: 300, etag: "\"1\""))
            let rest = try await worker.claim(2)
            #expect(rest.count == 2)
            if isServed { #expect(try await worker.progress(rest[0], to: rest[0].start + 10)) }
            try await worker.refuse(rest[1], status)
            // 410 may say that the URL has expired (row 21).
            let goesOn = isServed || status == 410
            #expect(try await fixture.store.task("t", of: "g").state == (goesOn ? .active : .failed))
            try await fixture.check()
        }
    }

    /// A directory may have a limit that another worker uses up: this worker is then served nothing of it, and can't see the limit.
    @Test(arguments: [true, false]) func resultOfAWitnessIsDoubtedIfAnotherWorkerIsServed(
        isServed: Bool
    ) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(2))
            var other = try await fixture.makeWorker()
            let theirs = try #require(try await other.claim(1).first)
            if isServed {
                _ = try await other.learn(theirs, size: 1_000, isSplittable: false)
                _ = try await other.progress(theirs, to: 100)
            }
            var worker = try await fixture.makeWorker()
            let ours = try #require(try await worker.claim(1).first)
            try await fixture.set("origins", "limits_with", to: [Int32(403)])
            try await worker.refuse(ours, 403, isLimit: false)
            let state = try await fixture.store.task(ours.key, of: "g").state
            #expect((state == .failed) == !isServed, "\(state)")
            try await fixture.check()
        }
    }

    @Test func fileMissingAtAMirrorIsNoSignOfALimit() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, origins: ["a", "b"]))
            var worker = try await fixture.makeWorker()
            let lease = try #require(try await worker.claim(4).first { $0.source == 0 })
            try await worker.refuse(lease, 404)
            #expect(try await fixture.allowance() == 16)
            #expect(try await worker.claim(1).map(\.source) == [1])
            try await fixture.check()
        }
    }

    /// Nothing else was ever requested of the origin.
    @Test func loneNotFoundIsBelievedAtOnce() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await worker.refuse(try #require(try await worker.claim().first), 404)
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
        }
    }

    /// One status's meaning says nothing about another's: an origin may lack files, and limit by 403.
    @Test func knownMeaningOfAStatusDoesNotApplyToAnother() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4))
            var worker = try await fixture.makeWorker()
            let leases = try await worker.claim(4)
            try await fixture.set("origins", "refuses_with", to: [404, 404, 404] as [Int32])
            try await fixture.set("origins", "limits_with", to: [Int32(400)])
            try await worker.refuse(leases[0], 404)
            #expect(try await fixture.store.task(leases[0].key, of: "g").state == .failed)
            #expect(try await fixture.allowance() == 16)
            try await worker.refuse(leases[1], 403)
            #expect(try await fixture.store.task(leases[1].key, of: "g").state == .queued)
            #expect(try await fixture.allowance() == 8)
            try await fixture.learnLimit(nil)
            try await fixture.forgetAnswers()
            try await worker.refuse(leases[2], 400)
            #expect(try await fixture.allowance() == 8)
            try await fixture.check()
        }
    }

    /// Tokens may expire in the middle of a list. A 401 says so itself; the other statuses are tolerated for as long as rate limits last.
    @Test(arguments: [(401, 4, 6), (403, 9, 11)] as [(Int, Int32, Int32)])
    func statusThatWasALimitIsNoneAfterALongSilence(status: Int, soon: Int32, late: Int32) async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3))
            var worker = try await fixture.makeWorker()
            try await fixture.set("origins", "limits_with", to: [400, Int32(status)])
            try await fixture.learnLimit(1, from: Int32(status))
            try await fixture.set("origins", "rate_bytes", to: 1.0)
            try await fixture.set(.originBytes, ago: .seconds(soon))
            let first = try #require(try await worker.claim().first)
            try await worker.refuse(first, status)
            #expect(try await fixture.store.task(first.key, of: "g").state == .queued)
            try await fixture.restOrigins(for: nil)
            try await fixture.set(.originBytes, ago: .seconds(late))
            let second = try #require(try await worker.claim().first)
            try await worker.refuse(second, status)
            #expect(try await fixture.store.task(second.key, of: "g").state == .failed)
            // The waiting task is tried again at once, with the full allowance, and its refusal is believed.
            #expect(try await fixture.allowance() == 16)
            _ = try await fixture.store.promoteDueChunks()
            for lease in try await worker.claim(2) { try await worker.refuse(lease, status) }
            #expect(try await fixture.store.group("g").tasks[.failed] == 3)
            #expect(try await fixture.origins()[0].limitsWith == [400])
            try await fixture.check()
        }
    }

    /// The origin may have a rate limit per time, and may count refused requests too.
    @Test func originThatRefusesALoneRequestRests() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(3))
            var worker = try await fixture.makeWorker()
            for (seconds, least) in [(0, 0.1), (15, 3), (80, 8)] as [(Int32, Double)] {
                try await fixture.restOrigins(for: nil)
                try await fixture.set("origins", "rate_bytes", to: 1.0)
                try await fixture.set(.originBytes, ago: .seconds(seconds))
                try await fixture.set(.doubt, ago: .seconds(max(0, seconds - 1)))
                try await worker.refuse(try #require(try await worker.claim().first), 429)
                let origin = try await fixture.origins()[0]
                let (rest, silence) = (try #require(origin.restAfterRefusal), origin.silenceBeforeRefusal)
                #expect(rest >= least && rest <= min(10, max(0.2, silence / 3)) + 0.001, "after \(silence) s")
                try await fixture.check()
            }
            #expect(try await worker.claim().isEmpty)
        }
    }

    /// It has served all that was asked for: that nothing came for a while shows no limit, and others must not wait for it (I19).
    @Test func originThatWasIdleBeforeItRefusesOneFileRestsForAMoment() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t")])
            var worker = try await fixture.makeWorker()
            try await fixture.set("origins", "rate_bytes", to: 1.0)
            try await fixture.set(.originBytes, ago: .seconds(66))
            try await worker.refuse(try #require(try await worker.claim().first), 503)
            let rest = try #require(try await fixture.origins()[0].restAfterRefusal)
            #expect(rest <= 0.201)
        }
    }

    /// A burst of refusals is one statement; each is handled as if it had come alone.
    @Test func manyRefusalsAreHandledTogether() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(12))
            var worker = try await fixture.makeWorker()
            try await fixture.set("origins", "refuses_with", to: [404, 404, 404] as [Int32])
            let leases = try await worker.claim(12)
            let failures = leases.map { lease in
                LeaseReport.Failed(
                    progress: .init(
                        session: worker.session, lease: lease.name, durable: DurablePrefix(offset: lease.start, crc: 7)),
                    kind: lease.key == leases[3].key ? .timeout : .notFound, detail: lease.key, source: 0,
                    status: lease.key == leases[3].key ? nil : 404, random: 0.5)
            }
            // One failure is repeated, as in a repeated sync.
            try await fixture.store.report(failed: failures + [failures[0]])
            try await fixture.check()
            let group = try await fixture.store.group("g")
            #expect(group.tasks[.failed] == 11 && group.tasks[.queued] == 1)
            let keys = Dictionary(uniqueKeysWithValues: try await fixture.tasks().map { ($0.id, $0.key) })
            let noted = try await fixture.attempts().filter { $0.detail == keys[$0.taskId] }
            #expect(Set(noted.map(\.taskId)).count == 12)
        }
    }

    /// A lane whose leases were granted together works through them one by one: the lane of the next lease is no other transfer.
    @Test func originThatRefusesTheOnlyLaneRests() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", Wanted.many(4, size: 10))
            var worker = try await fixture.makeWorker()
            try await worker.finishAll(try await worker.claim(1))
            #expect(try await fixture.store.foldOriginRates() == 1)
            try await fixture.learnLimit(1)
            let lease = try #require(try await worker.claim(1).first)
            try await fixture.set("origins", "refused_epoch", to: lease.name.epoch)
            try await worker.refuse(lease, 403, isLimit: true)
            let rest = try #require(try await fixture.origins()[0].rest)
            #expect(rest > 0)
            try await fixture.check()
        }
    }
}
