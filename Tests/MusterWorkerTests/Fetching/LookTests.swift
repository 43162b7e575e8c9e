import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// The bytes of a version are given up only for a plain GET that was seen to be served (range contract, "The ladder"; adr/0028).
@Suite struct LookTests {
    /// A failure of ranges, and the look that follows it.
    struct Failure: Sendable, CustomTestStringConvertible {
        let misbehaviour: ScriptedOrigin.Misbehaviour
        let looks: Look

        var testDescription: String { "\(misbehaviour), looks after \(looks)" }

        static let all =
            [400, 401, 404, 405, 409, 410, 418, 451, 501].map {
                Failure(misbehaviour: .status($0, retryAfter: nil), looks: .refused)
            }
            + [403, 408, 429, 500, 503].map { Failure(misbehaviour: .status($0, retryAfter: nil), looks: .failed) }
            + [429, 503].map { Failure(misbehaviour: .status($0, retryAfter: "7"), looks: .failed) }
            + [
                Failure(misbehaviour: .resetBeforeHeaders, looks: .failed),
                Failure(misbehaviour: .truncated(afterBytes: 0), looks: .failed),
                Failure(misbehaviour: .reset(afterBytes: 0), looks: .failed),
            ]
    }

    private let file = ScriptedOrigin.File(.seeded(seed: 47, size: 9 * mebibyte))

    /// A chunk in the middle of the file.
    private func chunk(_ origin: ScriptedOrigin, _ looks: Look?) -> LeaseDocument {
        let known = Representation(size: 9 * mebibyte, etag: file.etag)
        var lease = LeaseDocument.chunk(origin.url("/f"), mebibyte, 2 * mebibyte, of: known)
        lease.looks = looks
        return lease
    }

    @Test(arguments: Failure.all)
    func rangesThatAreRefusedWhileAPlainGETIsServedAreGivenUp(failure: Failure) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", failure.misbehaviour, when: .ranged)
            let ending = await bench.run(chunk(origin, failure.looks))
            guard case .restart(let what, on: .whole) = ending else {
                Issue.record("\(ending)")
                return
            }
            #expect(!what.isEmpty)
            #expect(origin.requests.count(where: { $0.range == nil }) == 1)
            #expect(origin.requests.last?.range != nil)
        }
    }

    @Test(arguments: Failure.all)
    func bytesAreKeptWhereAPlainGETIsRefusedToo(failure: Failure) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", failure.misbehaviour)
            let ending = await bench.run(chunk(origin, failure.looks))
            #expect(ending.failure?.detail.contains("without") == true, "\(ending)")
            #expect(origin.requests.count(where: { $0.range == nil }) == 1)
        }
    }

    @Test func troubleThatPassesCostsNoBytes() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .status(503, retryAfter: nil), when: .first(1))
            let ending = await bench.run(chunk(origin, .failed))
            #expect(ending.durable?.offset == 2 * mebibyte, "\(ending)")
            #expect(origin.requests.map(\.status) == [503, 200, 206])
        }
    }

    @Test func plainGETThatBringsAnotherContentIsAChange() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .status(400, retryAfter: nil), when: .ranged)
            origin.misbehave("/f", .etag("\"another\""), when: .init(hasRange: false))
            let ending = await bench.run(chunk(origin, .refused))
            #expect(ending.failure?.kind == .changed, "\(ending)")
        }
    }

    @Test func noLookIsMadeWhereItIsNotAskedFor() async throws {
        let refusals: [(Int, Look?)] = [(501, nil), (503, .refused), (404, nil)]
        for (status, looks) in refusals {
            try await withBench { bench, origin in
                origin.serve("/f", file)
                origin.misbehave("/f", .status(status, retryAfter: nil))
                let ending = await bench.run(chunk(origin, looks))
                #expect(ending.failure != nil, "\(ending)")
                #expect(origin.requests.allSatisfy { $0.range != nil }, "\(status)")
            }
        }
    }

    /// No bytes would be given up, so the plain GET is the next request.
    @Test(arguments: [
        ScriptedOrigin.Misbehaviour.status(408, retryAfter: nil), .status(429, retryAfter: nil),
        .status(503, retryAfter: nil),
    ])
    func fileOfWhichNothingHasComeIsAskedForPlainlyAtOnce(misbehaviour: ScriptedOrigin.Misbehaviour) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", misbehaviour, when: .ranged)
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.looks = .failed
            let ending = await bench.run(lease)
            #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            #expect(origin.requests.count == 2)
        }
    }

    @Test func fileWhoseRangesKeepBeingPutOffIsAskedForPlainlyUnlessTheOriginServesRanges() async throws {
        for servesRanges in [false, true] {
            try await withBench { bench, origin in
                origin.serve("/f", file)
                origin.serve("/other", file)
                origin.misbehave("/f", .status(429, retryAfter: "7"), when: .ranged)
                if servesRanges { _ = await bench.run(.first(origin.url("/other"), task: 2)) }
                var lease = LeaseDocument.first(origin.url("/f"))
                lease.looks = .atOnce
                let ending = await bench.run(lease)
                #expect((ending.finished?.size == 9 * mebibyte) == !servesRanges, "\(ending)")
                #expect((origin.requests.last?.range == nil) == !servesRanges)
            }
        }
    }

    @Test func originThatIsSilentToRangesAloneIsAskedPlainly() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .hangBeforeHeaders, when: .ranged)
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.options = FetchOptions()
            lease.options?.firstByteTimeoutSeconds = 3
            #expect(await bench.run(lease).finished?.size == 9 * mebibyte)
            #expect(origin.requests.map { $0.range != nil } == [true, false])
        }
    }

    /// An origin that is silent to everything is not asked twice for each file.
    @Test func originThatIsSilentToAllIsAskedForRangesAlone() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .hangBeforeHeaders)
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.options = FetchOptions()
            lease.options?.firstByteTimeoutSeconds = 1
            for _ in 1...2 {
                let failure = await bench.run(lease).failure
                // Each request has all the time that the options give, since it may be the only one that is served (row 22).
                #expect(
                    failure?.kind == .timeout && failure?.detail.contains("within 1 s") == true, "\(failure as Any)")
            }
            #expect(origin.requests.count { $0.range == nil } == 1, "the last request need not be read in its second")
        }
    }

    /// Bytes that an origin sends after an answer are not taken for the next answer (row 28).
    @Test func surplusOfARefusedAnswerIsNotTheNextAnswer() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .ignoreRange, when: .ranged)
            origin.misbehave("/f", .replaced(with: ScriptedOrigin.File(.bytes([]))), when: .ranged)
            origin.misbehave("/f", .surplus(bytes: 100_000), when: .ranged)
            let ending = await bench.run(LeaseDocument.first(origin.url("/f")))
            #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
        }
    }

    /// The body is left soon only if the next source can resume what came.
    @Test(arguments: [true, false]) func bodyThatStopsIsLeftSoonWhereAnotherSourceGoesOn(goesOn: Bool) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .hang(afterBytes: 100_000))
            if !goesOn { origin.misbehave("/f", .noValidators) }
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.options = FetchOptions()
            lease.options?.lowSpeedSeconds = 6
            lease.mayMoveOn = true
            let ending = await bench.run(lease)
            guard case .failed(let failure, let durable, _) = ending else {
                Issue.record("\(ending)")
                return
            }
            #expect(failure.kind == .tooSlow)
            #expect(failure.detail.contains(goesOn ? "over 1 s" : "over 6 s"), "\(failure.detail)")
            #expect(durable?.offset == 100_000)
        }
    }

    /// Each part is cut or goes silent, soon or in its middle, and the plain GET goes on.
    @Test(arguments: [
        ScriptedOrigin.Misbehaviour.reset(afterBytes: 1_000), .truncated(afterBytes: 1_000), .reset(afterBytes: 70_000),
        .hang(afterBytes: 70_000), .hang(afterBytes: 500_000),
    ])
    func partsThatEndEarlyEachTimeAreGivenUpForAPlainGETThatGoesOn(ending: ScriptedOrigin.Misbehaviour) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", ending, when: .ranged)
            var lease = chunk(origin, .ended)
            lease.options = FetchOptions()
            lease.options?.lowSpeedSeconds = 2
            guard case .restart(_, .whole) = await bench.run(lease) else {
                Issue.record("it goes on with ranges")
                return
            }
            #expect(origin.requests.map { $0.range != nil } == [true, false, true])
        }
    }

    /// If every body breaks off, the bytes are not given up, since parts make progress.
    @Test(arguments: [Look.ended, .refused]) func partsAreGoneOnWithWhereAPlainGETEndsAsEarly(
        looks: Look
    ) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .reset(afterBytes: 50_000))
            let ending = await bench.run(chunk(origin, looks))
            guard case .failed(let failure, let durable, _) = ending else {
                Issue.record("\(ending)")
                return
            }
            #expect(failure.kind == .network)
            #expect(durable?.offset == mebibyte + 50_000)
            #expect(origin.requests.map { $0.range != nil } == (looks == .ended ? [true, false] : [true]))
        }
    }

    /// A part of a few bytes counts as little as a head without a body.
    @Test(arguments: [0, 1_000] as [Int64]) func rangesThatStopWhenTheyHaveHardlyBegunAreGivenUpForAPlainGET(
        bytes: Int64
    ) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .hang(afterBytes: bytes), when: .ranged)
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.options = FetchOptions()
            lease.options?.lowSpeedSeconds = 1
            lease.looks = .failed
            guard case .restart(let what, .whole) = await bench.run(lease) else {
                Issue.record("it goes on with ranges")
                return
            }
            #expect(what.contains("too slow"), "\(what)")
            #expect(origin.requests.map { $0.range != nil } == [true, false, true])
        }
    }

    /// A lease on the whole file, whose body is doubted below 128 KiB within half a second.
    private func doubtful(_ origin: ScriptedOrigin) -> LeaseDocument {
        origin.serve("/f", file)
        var lease = LeaseDocument.first(origin.url("/f"))
        lease.end = 16 * mebibyte
        lease.options = FetchOptions()
        lease.options?.lowSpeedSeconds = 3
        lease.looks = .refused
        lease.asksForAll = true
        return lease
    }

    /// A part of the file is left only if it has stopped, since several slow parts at a time may be fast together.
    @Test(
        arguments: [
            (.drip(bytes: 1_000, every: .milliseconds(100)), true), (.hang(afterBytes: 1_000_000), true),
            (.hang(afterBytes: 1_000_000), false),
        ] as [(ScriptedOrigin.Misbehaviour, Bool)])
    func partThatComesSlowlyIsLeftForAPlainGETThatWasSeenToBeFaster(
        misbehaviour: ScriptedOrigin.Misbehaviour, isAll: Bool
    ) async throws {
        try await withBench { bench, origin in
            var lease = doubtful(origin)
            if !isAll {
                lease.asksForAll = nil
                lease.end = 8 * mebibyte
            }
            origin.misbehave("/f", misbehaviour, when: .ranged)
            bench.context.conduct.servedPlainlyFaster(try SourceURL(validating: origin.url("/f")).origin)
            guard case .restart(_, .whole) = await bench.run(lease) else {
                Issue.record("it goes on with ranges")
                return
            }
            #expect(origin.requests.map(\.status) == [206])
        }
    }

    /// A trial of the first bytes, beside a part that comes slowly.
    @Test(
        arguments: [nil, .status(403, retryAfter: nil), .truncated(afterBytes: 1_000)]
            as [ScriptedOrigin
            .Misbehaviour?])
    func trialShowsWhetherAPlainGETIsFaster(misbehaviour: ScriptedOrigin.Misbehaviour?) async throws {
        // Long enough even on a busy machine.
        try await withBench(configure: { $0.trialTime = .seconds(60) }) { bench, origin in
            origin.serve("/f", file)
            if let misbehaviour { origin.misbehave("/f", misbehaviour) }
            let known = Representation(size: 9 * mebibyte, etag: file.etag)
            var lease = LeaseDocument.chunk(origin.url("/f"), 0, mebibyte, of: known)
            lease.kind = .trial
            let ending = await bench.run(lease)
            let isFaster = bench.context.conduct.isFasterPlainly(try SourceURL(validating: origin.url("/f")).origin)
            if case .servedAgain = ending {
                #expect(misbehaviour == nil && isFaster)
            } else {
                #expect(misbehaviour != nil && !isFaster && ending.failure != nil, "\(ending)")
            }
            #expect(origin.requests.count == 1 && origin.requests.allSatisfy { $0.range == nil })
        }
    }

    /// The first request may be the only one that is served (row 22).
    @Test func firstRequestIsNotCutForBeingSlow() async throws {
        try await withBench { bench, origin in
            var lease = doubtful(origin)
            // The origin may stand still for some seconds on a busy machine.
            lease.options?.lowSpeedSeconds = 12
            origin.misbehave("/f", .drip(bytes: 3_000_000, every: .seconds(4)), when: .first(1))
            origin.misbehave("/f", .status(403, retryAfter: nil), when: .after(1))
            let ending = await bench.run(lease)
            #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            #expect(origin.requests.count == 1)
        }
    }

    /// The first file waits for a sixth of the patience, and the next ones for less.
    @Test func sourceThatIsSilentIsLeftSoonWhereAnotherOneIsLeft() async throws {
        try await withBench { bench, origin in
            func run(_ task: Int64) async -> JobEnding {
                origin.serve("/\(task)", file)
                origin.misbehave("/\(task)", .hangBeforeHeaders)
                var lease = LeaseDocument.first(origin.url("/\(task)"), task: task, path: "out/\(task)")
                lease.options = FetchOptions()
                lease.options?.firstByteTimeoutSeconds = 8
                lease.mayMoveOn = true
                return await bench.run(lease)
            }
            let known = try SourceURL(validating: origin.url("/1")).origin
            let first = await run(1)
            #expect(first.failure?.kind == .timeout && first.failure?.detail.contains(" 1.3 s") == true, "\(first)")
            #expect(bench.context.conduct.isSilent(known))
            let second = await run(2)
            #expect(second.failure?.detail.contains(" 133 ms") == true, "\(second)")
            #expect(origin.requests.allSatisfy { $0.range != nil })
        }
    }
}
