import MusterCore
import MusterStore
import Testing

/// A piece cut off a running chunk that is then refused goes back to the request that covers it (adr/0037).
@Suite struct GiveBackTests {
    /// A file of 1,000 bytes that one request fetches, now at 250. It is cut at 300; the rest is in chunks of 100, some of which are leased.
    private struct Scene {
        let fixture: StoreFixture
        var holder: TestWorker
        var others: TestWorker
        let whole: GrantedLease
        /// The leased pieces, in the order of the file.
        let pieces: [GrantedLease]

        /// With `speed`, the holder has reported only that, and no progress.
        init(_ fixture: StoreFixture, leasing count: Int32, isSlow: Bool = true, speed: Int64? = nil) async throws {
            try await fixture.makeGroup("g", [Wanted("t")], isSealed: true)
            holder = try await fixture.makeWorker("holder")
            others = try await fixture.makeWorker("others")
            whole = try #require(try await holder.claim().first)
            try await holder.answer(whole, size: 1_000, etag: "\"1\"", askedForAll: true)
            try await fixture.setServesAgain()
            try await fixture.dropTrials()
            if speed == nil { try await holder.progress(whole, to: 250) }
            // A lease granted after now has brought all its bytes in no time.
            if !isSlow { try await fixture.age(.grant, by: .seconds(-60)) }
            #expect(try await holder.shrink(whole, to: 300, speed: speed) == .agreed)
            pieces = try await others.claim(count).sorted { $0.start < $1.start }
            try #require(pieces.count == Int(count))
            self.fixture = fixture
        }

        /// The requests to the holder.
        func wishes() async throws -> [ShrinkWish] { try await fixture.store.shrinkWishes(of: holder.session) }

        /// The end of the holder's chunk.
        func end() async throws -> Int64 {
            try #require(try await fixture.leases().first { $0.chunkId == whole.name.chunk.rawValue }?.last)
        }

        /// The chunks without a lease.
        func ready() async throws -> [String] {
            try await fixture.readyChunks().filter { $0.kind == "fetch" }
                .map { "\($0.first) \($0.last ?? 0) \($0.status) \($0.attempts)" }
        }

        /// Lets the other worker fetch the rest, and checks that the group succeeds.
        mutating func finish() async throws {
            try await others.finishEverything(size: 1_000)
            #expect(try await fixture.store.group("g").state == .succeeded)
            try await fixture.check("in the end")
        }
    }

    /// The ways in which a piece may fail.
    static let failures: [(FailureKind, Int32?)] = [
        (.notFound, 404), (.notFound, 410), (.httpStatus(403), 403), (.authentication, 401), (.network, nil),
        (.timeout, nil),
        (.changed, nil), (.badRange, 416), (.httpStatus(500), 500),
    ]

    @Test(arguments: failures) func refusedPieceGoesBackWithAllThatFollows(
        kind: FailureKind, status: Int32?
    ) async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 1)
            #expect(scene.pieces[0].pace != nil && scene.pieces[0].looks == nil)
            try await scene.others.fail(scene.pieces[0], kind, status: status)
            try await fixture.check("given back")
            #expect(try await scene.ready().isEmpty)
            let wish = try #require(try await scene.wishes().first)
            #expect(wish.lease == scene.whole.name && wish.end == 1_000 && wish.isFurther)
            #expect(try await fixture.store.shrinkingSessions() == [scene.holder.session])
            let task = try await fixture.tasks()[0]
            #expect(task.attempts == 0 && task.failureKind == nil, "no try of the file")
            #expect(try await fixture.sources()[0].failures == 0)
            #expect(try await fixture.origins()[0].learned == nil, "nor a failure of its origin")
            #expect(try await scene.holder.shrink(scene.whole, to: 1_000) == .kept)
            #expect(try await scene.wishes().isEmpty)
            try await scene.holder.progress(scene.whole, to: 700)
            try await fixture.passStraggling()
            #expect(try await scene.others.help(8).asked.isEmpty, "it is not divided again")
            #expect(try await fixture.store.preempt().isEmpty)
            // Late reports change nothing.
            try await scene.others.fail(scene.pieces[0], kind, status: status)
            try await scene.others.done(scene.pieces[0])
            #expect(try await scene.holder.shrink(scene.whole, to: 300) == .kept)
            #expect(try await scene.end() == 1_000)
            try await fixture.check("late")
            try await scene.holder.done(scene.whole, at: 1_000)
            try await scene.finish()
        }
    }

    @Test func pieceThatContradictsRangesGoesBackToo() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 1)
            try await scene.others.restart(scene.pieces[0], on: .whole)
            try await fixture.check("given back")
            #expect(try await scene.end() == 1_000)
            #expect(try await fixture.outcomes().last == "returned")
            try await scene.holder.done(scene.whole, at: 1_000)
            try await scene.finish()
        }
    }

    /// The holder had not heard of the part given back.
    @Test func unfetchedPartIsReadyForOthersIfItsHolderEndsFirst() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 1)
            try await scene.others.fail(scene.pieces[0], .notFound, status: 404)
            try await scene.holder.done(scene.whole, at: 300)
            try await fixture.check("done")
            #expect(try await scene.ready() == ["300 1000 ready 0"])
            try await scene.finish()
        }
    }

    @Test func holderThatIsLostLeavesOneChunk() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 1)
            try await scene.others.fail(scene.pieces[0], .notFound, status: 404)
            try await fixture.expire(scene.holder.session)
            try await fixture.check("lost")
            #expect(try await scene.ready() == ["0 1000 ready 0"])
            try await scene.finish()
        }
    }

    @Test func pieceWithDurableBytesStays() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 1)
            try await scene.others.fail(scene.pieces[0], .network, at: 310)
            try await fixture.check("failed")
            #expect(try await scene.end() == 300)
            #expect(try await scene.ready().first?.hasPrefix("300 400") == true)
            try await scene.holder.done(scene.whole, at: 300)
            try await scene.finish()
        }
    }

    @Test func leasedAndDonePiecesStay() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 4)
            let pieces = scene.pieces
            try await scene.others.progress(pieces[3], to: 620)
            try await scene.others.fail(pieces[0], .notFound, status: 404)
            #expect(try await scene.end() == 400, "the next one is leased")
            try await scene.others.done(pieces[2], at: 600)
            try await scene.others.fail(pieces[1], .notFound, status: 404)
            try await fixture.check("given back")
            #expect(try await scene.end() == 500, "the next one is done")
            #expect(try await scene.ready().map { $0.prefix(3) } == ["700", "800", "900"])
            try await scene.holder.done(scene.whole, at: 500)
            try await scene.others.done(pieces[3], at: 700)
            try await scene.finish()
        }
    }

    /// Only pieces of the holder's own session, which is known to be alive, reach beyond their ends: bytes requested there would
    /// otherwise be fetched twice (I16).
    @Test func pieceTakesOverFromTheNextOne() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 1)
            #expect(scene.pieces[0].reach == 400, "another session's request runs")
            let own = try await scene.holder.claim(2).sorted { $0.start < $1.start }
            try #require(own.count == 2)
            #expect(own.map(\.reach) == [1_000, 1_000])
            try await scene.holder.progress(own[0], to: 410)
            try await scene.holder.fail(own[1], .notFound, status: 404)
            try await fixture.check("given back")
            let wish = try #require(try await scene.wishes().first)
            #expect(wish.lease == own[0].name && wish.end == 1_000 && wish.isFurther)
            try await scene.holder.done(own[0], at: 1_000)
            try await scene.holder.done(scene.whole, at: 300)
            try await scene.others.done(scene.pieces[0], at: 400)
            try await scene.finish()
        }
    }

    /// The piece before it was requested at the same moment.
    @Test func pieceIsRequestedOnItsOwnIfNoRequestCoversIt() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 2, isSlow: false)
            let pieces = scene.pieces
            #expect(
                pieces.map(\.reach) == [400, 500] && pieces.allSatisfy { $0.pace == 0 },
                "cutting a longer request would waste the bytes in flight")
            try await scene.others.fail(scene.pieces[1], .changed)
            try await fixture.check("put back")
            #expect(try await scene.ready().first == "400 500 waiting 0")
            try await scene.others.fail(scene.pieces[0], .changed)
            try await fixture.check("given back")
            #expect(try await scene.end() == 1_000)
            try await scene.holder.done(scene.whole, at: 300)
            let rest = try #require(try await scene.others.claim().first)
            #expect(rest.start == 300 && rest.pace == nil && rest.looks != nil, "no request runs before it")
            try await scene.others.fail(rest, .notFound, status: 404)
            // From now on its failures count as those of any chunk, unless a limit may be the cause.
            try await fixture.forgetAnswers()
            do {
                try await fixture.passBackoffs()
                let again = try #require(try await scene.others.claim().first)
                #expect(again.start == 300 && again.pace == nil && again.looks != nil)
                try await scene.others.fail(again, .notFound, status: 404)
            }
            #expect(try await fixture.store.task("t", of: "g").state == .failed)
            try await fixture.check("failed")
        }
    }

    /// The origin still serves the request that covers the piece.
    @Test func certainLimitIsAppliedAndThePieceGoesBack() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 1)
            try await scene.others.fail(scene.pieces[0], .httpStatus(503), status: 503)
            try await fixture.check("given back")
            #expect(try await scene.end() == 1_000)
            #expect(try await fixture.origins()[0].learned != nil)
            try await scene.holder.done(scene.whole, at: 1_000)
            try await scene.finish()
        }
    }

    @Test func limitedPieceStaysIfNoRequestCoversIt() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 1)
            try await scene.holder.done(scene.whole, at: 300)
            try await scene.others.fail(scene.pieces[0], .httpStatus(503), status: 503)
            try await fixture.check("refused")
            #expect(try await scene.ready().first?.hasPrefix("300 400 ") == true)
            try await scene.finish()
        }
    }

    /// Bytes requested beyond their ends would be fetched twice.
    @Test func piecesAreRequestedOnlyToTheirEndsIfNoRequestRunsBeforeThem() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 1)
            #expect(scene.pieces[0].pace != nil)
            try await fixture.expire(scene.holder.session)
            try await fixture.expire(scene.others.session)
            scene.others = try await fixture.makeWorker("later")
            let again = try await scene.others.claim(8)
            #expect(again.count > 2 && again.allSatisfy { $0.pace == nil })
            for lease in again { try await scene.others.done(lease, at: lease.end) }
            try await scene.finish()
        }
    }

    /// The piece was pulled to a mirror that lacks the file, while a request at the first source covers it.
    @Test func pieceMissingAtAMirrorIsRequestedBesideTheRunningRequest() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.makeGroup("g", [Wanted("t", origins: ["a", "b"])], isSealed: true)
            var holder = try await fixture.makeWorker("holder")
            let whole = try #require(try await holder.claim().first)
            #expect(whole.asksForAll)
            try await holder.answer(whole, size: 1_000, etag: "\"1\"", askedForAll: true)
            try await fixture.setServesAgain()
            try await fixture.dropTrials()
            try await holder.progress(whole, to: 250)
            #expect(try await holder.shrink(whole, to: 300) == .agreed)
            var others = try await fixture.makeWorker("others")
            let pieces = try await others.claim(8)
            let pulled = try #require(pieces.first { $0.source == 1 })
            #expect(pulled.pace == nil, "no request runs at the mirror")
            try await others.fail(pulled, .notFound, status: 404)
            try await fixture.passBackoffs()
            let again = try #require(try await others.claim(8).first { $0.start == pulled.start })
            #expect(again.source == 0 && again.pace != nil)
            try await fixture.check("asked beside")
        }
    }

    @Test func pieceHasToReachATenthOfTheRunningRequestsSpeed() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Scene(fixture, leasing: 1)
            try await fixture.setProgress(of: scene.whole, after: .seconds(2))
            var other = try await fixture.makeWorker("other")
            let piece = try #require(try await other.claim(1).first)
            #expect(piece.pace == 12)
        }
    }

    /// The holder reports its durable offset only every few seconds.
    @Test func pieceHasAPaceBesideARequestWithoutDurableBytes() async throws {
        try await StoreFixture.run { fixture in
            let scene = try await Scene(fixture, leasing: 1, speed: 500_000)
            #expect(scene.pieces[0].pace == 50_000)
        }
    }

    /// The session may be gone, and a part given back to it would return only when it expires.
    @Test func silentSessionIsGivenNothingBackAndSetsNoPace() async throws {
        try await StoreFixture.run { fixture in
            var scene = try await Scene(fixture, leasing: 1)
            #expect(scene.pieces[0].pace != nil)
            try await fixture.age(.sync, by: .seconds(3_600), of: scene.holder.session.rawValue)
            let piece = try #require(try await scene.others.claim(1).first)
            #expect(piece.pace == nil && piece.reach == nil)
            try await scene.others.fail(scene.pieces[0], .notFound, status: 404)
            try await fixture.check("failed")
            #expect(try await scene.end() == 300)
            #expect(try await scene.ready().first == "300 400 waiting 0")
            try await scene.others.done(piece)
            try await scene.holder.done(scene.whole, at: 300)
            try await fixture.passBackoffs()
            try await scene.finish()
        }
    }
}
