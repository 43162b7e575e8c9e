import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// Answers that may hold less than they claim (range contract, rows 1 to 3 and 22a).
@Suite struct DoubtTests {
    private let file = ScriptedOrigin.File(.seeded(seed: 43, size: 9 * mebibyte))

    @Test func wholeBodyAsLongAsThePartThatWasAskedForIsAskedForPlainly() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .partAsWhole(statesRange: false), when: .ranged)
            origin.misbehave("/f", .chunked, when: .ranged)
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            guard ending.finished != nil else { return }
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
        }
    }

    /// A file that does end with its first part costs one request more, and is not fetched again.
    @Test func totalThatEndsWithThePartIsDoubted() async throws {
        let end = try #require(LeaseDocument.first("http://127.0.0.1/").end)
        let exact = ScriptedOrigin.File(.seeded(seed: 44, size: end))
        try await withBench { bench, origin in
            origin.serve("/f", exact)
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == end, "\(ending)")
            #expect(origin.requests.map(\.status) == [206, 416])
            guard ending.finished != nil else { return }
            try #expect(bench.file("out/file.bin") == exact.content.allBytes)
        }
    }

    /// The whole file has arrived by then. A limit that is signalled by a page or a refusal takes nothing of it back.
    @Test(arguments: [
        ScriptedOrigin.Misbehaviour.htmlErrorPage, .status(403, retryAfter: nil), .status(404, retryAfter: nil),
        .status(429, retryAfter: "60"), .status(503, retryAfter: nil), .resetBeforeHeaders, .ignoreRange,
    ])
    func fileThatHasComeIsCompleteUnlessTheByteBeyondItsTotalComes(answer: ScriptedOrigin.Misbehaviour) async throws {
        let end = try #require(LeaseDocument.first("http://127.0.0.1/").end)
        let exact = ScriptedOrigin.File(.seeded(seed: 44, size: end))
        try await withBench { bench, origin in
            origin.serve("/f", exact)
            origin.misbehave("/f", answer, when: .after(1))
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == end, "\(ending)")
            #expect(origin.requests.count <= 3)
            guard ending.finished != nil else { return }
            try #expect(bench.file("out/file.bin") == exact.content.allBytes)
        }
    }

    /// The byte beyond the stated total comes as a part, or within the whole of a longer file.
    @Test(arguments: [nil, ScriptedOrigin.Misbehaviour.ignoreRange, .chunked])
    func totalThatTheNextAnswerContradictsIsNotBelieved(answer: ScriptedOrigin.Misbehaviour?) async throws {
        let end = try #require(LeaseDocument.first("http://127.0.0.1/").end)
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .totalSize(end), when: .range(startingAt: 0))
            if let answer {
                origin.misbehave("/f", .ignoreRange, when: .range(startingAt: end))
                origin.misbehave("/f", answer, when: .range(startingAt: end))
            }
            guard case .restart = await bench.run(.first(origin.url("/f"))) else {
                Issue.record("a part is taken for the file")
                return
            }
        }
    }

    @Test func originThatHandsOutFewBytesAtATimeIsAskedOtherwise() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .shortRange(bytes: 1_000))
            let ending = await bench.run(.first(origin.url("/f")))
            guard case .restart(let what, _) = ending else {
                Issue.record("\(ending)")
                return
            }
            #expect(what.contains("1000 bytes at a time"), "\(what)")
            #expect(origin.requests.count < 100)
        }
    }

    @Test(arguments: [ScriptedOrigin.Misbehaviour.resetBeforeHeaders, .status(404, retryAfter: nil)])
    func originThatDoesNotAnswerIfRangeIsAskedWithout(misbehaviour: ScriptedOrigin.Misbehaviour) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", misbehaviour, when: .first(1))
            let known = Representation(size: 9 * mebibyte, etag: file.etag)
            let ending = await bench.run(.chunk(origin.url("/f"), mebibyte, 2 * mebibyte, of: known))
            #expect(ending.durable?.offset == 2 * mebibyte, "\(ending)")
            #expect(origin.requests.last?.header("If-Range") == nil)
        }
    }

    /// A task that starts over with its source asked more simply still expects the stated validators (row 27).
    @Test func pageIsNotTakenForAContentOfWhichValidatorsAreKnown() async throws {
        for rung in Rung.allCases {
            try await withBench { bench, origin in
                origin.serve("/f", file)
                origin.misbehave("/f", .htmlErrorPage)
                var lease = LeaseDocument.first(origin.url("/f"))
                lease.version = 2
                lease.rung = rung
                lease.representation = Representation(etag: file.etag)
                let ending = await bench.run(lease)
                #expect(ending.finished == nil && ending.failure?.kind == .network, "\(ending)")
            }
        }
    }

    /// An origin that ignores Range serves a new version. An origin that serves parts is asked once more, and then for the whole file.
    @Test(arguments: [true, false]) func contentThatLostItsValidatorsStartsOver(ignoresRange: Bool) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .noValidators)
            if ignoresRange { origin.misbehave("/f", .ignoreRange) }
            let known = Representation(size: 9 * mebibyte, etag: file.etag)
            let ending = await bench.run(.chunk(origin.url("/f"), mebibyte, 2 * mebibyte, of: known))
            if ignoresRange {
                #expect(ending.failure?.kind == .changed, "\(ending)")
            } else {
                guard case .restart = ending else {
                    Issue.record("\(ending)")
                    return
                }
            }
            let conditions = origin.requests.map { $0.header("If-Range") }
            #expect(conditions.first == file.etag && conditions.count == (ignoresRange ? 2 : 3))
            #expect(conditions.dropFirst().allSatisfy { $0 == nil })
        }
    }
}
