import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// An origin that contradicts the way in which it is asked is asked more simply, at once (range contract, "The ladder").
@Suite struct LadderTests {
    /// Something that an origin does to requests with Range, while a plain GET would get the file.
    struct Contradiction: Sendable, CustomTestStringConvertible {
        let what: String
        let misbehaviour: ScriptedOrigin.Misbehaviour
        var condition = ScriptedOrigin.Condition.ranged

        var testDescription: String { what }

        static let all =
            [400, 403, 405, 406, 409, 412, 413, 417, 422, 431, 500, 501, 505].map {
                Contradiction(what: "\($0)", misbehaviour: .status($0, retryAfter: nil))
            }
            + [
                Contradiction(what: "a reset", misbehaviour: .resetBeforeHeaders),
                Contradiction(what: "a close", misbehaviour: .closeBeforeHeaders),
                Contradiction(what: "something else than HTTP", misbehaviour: .garbage("so what?\r\n\r\n")),
                Contradiction(
                    what: "a coded 206", misbehaviour: .contentEncoding("gzip"), condition: .always),
                Contradiction(what: "no Content-Range", misbehaviour: .noContentRange),
                Contradiction(what: "a malformed Content-Range", misbehaviour: .contentRange("bytes x")),
                Contradiction(
                    what: "a doubled Content-Range", misbehaviour: .contentRange("bytes 0-9/10, bytes 0-9/10")),
                Contradiction(what: "another range", misbehaviour: .contentRangeShifted(by: 5)),
                Contradiction(what: "multipart/byteranges", misbehaviour: .multipartByteRanges),
                Contradiction(what: "another length than the range has", misbehaviour: .contentLengthOff(by: -3)),
                Contradiction(what: "two lengths", misbehaviour: .conflictingContentLengths),
                Contradiction(
                    what: "a length beside chunks", misbehaviour: .transferEncodingAndContentLength, condition: .always),
                Contradiction(what: "416", misbehaviour: .rangeNotSatisfiable),
                Contradiction(what: "200 with a part that says so", misbehaviour: .partAsWhole(statesRange: true)),
                Contradiction(what: "200 with a part", misbehaviour: .partAsWhole(statesRange: false)),
            ]
    }

    private let file = ScriptedOrigin.File(.seeded(seed: 41, size: 9 * mebibyte))

    @Test(arguments: Contradiction.all)
    func originThatContradictsRangesIsAskedPlainlyWithinTheLease(contradiction: Contradiction) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", contradiction.misbehaviour, when: contradiction.condition)
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            guard ending.finished != nil else { return }
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
            #expect(origin.requests.last?.range == nil)
        }
    }

    /// Three paths close a rung for the whole origin if a lower rung serves them. Links that are refused on each rung say nothing of ranges.
    @Test(arguments: [ScriptedOrigin.Condition.ranged, .always])
    func rungIsClosedByWhatIsServedBelowIt(condition: ScriptedOrigin.Condition) async throws {
        try await withBench { bench, origin in
            let known = try SourceURL(validating: origin.url("/")).origin
            for index in 0..<3 {
                #expect(bench.context.conduct.first(of: known) == .chunks)
                origin.serve("/\(index)", file)
                origin.misbehave("/\(index)", .status(500, retryAfter: nil), when: condition)
                let ending = await bench.run(.first(origin.url("/\(index)"), task: Int64(index) + 1))
                #expect((ending.finished != nil) == (condition == .ranged), "\(ending)")
            }
            #expect((bench.context.conduct.first(of: known) == .chunks) == (condition == .always))
        }
    }

    @Test func youngDateIsNoValidatorToPutChunksTogetherBy() async throws {
        var file = file
        file.etag = nil
        for (index, date) in [nil, "Wed, 01 Jan 2020 00:00:59 GMT"].enumerated() {
            try await withBench { bench, origin in
                origin.serve("/f", file)
                origin.misbehave("/f", .lastModified("Wed, 01 Jan 2020 00:00:00 GMT"))
                origin.misbehave("/f", .date(date))
                let ending = await bench.run(.first(origin.url("/f"), task: Int64(index) + 1))
                #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
                #expect(bench.learned.allSatisfy { $0.rung == .whole })
            }
        }
    }

    @Test(arguments: [400, 412])
    func originThatRefusesIfRangeIsAskedWithout(status: Int) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .refuseIfRange(status: status))
            let known = Representation(size: 9 * mebibyte, etag: file.etag)
            let ending = await bench.run(.chunk(origin.url("/f"), mebibyte, 2 * mebibyte, of: known))
            #expect(ending.durable?.offset == 2 * mebibyte, "\(ending)")
            #expect(origin.requests.last?.header("If-Range") == nil)
        }
    }

    @Test func closeDelimitedBodyIsCompleteAtTheSecondReadThatAgrees() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .ignoreRange)
            origin.misbehave("/f", .closeDelimited)
            origin.misbehave("/f", .truncated(afterBytes: 5 * mebibyte), when: .first(1))
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
            guard ending.finished != nil else { return }
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
            #expect(origin.requests.count == 3)
        }
    }

    @Test func closeDelimitedBodyThatCannotBeReadTwiceIsNotProvenUnlessTheGroupTakesIt() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .ignoreRange)
            origin.misbehave("/f", .closeDelimited)
            origin.misbehave("/f", .status(410, retryAfter: nil), when: .after(1))
            let failure = await bench.run(.first(origin.url("/f"))).failure
            #expect(failure?.kind == .notFound)
            #expect(failure?.detail.contains("prove its end") == true, "\(failure?.detail ?? "")")
            origin.serve("/g", file)
            origin.misbehave("/g", .ignoreRange)
            origin.misbehave("/g", .closeDelimited)
            var lease = LeaseDocument.first(origin.url("/g"), task: 2)
            lease.policy = TransferPolicy()
            lease.policy?.acceptUnframed = true
            #expect(await bench.run(lease).finished?.size == 9 * mebibyte)
            #expect(origin.requests.count == 3)
        }
    }

    @Test(arguments: [(cuts: 5, requests: 7), (cuts: 16, requests: 8)])
    func bodyThatIsCutIsReadUntilTwoReadsAgreeOrHasNoEnd(cuts: Int, requests: Int) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .ignoreRange)
            origin.misbehave("/f", .closeDelimited)
            for number in 0..<cuts {
                let bytes = Int64(number + 1) * 100_000
                origin.misbehave("/f", .truncated(afterBytes: bytes), when: .init(requests: number..<(number + 1)))
            }
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(cuts < requests ? ending.finished?.size == 9 * mebibyte : ending.failure?.kind == .badRange)
            #expect(origin.requests.count == requests)
        }
    }

    @Test func failureListsWhatWasTriedOnEachRung() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .status(400, retryAfter: nil), when: .ranged)
            origin.misbehave("/f", .status(418, retryAfter: nil), when: .init(hasRange: false))
            bench.context.conduct.trustKept(of: try SourceURL(validating: origin.url("/f")).origin)
            let failure = await bench.run(.first(origin.url("/f"))).failure
            #expect(failure?.kind == .httpStatus(418))
            #expect(
                failure?.detail == """
                    with a range: the origin answered 400; \
                    without a range: the origin answered 418
                    """)
            #expect(origin.requests.map(\.range) == ["bytes=0-8388607", "bytes=0-", nil])
        }
    }

    @Test(arguments: [404, 410, 429, 503])
    func otherStatusesUseNoRung(status: Int) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .status(status, retryAfter: nil))
            let failure = await bench.run(.first(origin.url("/f"))).failure
            #expect(failure?.kind == .status(status))
            #expect(origin.requests.count == 1)
        }
    }

    @Test func streamIsOneRequestThatALaterOneGoesOnFrom() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .status(400, retryAfter: nil), when: .first(1))
            origin.misbehave("/f", .truncated(afterBytes: 5 * mebibyte), when: .init(requests: 1..<2))
            let cut = await bench.run(.first(origin.url("/f")))
            #expect(cut.failure?.kind == .network)
            #expect(bench.learned.last?.rung == .stream)
            let durable = try #require(cut.durable)
            var next = LeaseDocument.chunk(
                origin.url("/f"), 0, 9 * mebibyte, of: Representation(size: 9 * mebibyte, etag: file.etag))
            next.rung = .stream
            next.resume = durable
            #expect(await bench.run(next).finished?.size == 9 * mebibyte)
            #expect(origin.requests.last?.range == "bytes=\(durable.offset)-")
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
        }
    }

    @Test func versionWithBytesStartsOverForTheSecondContradictionAlone() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .noContentRange, when: .first(1))
            let known = Representation(size: 9 * mebibyte, etag: file.etag)
            let lease = LeaseDocument.chunk(origin.url("/f"), mebibyte, 2 * mebibyte, of: known)
            #expect(await bench.run(lease).durable?.offset == 2 * mebibyte)
            origin.misbehave("/f", .noContentRange)
            #expect(await bench.run(lease).isRestart)
            origin.misbehave("/f", .status(500, retryAfter: nil))
            #expect(await bench.run(lease).failure?.kind == .httpStatus(500))
        }
    }

    @Test func originIsAskedMoreSimplyOnceThreePathsHaveContradictedIt() async throws {
        try await withBench { bench, origin in
            for number in 0..<4 {
                origin.serve("/\(number)", file)
                origin.misbehave("/\(number)", .contentEncoding("gzip"))
                let ending = await bench.run(
                    .first(origin.url("/\(number)"), task: Int64(number) + 1, path: "f\(number)"))
                #expect(ending.finished?.size == 9 * mebibyte)
            }
            let ranges = { (path: String) in origin.requests.filter { $0.path == path }.map(\.range) }
            #expect(ranges("/2") == ["bytes=0-8388607", nil])
            #expect(ranges("/3") == [nil])
        }
    }

    @Test func emptyFileInA206IsTaken() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(.empty))
            origin.misbehave("/f", .ignoreRange)
            origin.misbehave("/f", .statusOnly(206), when: .ranged)
            origin.misbehave("/f", .headers([.init("Content-Range", "bytes */0")]), when: .ranged)
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == 0, "\(ending)")
        }
    }

    /// A Content-Range that fits nothing, or has no meaning in a 200, does not keep the job from taking the file that a plain GET brings.
    @Test(arguments: [(206, "bytes 0-9437184/9437184"), (206, "/-1"), (200, "bytes 0-9/10")])
    func wholeFileIsTakenWhateverContentRangeSays(status: Int, field: String) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .ignoreRange)
            origin.misbehave("/f", .statusOnly(status))
            origin.misbehave("/f", .headers([.init("Content-Range", field)]))
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
        }
    }

    @Test(arguments: [203, 226])
    func otherSuccessStatusIsAFile(status: Int) async throws {
        try await withBench { bench, origin in
            origin.serve("/f", file)
            origin.misbehave("/f", .ignoreRange)
            origin.misbehave("/f", .statusOnly(status))
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == 9 * mebibyte, "\(ending)")
        }
    }

    @Test func tagsAndHeadsMayBeLong() async throws {
        try await withBench { bench, origin in
            var file = file
            file.etag = "\"" + String(repeating: "e", count: 4_000) + "\""
            origin.serve("/f", file)
            origin.misbehave("/f", .headers((0..<100).map { .init("X-\($0)", String(repeating: "h", count: 1_000)) }))
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.durable?.offset == 8 * mebibyte, "\(ending)")
            #expect(bench.learned.first?.representation.etag == file.etag)
        }
    }

    /// A plain GET was cut, and the content can be told from any other: the job asks for the rest. If the whole body comes
    /// instead, the job skips the bytes that it has. If the answer contradicts the Range, a plain GET follows at once.
    @Test(
        arguments: [
            (nil, true), (.ignoreRange, true), (.noContentRange, false), (.status(400, retryAfter: nil), false),
            (.resetBeforeHeaders, false), (.truncated(afterBytes: 0), false),
        ] as [(ScriptedOrigin.Misbehaviour?, Bool)])
    func plainGETThatWasCutIsGoneOnWith(misbehaviour: ScriptedOrigin.Misbehaviour?, endsWithRange: Bool) async throws {
        try await withBench { bench, origin in
            var file = ScriptedOrigin.File(.seeded(seed: 11, size: 2 * mebibyte))
            file.etag = "\"one\""
            origin.serve("/f", file)
            origin.misbehave("/f", .truncated(afterBytes: mebibyte), when: .first(1))
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.rung = .whole
            let first = await bench.run(lease)
            #expect(first.failure?.kind == .network)
            #expect(first.failure?.detail.contains("can't be gone on with") == false)
            lease.resume = try #require(first.durable)
            #expect(lease.resume.offset == mebibyte)
            lease.planned = true
            lease.representation = Representation(size: 2 * mebibyte, etag: "\"one\"")
            if let misbehaviour { origin.misbehave("/f", misbehaviour, when: .ranged) }
            let second = await bench.run(lease)
            #expect(second.finished?.size == 2 * mebibyte, "\(second)")
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
            let asked = origin.requests.dropFirst()
            #expect(asked.first?.header("If-Range") == "\"one\"")
            #expect(asked.first?.range == "bytes=1048576-2097151")
            #expect((asked.last?.range != nil) == endsWithRange)
        }
    }

    /// Under the tag of a coded body, an origin may send the content uncoded.
    @Test func codedBodyIsNotResumed() async throws {
        try await withBench { bench, origin in
            var file = ScriptedOrigin.File(.seeded(seed: 11, size: 2 * mebibyte))
            file.etag = "\"one\""
            origin.serve("/f", file)
            origin.misbehave("/f", .contentEncoding("gzip"), when: .first(1))
            origin.misbehave("/f", .truncated(afterBytes: mebibyte), when: .first(1))
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.rung = .whole
            guard case .failed(let failure, _, let learned) = await bench.run(lease) else {
                Issue.record("it did not fail")
                return
            }
            #expect(failure.kind == .network && failure.detail.contains("can't be gone on with"))
            #expect(learned?.representation.etag == "W/\"one\"" && learned?.representation.tellsVersions == false)
        }
    }

    /// The failure does not claim that the lost bytes can be resumed.
    @Test func cutTransferThatCanNotBeGoneOnWithSaysSo() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(.seeded(seed: 11, size: 2 * mebibyte)))
            origin.misbehave("/f", .noValidators)
            origin.misbehave("/f", .truncated(afterBytes: mebibyte))
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.rung = .whole
            let failure = await bench.run(lease).failure
            #expect(failure?.kind == .network)
            #expect(
                failure?.detail.hasSuffix("and what came can't be gone on with: it has no validator") == true,
                "\(failure as Any)")
        }
    }
}
