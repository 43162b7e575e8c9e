import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// What the coordinator learns from an answer: the digests and names that it states, and the details of a failure (range contract, rows 11, 27, 30, 34, 35).
@Suite struct FetchJobAnswerTests {
    private let content = ScriptedOrigin.Content.seeded(seed: 31, size: 2 * mebibyte)
    private let wrong = ScriptedOrigin.Content.seeded(seed: 32, size: 2 * mebibyte)

    private func serve(_ origin: ScriptedOrigin, _ headers: ScriptedOrigin.Header...) -> ScriptedOrigin.File {
        let file = ScriptedOrigin.File(content, headers: headers)
        origin.serve("/f", file)
        return file
    }

    @Test func statedDigestIsCheckedAndLearned() async throws {
        try await withBench { bench, origin in
            _ = serve(origin, .reprDigest(of: content, .sha256))
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.learned?.representation.digests == ["sha256": content.sha256()])
            #expect(ending.finished?.digests["sha256"] == content.sha256())
        }
    }

    /// An origin that was reached has no wrong name, so the failure does not count as unreached.
    @Test(arguments: [
        (ScriptedOrigin.Misbehaviour.closeBeforeHeaders, true), (.reset(afterBytes: 0), false),
        (.truncated(afterBytes: 0), false), (.truncated(afterBytes: 1_000), false),
    ])
    func endBeforeAnAnswerIsToldApart(misbehaviour: ScriptedOrigin.Misbehaviour, isUnanswered: Bool) async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            origin.misbehave("/f", misbehaviour)
            let failure = await bench.run(.first(origin.url("/f"))).failure
            #expect(failure?.kind == .network)
            #expect((failure?.unanswered == true) == isUnanswered, "\(String(describing: failure))")
            #expect(failure?.unreached == nil)
        }
    }

    @Test func wrongStatedDigestIsAMismatchThatTellsWhoseItIs() async throws {
        try await withBench { bench, origin in
            _ = serve(origin, .reprDigest(of: wrong, .sha256))
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.expectedDigests = ["sha256": content.sha256()]
            let failure = await bench.run(lease).failure
            #expect(failure?.kind == .digestMismatch)
            #expect(
                failure?.detail == "the origin states sha256 \(wrong.sha256()), the bytes have \(content.sha256())"
            )
            #expect(failure?.status == 200 || failure?.status == 206)
            lease.expectedDigests = ["sha256": wrong.sha256()]
            lease.task = TaskID(2)
            let other = await bench.run(lease).failure
            #expect(
                other?.detail == "the caller expects sha256 \(wrong.sha256()), the bytes have \(content.sha256())"
            )
            #expect(!bench.exists("out/file.bin"))
        }
    }

    @Test func finalizeLeaseChecksWhatTheOriginStated() async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            let known = Representation(size: 2 * mebibyte, etag: file.etag)
            var lease = LeaseDocument.chunk("", 0, 2 * mebibyte, of: known)
            lease.kind = .finalize
            for stated in [wrong, content] {
                lease.chunks = []
                for start in [0, mebibyte] {
                    let ending = await bench.run(.chunk(origin.url("/f"), start, start + mebibyte, of: known))
                    let range = try #require(ByteRange(start: start, end: start + mebibyte))
                    lease.chunks.append(FinishedChunk(range: range, crc: try #require(ending.durable).crc))
                }
                lease.representation.digests = ["sha256": stated.sha256()]
                let ending = await bench.run(lease)
                if stated == content {
                    #expect(ending.finished?.digests["sha256"] == content.sha256())
                } else {
                    #expect(ending.failure?.detail.hasPrefix("the origin states sha256") == true)
                }
            }
        }
    }

    @Test func oneStreamIsHashedAsItComes() async throws {
        try await withBench { bench, origin in
            let large = ScriptedOrigin.Content.seeded(seed: 33, size: 9 * mebibyte)
            origin.serve("/f", ScriptedOrigin.File(large))
            origin.misbehave("/f", .ignoreRange)
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.policy = TransferPolicy()
            lease.policy?.computeDigests = [.sha256, .md5]
            let finished = await bench.run(lease).finished
            #expect(finished?.digests["sha256"] == large.sha256())
            #expect(finished?.digests.count == 2)
        }
    }

    @Test func suggestedNameIsToldAtOnceAndTheFileWaitsForIt() async throws {
        try await withBench { bench, origin in
            let file = serve(origin, .disposition(filename: "../report 1.pdf"))
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.policy = TransferPolicy()
            lease.policy?.names = .suggested
            let ending = await bench.run(lease)
            #expect(bench.learned.first?.suggestedName == "report 1.pdf")
            #expect(ending.finished == nil)
            #expect(ending.durable == DurablePrefix(offset: 2 * mebibyte, crc: crc(content.allBytes)))
            #expect(!bench.exists("out/file.bin"))

            // The finalize lease that the coordinator plans has the path made from the suggested name.
            var placing = LeaseDocument.chunk("", 0, 2 * mebibyte, of: Representation(size: 2 * mebibyte))
            placing.kind = .finalize
            placing.policy = lease.policy
            placing.path = "out/report 1.pdf"
            let range = try #require(ByteRange(start: 0, end: 2 * mebibyte))
            placing.chunks = [FinishedChunk(range: range, crc: crc(content.allBytes))]
            #expect(await bench.run(placing).finished?.size == 2 * mebibyte)
            try #expect(bench.file("out/report 1.pdf") == file.content.allBytes)
        }
    }

    @Test func namesAreNotAskedForUnlessTheGroupWantsThem() async throws {
        try await withBench { bench, origin in
            _ = serve(origin, .disposition(filename: "report.pdf"))
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.learned?.suggestedName == nil)
            #expect(ending.finished?.size == 2 * mebibyte)
        }
    }

    @Test func modificationTimeIsKeptIfTheGroupWantsIt() async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.policy = TransferPolicy()
            lease.policy?.keepModificationTime = true
            #expect(await bench.run(lease).finished != nil)
            try #expect(bench.modificationTime("out/file.bin") == 1_577_836_800)
        }
    }

    @Test func failureCarriesStatusRequestAndAddress() async throws {
        try await withBench { bench, origin in
            origin.misbehave("/f", .status(503, retryAfter: "9"))
            origin.misbehave("/f", .headers([ScriptedOrigin.Header("X-Amz-Request-Id", "R-1")]))
            var lease = LeaseDocument.first(origin.url("/f"))
            let failure = try #require(await bench.run(lease).failure)
            #expect(failure.status == 503)
            #expect(failure.requestID == "R-1")
            #expect(failure.address == "127.0.0.1")
            #expect(failure.retryAfter == 9)
            #expect(failure.detail == "the origin answered 503")
            lease.source?.ordinal = 2
            #expect(await bench.run(lease).failure?.detail == "mirror 2: the origin answered 503")
            #expect(await bench.run(lease).failure?.source == 2)
        }
    }

    @Test func failureWithoutAnAnswerHasNoStatus() async throws {
        try await withBench { bench, origin in
            origin.misbehave("/f", .resetBeforeHeaders)
            let failure = await bench.run(.first(origin.url("/f"))).failure
            #expect(failure?.kind == .network)
            #expect(failure?.status == nil)
            #expect(failure?.address == "127.0.0.1")
        }
    }

    @Test func anotherMirrorServesChunksOnlyOfTheSameContent() async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            var lease = LeaseDocument.chunk(
                origin.url("/f"), mebibyte, 2 * mebibyte, of: Representation(size: 2 * mebibyte, etag: "\"other\""))
            lease.isOtherMirror = true
            lease.source?.ordinal = 1
            let failure = await bench.run(lease).failure
            #expect(failure?.kind == .changed)
            #expect(failure?.detail.hasPrefix("mirror 1: ") == true)
            lease.expectedDigests = ["sha256": content.sha256()]
            #expect(await bench.run(lease).durable?.offset == 2 * mebibyte)
            #expect(origin.requests.last?.header("If-Range") == nil)
            lease.expectedDigests = [:]
            lease.representation.etag = file.etag
            lease.task = TaskID(2)
            #expect(await bench.run(lease).durable?.offset == 2 * mebibyte)
        }
    }

    @Test func nodesWithTagsOfTheirOwnAreTakenForOneOriginIfADigestDecides() async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            var lease = LeaseDocument.chunk(
                origin.url("/f"), mebibyte, 2 * mebibyte, of: Representation(size: 2 * mebibyte, etag: "\"node 1\""))
            lease.policy = TransferPolicy()
            lease.policy?.validators = .sizeAndDigest
            #expect(await bench.run(lease).failure?.kind == .changed)
            lease.expectedDigests = ["sha256": content.sha256()]
            #expect(await bench.run(lease).durable?.offset == 2 * mebibyte)
        }
    }

    @Test func contentWithoutValidatorsIsChunkedIfTheGroupAllowsIt() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(.seeded(seed: 31, size: 9 * mebibyte)))
            origin.misbehave("/f", .noValidators)
            #expect(await bench.run(.first(origin.url("/f"))).finished?.size == 9 * mebibyte)
            var lease = LeaseDocument.first(origin.url("/f"), task: 2, path: "chunks")
            lease.policy = TransferPolicy()
            lease.policy?.chunksWithoutValidator = true
            #expect(await bench.run(lease).durable?.offset == 8 * mebibyte)
            #expect(bench.learned.last?.rung == .chunks)
        }
    }

    @Test func pageOfAnotherTypeIsRefused() async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            origin.misbehave("/f", .htmlErrorPage)
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.contentType = "application/octet-stream"
            #expect(await bench.run(lease).failure?.kind == .httpStatus(200))
            #expect(!bench.exists("out/file.bin"))
        }
    }

    /// Row 27, where the head states no size.
    @Test(
        arguments: [
            (EarlierVersion(size: 3 * mebibyte), nil, false), (EarlierVersion(bytes: 5 * mebibyte), nil, false),
            (EarlierVersion(bytes: 2 * mebibyte), nil, true),
            // A shorter body under the same weak validator is not the content that has it.
            (EarlierVersion(size: 3 * mebibyte, etag: "W/\"v\""), "W/\"v\"", false),
            (EarlierVersion(bytes: 2 * mebibyte + 1, etag: "W/\"v\""), "W/\"v\"", false),
            (EarlierVersion(size: 3 * mebibyte, etag: "W/\"v\""), "W/\"w\"", true),
            (EarlierVersion(size: 3 * mebibyte), "W/\"w\"", false), (EarlierVersion(size: 3 * mebibyte), "\"w\"", true),
        ] as [(EarlierVersion, String?, Bool)], [ScriptedOrigin.Misbehaviour.chunked, .closeDelimited])
    func bodyThatEndsFarTooSoonIsNoVersionAfterAnother(
        case: (earlier: EarlierVersion, etag: String?, isTaken: Bool), framing: ScriptedOrigin.Misbehaviour
    ) async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            let isTaken = `case`.isTaken
            let validators: [ScriptedOrigin.Misbehaviour] =
                `case`.etag.map { [.etag($0), .lastModified(nil)] } ?? [.noValidators]
            for misbehaviour in [.ignoreRange, framing] + validators { origin.misbehave("/f", misbehaviour) }
            var lease = LeaseDocument.first(origin.url("/f"))
            lease.earlier = `case`.earlier
            let ending = await bench.run(lease)
            #expect(isTaken ? ending.finished?.size == 2 * mebibyte : ending.failure?.kind == .network)
            #expect(bench.exists("out/file.bin") == isTaken)
        }
    }

    /// Row 27: the job reports what a head states, although its body ends before the first byte.
    @Test(arguments: [ScriptedOrigin.Misbehaviour.truncated(afterBytes: 0), .reset(afterBytes: 0)])
    func headWhoseBodyNeverComesIsTold(end: ScriptedOrigin.Misbehaviour) async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            origin.misbehave("/f", end)
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.failure?.kind == .network && ending.durable == nil)
            let shown = ending.learned?.representation
            #expect(shown?.size == 2 * mebibyte && shown?.etag == file.etag, "\(ending)")
        }
    }

    /// Row 14: two reads of almost nothing don't prove the end of a file of which another read has brought more.
    @Test func readsThatAreHardlyAnythingDoNotProveAnEnd() async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            for misbehaviour in [.ignoreRange, .closeDelimited, .noValidators] as [ScriptedOrigin.Misbehaviour] {
                origin.misbehave("/f", misbehaviour)
            }
            origin.misbehave("/f", .truncated(afterBytes: 5), when: .init(requests: 1..<4))
            #expect(await bench.run(.first(origin.url("/f"))).finished?.size == 2 * mebibyte)
            #expect(origin.requests.count == 6)
        }
    }

    /// Nor does an empty answer that states its length prove the end.
    @Test(arguments: [1, 3]) func emptyAnswerAfterAReadWhoseEndNothingProvesIsNotTheFile(count: Int) async throws {
        try await withBench { bench, origin in
            _ = serve(origin)
            for misbehaviour in [.ignoreRange, .noValidators] as [ScriptedOrigin.Misbehaviour] {
                origin.misbehave("/f", misbehaviour)
            }
            origin.misbehave("/f", .closeDelimited)
            origin.misbehave(
                "/f", .garbage("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), when: .init(requests: 1..<(1 + count)))
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == 2 * mebibyte, "\(ending)")
        }
    }

    @Test func answer416BehindTheDurableBytesIsTheEnd() async throws {
        try await withBench { bench, origin in
            let file = serve(origin)
            let first = await bench.run(
                .chunk(origin.url("/f"), 0, 2 * mebibyte, of: Representation(size: 3 * mebibyte, etag: file.etag)))
            #expect(first.failure?.kind == .changed, "the size is another one than was known")
            var lease = LeaseDocument.first(origin.url("/f"), task: 2)
            let part = await bench.run(.chunk(origin.url("/f"), 0, mebibyte, of: Representation(etag: file.etag)))
            #expect(part.durable?.offset == mebibyte)
            lease.task = TaskID(1)
            let whole = await bench.run(
                .chunk(
                    origin.url("/f"), mebibyte, 2 * mebibyte, of: Representation(size: 2 * mebibyte, etag: file.etag)))
            #expect(whole.durable?.offset == 2 * mebibyte)
            lease.representation = Representation(etag: file.etag)
            lease.resume = DurablePrefix(offset: 2 * mebibyte, crc: crc(content.allBytes))
            let ending = await bench.run(lease)
            #expect(ending.finished?.size == 2 * mebibyte)
            #expect(origin.requests.last?.status == 416)
            try #expect(bench.file("out/file.bin") == content.allBytes)
        }
    }
}
