import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

@Suite struct FetchJobTests {
    private func seeded(_ size: Int64, etag: String? = "\"one\"") -> ScriptedOrigin.File {
        var file = ScriptedOrigin.File(.seeded(seed: 11, size: size))
        file.etag = etag
        return file
    }

    @Test func smallFileIsInPlaceWithinItsOneLease() async throws {
        try await withBench { bench, origin in
            let file = seeded(100_000)
            origin.serve("/f", file)
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == 100_000)
            #expect(ending.durable == DurablePrefix(offset: 100_000, crc: crc(file.content.allBytes)))
            #expect(
                ending.learned?.representation
                    == Representation(
                        size: 100_000,
                        etag: "\"one\"",
                        lastModified: file.lastModified,
                        isDateStrong: true
                    )
            )
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
            #expect(origin.requests.count == 1)
            #expect(origin.requests.first?.range == "bytes=0-8388607")
            #expect(origin.requests.first?.header("Accept-Encoding") == "identity")
            #expect(origin.requests.first?.header("User-Agent") == "muster/0")
        }
    }

    @Test func emptyFileIsAskedForPlainlyAndPutInPlace() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", ScriptedOrigin.File(.empty))
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == 0)
            try #expect(bench.file("out/file.bin") == [])
        }
    }

    @Test func largeFileTeachesItsSizeBeforeItsBody() async throws {
        try await withBench { bench, origin in
            let file = seeded(9 * mebibyte)
            origin.serve("/f", file)
            origin.hold("/f", afterBytes: mebibyte)
            async let running = bench.run(.first(origin.url("/f")))
            try await bench.news.wait(for: "what was learned", details: { "\($0.count)" }) { !$0.isEmpty }
            #expect(bench.learned.first?.representation.size == 9 * mebibyte)
            #expect(bench.learned.first?.rung == .chunks)
            origin.release("/f")
            let ending = await running
            #expect(ending.finished == nil)
            #expect(ending.durable?.offset == 8 * mebibyte)
            #expect(ending.durable?.crc == crc(file.content.bytes(in: 0..<(8 * mebibyte))))
            #expect(!bench.exists("out/file.bin"))
        }
    }

    @Test func plannedChunkIsFetchedWithIfRangeAndWrittenAtItsPlace() async throws {
        try await withBench { bench, origin in
            let file = seeded(3 * mebibyte)
            origin.serve("/f", file)
            let lease = LeaseDocument.chunk(
                origin.url("/f"),
                mebibyte,
                2 * mebibyte,
                of: Representation(size: 3 * mebibyte, etag: "\"one\"")
            )
            let ending = await bench.run(lease)
            #expect(ending.durable?.offset == 2 * mebibyte)
            #expect(ending.durable?.crc == crc(file.content.bytes(in: mebibyte..<(2 * mebibyte))))
            #expect(origin.requests.first?.range == "bytes=1048576-2097151")
            #expect(origin.requests.first?.header("If-Range") == "\"one\"")
            let part = try bench.part(lease)
            #expect(Array(part[Int(mebibyte)...]) == file.content.bytes(in: mebibyte..<(2 * mebibyte)))
        }
    }

    @Test func originWithoutRangesIsTakenAsAStream() async throws {
        try await withBench { bench, origin in
            let file = seeded(9 * mebibyte)
            origin.serve("/f", file)
            origin.misbehave("/f", .ignoreRange)
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == 9 * mebibyte)
            #expect(bench.learned.first?.rung == .whole)
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
        }
    }

    @Test func originThatStopsHonouringRangesMakesTheTaskStartOver() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", seeded(3 * mebibyte))
            origin.misbehave("/f", .ignoreRange)
            let ending = await bench.run(
                .chunk(
                    origin.url("/f"),
                    mebibyte,
                    2 * mebibyte,
                    of: Representation(size: 3 * mebibyte, etag: "\"one\"")
                )
            )
            #expect(ending.isRestart)
        }
    }

    @Test func changedContentIsRefusedBeforeItsFirstByte() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", seeded(3 * mebibyte, etag: "\"two\""))
            origin.misbehave("/f", .ignoreIfRange)
            let lease = LeaseDocument.chunk(
                origin.url("/f"),
                mebibyte,
                2 * mebibyte,
                of: Representation(size: 3 * mebibyte, etag: "\"one\"")
            )
            let ending = await bench.run(lease)
            #expect(ending.failure?.kind == .changed)
            try #expect(bench.part(lease).isEmpty)
        }
    }

    @Test func mistrustedIfRangeIsAskedAgainWithout() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", seeded(3 * mebibyte))
            origin.misbehave("/f", .mistrustIfRange)
            let ending = await bench.run(
                .chunk(
                    origin.url("/f"),
                    mebibyte,
                    2 * mebibyte,
                    of: Representation(size: 3 * mebibyte, etag: "\"one\"")
                )
            )
            #expect(ending.durable?.offset == 2 * mebibyte)
            #expect(origin.requests.count == 2)
            #expect(origin.requests.last?.header("If-Range") == nil)
        }
    }

    @Test func cutTransferKeepsWhatCameAndASuccessorGoesOn() async throws {
        try await withBench { bench, origin in
            let file = seeded(2 * mebibyte)
            origin.serve("/f", file)
            origin.misbehave("/f", .truncated(afterBytes: mebibyte), when: .first(1))
            let first = await bench.run(.first(origin.url("/f")))
            #expect(first.failure?.kind == .network)
            let durable = try #require(first.durable)
            #expect(durable.offset > 0)
            #expect(durable.crc == crc(file.content.bytes(in: 0..<durable.offset)))
            var next = LeaseDocument.chunk(
                origin.url("/f"),
                0,
                2 * mebibyte,
                of: Representation(size: 2 * mebibyte, etag: "\"one\"")
            )
            next.resume = durable
            let second = await bench.run(next)
            #expect(second.finished?.size == 2 * mebibyte)
            #expect(origin.requests.last?.range == "bytes=\(durable.offset)-2097151")
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
        }
    }

    @Test func durablePrefixThatIsNotThereIsFetchedAgain() async throws {
        try await withBench { bench, origin in
            let file = seeded(2 * mebibyte)
            origin.serve("/f", file)
            let known = Representation(size: 2 * mebibyte, etag: "\"one\"")
            for isThere in [false, true] {
                let name = isThere ? "spoilt" : "missing"
                var lease = LeaseDocument.chunk(origin.url("/f"), 0, 2 * mebibyte, of: known)
                lease.task = TaskID(isThere ? 1 : 2)
                lease.path = name
                if isThere {
                    // The bytes are on the disk, but they are not those that were reported.
                    var first = LeaseDocument.chunk(origin.url("/f"), 0, mebibyte, of: known)
                    first.task = lease.task
                    #expect(await bench.run(first).durable?.offset == mebibyte)
                }
                lease.resume = DurablePrefix(offset: mebibyte, crc: 1)
                #expect(await bench.run(lease).finished?.size == 2 * mebibyte)
                try #expect(bench.file(name) == file.content.allBytes)
            }
        }
    }

    @Test func shortRangesAreGoneOnWithWithinTheLease() async throws {
        try await withBench { bench, origin in
            let file = seeded(mebibyte)
            origin.serve("/f", file)
            origin.misbehave("/f", .shortRange(bytes: 300_000))
            let ending = await bench.run(.first(origin.url("/f")))
            #expect(ending.finished?.size == mebibyte)
            #expect(origin.requests.count == 4)
            try #expect(bench.file("out/file.bin") == file.content.allBytes)
        }
    }

    @Test func unframedStreamIsReadTwiceUnlessADigestOrTheSizeTells() async throws {
        try await withBench { bench, origin in
            let file = seeded(mebibyte)
            origin.serve("/f", file)
            origin.misbehave("/f", .closeDelimited)
            origin.misbehave("/f", .ignoreRange)
            #expect(await bench.run(.first(origin.url("/f"))).finished?.size == mebibyte)
            #expect(origin.requests.count == 2)
            var lease = LeaseDocument.first(origin.url("/f"), task: 2, path: "digest")
            lease.expectedDigests = ["sha256": file.content.sha256()]
            #expect(await bench.run(lease).finished?.digests["sha256"] == file.content.sha256())
            var sized = LeaseDocument.first(origin.url("/f"), task: 3, path: "sized")
            sized.expectedSize = mebibyte
            #expect(await bench.run(sized).finished?.size == mebibyte)
            #expect(origin.requests.count == 4)
        }
    }

    @Test func streamWithoutLengthNeedsItsTerminator() async throws {
        try await withBench { bench, origin in
            let file = seeded(mebibyte)
            origin.serve("/f", file)
            origin.serve("/cut", file)
            for path in ["/f", "/cut"] { origin.misbehave(path, .ignoreRange) }
            origin.misbehave("/f", .chunked)
            origin.misbehave("/cut", .chunkedUnterminated(afterBytes: 500_000))
            let whole = await bench.run(.first(origin.url("/f")))
            #expect(whole.finished?.size == mebibyte)
            let cut = await bench.run(.first(origin.url("/cut"), task: 2, path: "cut"))
            #expect(cut.failure?.kind == .network)
            #expect(!bench.exists("cut"))
        }
    }

    @Test func wrongSizeAndDigestFailTheirOwnWay() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", seeded(mebibyte))
            var sized = LeaseDocument.first(origin.url("/f"))
            sized.expectedSize = 5
            #expect(await bench.run(sized).failure?.kind == .sizeMismatch)
            var digest = LeaseDocument.first(origin.url("/f"), task: 2)
            digest.expectedDigests = ["sha256": String(repeating: "0", count: 64)]
            let failure = await bench.run(digest).failure
            #expect(failure?.kind == .digestMismatch)
            #expect(failure?.source == 0)
            #expect(!bench.exists("out/file.bin"))
        }
    }

    @Test func refusalsOfTheOriginAreReportedWithTheirWish() async throws {
        try await withBench { bench, origin in
            origin.serve("/busy", seeded(10))
            origin.misbehave("/busy", .status(503, retryAfter: "7"))
            let failure = await bench.run(.first(origin.url("/busy"))).failure
            #expect(failure?.kind == .httpStatus(503))
            #expect(failure?.retryAfter == 7)
            #expect(await bench.run(.first(origin.url("/none"))).failure?.kind == .notFound)
        }
    }

    @Test func refusedConnectionIsANetworkFailure() async throws {
        try await withBench { bench, _ in
            let port = try await FreePort.find()
            #expect(await bench.run(.first("http://127.0.0.1:\(port)/f")).failure?.kind == .network)
        }
    }

    @Test func untrustworthyAnswersAreRefused() async throws {
        let misbehaviours: [ScriptedOrigin.Misbehaviour] = [
            .conflictingContentLengths, .negativeContentLength, .contentLengthOff(by: -3), .garbage("?"),
        ]
        try await withBench { bench, origin in
            for (index, misbehaviour) in misbehaviours.enumerated() {
                let path = "/\(index)"
                origin.serve(path, seeded(100_000))
                origin.misbehave(path, misbehaviour)
                let ending = await bench.run(.first(origin.url(path), task: Int64(index) + 1, path: "f\(index)"))
                #expect(ending.failure?.kind == .badRange, "\(misbehaviour) \(ending)")
                #expect(!bench.exists("f\(index)"))
            }
        }
    }

    @Test func redirectsAreFollowedAndTheCallersFieldsAreSent() async throws {
        try await withBench { bench, origin in
            origin.serve("/f", seeded(1_000))
            origin.misbehave("/r", .redirect(to: origin.url("/f"), status: 302))
            var lease = LeaseDocument.first(origin.url("/r"))
            lease.source = LeaseSource(
                ordinal: 3,
                url: origin.url("/r"),
                headers: ["X-Key": "v", "Range": "bytes=5-6", "user-agent": "mine"]
            )
            let ending = await bench.run(lease)
            #expect(ending.finished?.size == 1_000)
            #expect(ending.learned?.effectiveURL == origin.url("/f"))
            #expect(ending.learned?.source == 3)
            let request = origin.requests.last
            #expect(request?.header("X-Key") == "v")
            #expect(request?.header("User-Agent") == "mine")
            #expect(request?.range == "bytes=0-8388607")
        }
    }
}
