import MusterCore
import Testing

struct LadderTests {
    private static let fresh = Ladder.Situation(
        hasRange: true, isUntouched: true, hasServedRange: false, isShared: false)
    private static let plain = Ladder.Situation(
        hasRange: false, isUntouched: true, hasServedRange: false, isShared: false)
    private static let planned = Ladder.Situation(
        hasRange: true, isUntouched: false, hasServedRange: true, isShared: false)

    private static func refusal(_ kind: FailureKind) -> Ladder.Contradiction {
        .refusal(kind, "no", retryAfter: nil)
    }

    @Test func contradictionsLeadDownOneRungAtATimeAndTheLastOneFails() {
        var ladder = Ladder()
        #expect(ladder.move(after: .answer("one", to: .stream), in: Self.fresh) == .ask)
        #expect(ladder.rung == .stream)
        #expect(ladder.move(after: Self.refusal(.httpStatus(400)), in: Self.fresh) == .ask)
        #expect(ladder.rung == .whole)
        #expect(
            ladder.move(after: .answer("three", to: .stream), in: Self.plain)
                == .fail(
                    .badRange, "with a range: one; with a range up to the end: no; without a range: three",
                    retryAfter: nil))
    }

    @Test func anOutcomeThatSeveralRequestsHadIsSaidOnce() {
        var ladder = Ladder()
        #expect(ladder.move(after: .answer("odd", to: .stream), in: Self.fresh) == .ask)
        #expect(ladder.move(after: .answer("odd", to: .stream), in: Self.fresh) == .ask)
        #expect(
            ladder.move(after: .answer("odd", to: .stream), in: Self.plain)
                == .fail(.badRange, "with a range and without one: odd", retryAfter: nil))
    }

    @Test func bodyThatIsCutInHTTP2IsAskedForInHTTP1BeforeItIsGivenUp() {
        var situation = Self.planned
        situation.isHTTP2 = true
        let cut = Ladder.Contradiction.ending(.network, "no", .init(first: 0, count: 0))
        var ladder = Ladder()
        situation.looks = .ended
        #expect(ladder.move(after: cut, in: situation) == .look)
        #expect(!ladder.isHTTP1)
        situation.looks = .failed
        #expect(ladder.move(after: cut, in: situation) == .ask)
        #expect(ladder.isHTTP1)
        #expect(ladder.move(after: cut, in: situation) == .look)
    }

    @Test func rungsThatCannotHelpAreLeftOut() {
        var ladder = Ladder()
        #expect(ladder.move(after: .answer("coded", to: .whole), in: Self.fresh) == .ask)
        #expect(ladder.rung == .whole)
    }

    @Test(arguments: [400, 401, 403, 405, 412, 500, 501])
    func refusalThatMayBeForTheRangeLeadsDown(status: Int) {
        var ladder = Ladder()
        #expect(ladder.move(after: Self.refusal(.status(status)), in: Self.fresh) == .ask)
        #expect(ladder.rung == .stream)
        // The rung below would make the same request, for all bytes from the first on.
        ladder = Ladder()
        var all = Self.fresh
        all.asksForAll = true
        #expect(ladder.move(after: Self.refusal(.status(status)), in: all) == .ask)
        #expect(ladder.rung == .whole)
    }

    /// A failure that may pass is not blamed on the Range, until it has come so often that the Range may be the cause after all.
    @Test(arguments: [.httpStatus(408), .httpStatus(429), .httpStatus(503), .timeout] as [FailureKind])
    func failureThatDoesNotPassLeadsToThePlainGET(kind: FailureKind) {
        var ladder = Ladder()
        var late = Self.fresh
        late.looks = .failed
        #expect(ladder.move(after: .refusal(kind, "no", retryAfter: 7), in: late) == .fail(kind, "no", retryAfter: 7))
        #expect(ladder.move(after: Self.refusal(kind), in: late) == .ask)
        #expect(ladder.rung == .whole)
    }

    @Test func silenceThatMayBeForTheRangeAloneLeadsToThePlainGET() {
        var silent = Self.fresh
        silent.mayBeSilent = true
        var ladder = Ladder()
        #expect(ladder.move(after: Self.refusal(.timeout), in: silent) == .ask)
        #expect(ladder.rung == .whole)
        ladder = Ladder()
        #expect(ladder.move(after: Self.refusal(.timeout), in: Self.fresh) == .fail(.timeout, "no", retryAfter: nil))
        var planned = Self.planned
        planned.mayBeSilent = true
        #expect(ladder.move(after: Self.refusal(.timeout), in: planned) == .fail(.timeout, "no", retryAfter: nil))
    }

    @Test func versionWithBytesIsGivenUpOnlyAfterALookAtAPlainGET() {
        var planned = Self.planned
        planned.looks = .refused
        var ladder = Ladder()
        #expect(ladder.move(after: Self.refusal(.httpStatus(400)), in: planned) == .look)
        #expect(ladder.looked(refused: nil) == .ask)
        #expect(
            ladder.move(after: Self.refusal(.httpStatus(400)), in: planned) == .startOver("no", on: .whole))

        ladder = Ladder()
        #expect(ladder.move(after: Self.refusal(.httpStatus(400)), in: planned) == .look)
        #expect(
            ladder.looked(refused: "neither")
                == .fail(.httpStatus(400), "with a range: no; without a range: neither", retryAfter: nil))

        ladder = Ladder()
        #expect(
            ladder.move(after: Self.refusal(.httpStatus(500)), in: planned)
                == .fail(.httpStatus(500), "no", retryAfter: nil))
        planned.looks = .failed
        #expect(ladder.move(after: Self.refusal(.httpStatus(500)), in: planned) == .look)
        planned.isShared = true
        #expect(
            ladder.move(after: Self.refusal(.network), in: planned)
                == .fail(.network, "no", retryAfter: nil))
    }

    /// The bytes of a part before its early end decide how far a plain GET has to go, and how many bytes a repeated part may bring.
    @Test func partsThatEndEarlyAreGivenUpForAPlainGETThatGoesFarther() {
        var planned = Self.planned
        planned.looks = .ended
        func ending(_ count: Int64, from first: Int64 = 0, _ kind: FailureKind = .tooSlow) -> Ladder.Contradiction {
            .ending(kind, "no", .init(first: first, count: count))
        }
        let failure = Ladder.Move.fail(.tooSlow, "no", retryAfter: nil)
        for (first, count, needed, most) in [
            (0, 0, 65_536, 65_536), (0, 1_000, 65_536, 65_536), (0, 70_000, 1_120_000, 140_000),
            // A plain GET that breaks off where the parts do is no better than the parts.
            (18_000_000, 70_000, 19_120_000, 140_000),
        ] as [(Int64, Int64, Int64, Int64)] {
            var ladder = Ladder()
            #expect(ladder.move(after: ending(count, from: first), in: planned) == .look)
            #expect(ladder.bytesToSee == needed)
            #expect(ladder.looked(refused: nil) == .ask)
            var other = ladder
            #expect(other.move(after: ending(most, from: first + count), in: planned) == .startOver("no", on: .whole))
            #expect(ladder.move(after: ending(most + 1, from: first + count), in: planned) == failure)
        }
        var ladder = Ladder()
        // A look that has to go so far costs more than it is worth.
        #expect(ladder.move(after: ending(5 << 20), in: planned) == failure)
        planned.isShared = true
        #expect(ladder.move(after: ending(0, from: 0, .network), in: planned) == .fail(.network, "no", retryAfter: nil))
        #expect(ladder.move(after: ending(1, from: 0, .network), in: planned) == .look)
        planned.looks = .refused
        ladder = Ladder()
        #expect(ladder.move(after: ending(1), in: planned) == failure)
    }

    /// A look costs as many bytes as are kept, while a cut costs hardly more than a round trip.
    @Test func partsThatNeedFewMoreTriesForTheFileAreNotDoubted() {
        var planned = Self.planned
        planned.looks = .ended
        for (kind, count, isDoubted) in [
            (.network, 1 << 20, false), (.network, 1 << 19, true), (.tooSlow, 1 << 20, true),
        ] as [(FailureKind, Int64, Bool)] {
            var ladder = Ladder()
            let end = Ladder.EarlyEnd(first: 4 << 20, count: count, size: 20 << 20)
            let move = ladder.move(after: .ending(kind, "no", end), in: planned)
            #expect(move == (isDoubted ? .look : .fail(kind, "no", retryAfter: nil)), "\(kind), \(count) bytes")
        }
        planned.looks = .failed
        var ladder = Ladder()
        let last = Ladder.EarlyEnd(first: 4 << 20, count: 1 << 20, size: 20 << 20)
        #expect(ladder.move(after: .ending(.network, "no", last), in: planned) == .look, "otherwise the file fails")
    }

    @Test(
        arguments: [
            .httpStatus(408), .httpStatus(429), .httpStatus(503), .notFound, .tls, .dns,
            .refusedAddress, .changed,
            .sizeMismatch, .timeout,
        ] as [FailureKind])
    func otherRefusalsUseNoRung(kind: FailureKind) {
        var ladder = Ladder()
        #expect(
            ladder.move(after: .refusal(kind, "no", retryAfter: 7), in: Self.fresh) == .fail(kind, "no", retryAfter: 7))
        #expect(ladder.rung == .chunks)
    }

    @Test(arguments: [.httpStatus(403), .network] as [FailureKind])
    func refusalWhileOthersRunIsALimit(kind: FailureKind) {
        var ladder = Ladder()
        var shared = Self.fresh
        shared.isShared = true
        #expect(ladder.move(after: Self.refusal(kind), in: shared) == .fail(kind, "no", retryAfter: nil))
        #expect(ladder.move(after: Self.refusal(.httpStatus(400)), in: shared) == .ask)
    }

    @Test(arguments: [.httpStatus(400), .httpStatus(500), .network] as [FailureKind])
    func versionThatHasServedARangeKeepsItsBytesWhateverIsRefused(kind: FailureKind) {
        var ladder = Ladder()
        #expect(ladder.move(after: Self.refusal(kind), in: Self.planned) == .fail(kind, "no", retryAfter: nil))
        #expect(ladder.rung == .chunks)
    }

    @Test func versionWithBytesIsGivenUpForTheSecondContradictionAlone() {
        var ladder = Ladder()
        #expect(ladder.move(after: .answer("odd", to: .stream), in: Self.planned) == .ask)
        #expect(ladder.move(after: .answer("odd", to: .stream), in: Self.planned) == .startOver("odd", on: .stream))
        var last = Ladder(from: .whole)
        #expect(last.move(after: .answer("odd", to: .stream), in: Self.planned) == .ask)
        #expect(
            last.move(after: .answer("odd", to: .stream), in: Self.planned) == .fail(.badRange, "odd", retryAfter: nil))
    }

    @Test func lastRungIsTriedInTheOtherVersionOfHTTP() {
        var ladder = Ladder(from: .whole)
        var situation = Self.plain
        situation.isHTTP2 = true
        #expect(ladder.move(after: .answer("odd", to: .stream), in: situation) == .ask)
        #expect(ladder.isHTTP1)
        situation.isHTTP2 = false
        #expect(
            ladder.move(after: .answer("odd", to: .stream), in: situation)
                == .fail(.badRange, "without a range and in HTTP/1.1: odd", retryAfter: nil))
    }

    @Test func originIsAskedMoreSimplyAfterThreePathsUntilOneIsServed() {
        var rungs = OriginRungs()
        for path in ["/a", "/b", "/a", "/b"] { rungs.contradicted(.chunks, by: path, of: "o", now: 0) }
        #expect(rungs.first(of: "o", now: 0) == .chunks)
        rungs.contradicted(.chunks, by: "/c", of: "o", now: 5)
        #expect(rungs.first(of: "o", now: 5) == .stream)
        #expect(rungs.first(of: "other", now: 5) == .chunks)
        #expect(rungs.first(of: "o", now: 5 + OriginRungs.closedNanoseconds) == .chunks)
        for path in ["/a", "/b", "/c"] { rungs.contradicted(.stream, by: path, of: "o", now: 5) }
        #expect(rungs.first(of: "o", now: 5) == .whole)
        rungs.served(.chunks, by: "o")
        #expect(rungs.first(of: "o", now: 5) == .chunks)
    }

    @Test func originThatTellsRangesToWaitIsAskedPlainlyUnlessItServesThem() {
        var rungs = OriginRungs()
        #expect(rungs.first(of: "o", isToldToWait: true, now: 0) == .whole)
        rungs.served(.chunks, by: "o")
        #expect(rungs.first(of: "o", isToldToWait: true, now: 0) == .chunks)
        rungs.contradicted(.chunks, by: "/a", of: "o", now: 0)
        #expect(rungs.first(of: "o", isToldToWait: true, now: 0) == .whole)
        #expect(rungs.first(of: "o", now: 0) == .chunks)
    }

    @Test func oneServedPathResetsTheCountOfTheOthers() {
        var rungs = OriginRungs()
        for path in ["/a", "/b"] { rungs.contradicted(.chunks, by: path, of: "o", now: 0) }
        rungs.served(.chunks, by: "o")
        rungs.contradicted(.chunks, by: "/c", of: "o", now: 0)
        #expect(rungs.first(of: "o", now: 0) == .chunks)
    }
}
