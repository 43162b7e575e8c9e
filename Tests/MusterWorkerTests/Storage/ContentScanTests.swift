import Crypto
import Glibc
import MusterAPI
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

/// Several threads compute the same of a large file as one thread would.
@Suite struct ContentScanTests {
    /// Large enough to be shared, and no multiple of anything.
    static let bytes = ScratchSink.content(Int(ContentScan.sharedBytes) + 123_457)

    private func with(
        _ bytes: [UInt8] = bytes,
        helpers: Int = 2,
        _ body: (ScratchSink, Descriptor, BlockingPool) async throws -> Void
    ) async throws {
        try await ScratchSink.with { scratch in
            try scratch.write(bytes, to: "f")
            let (file, _) = try scratch.sink.root.file("f", creation: .never)
            let pool = try BlockingPool(threads: helpers)
            do {
                try await body(scratch, file, pool)
            } catch {
                await pool.shutdown()
                throw error
            }
            await pool.shutdown()
        }
    }

    private func scan(
        _ algorithms: Set<DigestAlgorithm>,
        chunkSize: Int = 1_234_567,
        endsWithFirstWrong: Bool = false,
        helpers: BlockingPool?,
        watch: FinalizeWatch = FinalizeWatch()
    ) -> ContentScan {
        ContentScan(
            chunks: ScratchSink.chunks(of: Self.bytes, size: chunkSize),
            algorithms: algorithms,
            endsWithFirstWrong: endsWithFirstWrong,
            helpers: helpers,
            watch: watch
        )
    }

    private static func digests(_ bytes: [UInt8]) -> Set<ContentDigest> {
        let crc = CRC32C.extend(CRC32C.empty, bytes)
        return [
            ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: bytes)),
            ContentDigest(algorithm: .sha512, bytes: SHA512.hash(data: bytes)),
            ContentDigest(algorithm: .sha1, bytes: Insecure.SHA1.hash(data: bytes)),
            ContentDigest(algorithm: .md5, bytes: Insecure.MD5.hash(data: bytes)),
            ContentDigest(algorithm: .crc32c, bytes: withUnsafeBytes(of: crc.bigEndian) { Array($0) }),
        ]
    }

    @Test(arguments: [0, 1, 3])
    func severalThreadsComputeWhatOneDoes(helpers: Int) async throws {
        try await with(helpers: helpers) { _, file, pool in
            let scan = scan(Set(DigestAlgorithm.allCases), helpers: helpers == 0 ? nil : pool)
            let findings = try #require(try scan.run(file, size: Int64(Self.bytes.count), name: "f"))
            #expect(Set(findings.digests) == Self.digests(Self.bytes))
            #expect(findings.wrong.isEmpty)
        }
    }

    /// All helpers are busy: the reader does all the work, and none is lost.
    @Test func scanEndsWithoutHelpers() async throws {
        try await with(helpers: 1) { _, file, pool in
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            let gate = ends[0]
            #expect(
                pool.submit {
                    var byte: UInt8 = 0
                    _ = read(gate, &byte, 1)
                } == nil
            )
            let findings = try scan([.sha256, .md5], helpers: pool).run(file, size: Int64(Self.bytes.count), name: "f")
            close(ends[1])
            #expect(Self.digests(Self.bytes).isSuperset(of: findings?.digests ?? []))
            #expect(findings?.digests.count == 2)
            close(gate)
        }
    }

    @Test func aPoolThatTakesNothingIsNoHindrance() async throws {
        try await with { _, file, pool in
            await pool.shutdown()
            let findings = try scan([.sha256, .md5], helpers: pool).run(file, size: Int64(Self.bytes.count), name: "f")
            #expect(findings?.digests.count == 2)
        }
    }

    @Test(arguments: [false, true])
    func everyWrongChunkIsFound(isShared: Bool) async throws {
        var wrong = Self.bytes
        for index in [0, 1_234_567, 5_000_000, wrong.count - 1] { wrong[index] ^= 1 }
        try await with(wrong) { _, file, pool in
            let scan = scan([.sha256, .md5], helpers: isShared ? pool : nil)
            let findings = try #require(try scan.run(file, size: Int64(wrong.count), name: "f"))
            #expect(findings.wrong.map { $0.start / 1_234_567 } == [0, 1, 4, Int64(wrong.count / 1_234_567)])
            #expect(findings.digests.isEmpty)
        }
    }

    @Test(arguments: [false, true])
    func scanMayEndAtTheFirstWrongChunk(isShared: Bool) async throws {
        var wrong = Self.bytes
        wrong[0] ^= 1
        try await with(wrong) { _, file, pool in
            let read = Atomic<Int64>(0)
            let watch = FinalizeWatch(verified: { read.store($0, ordering: .relaxed) })
            let scan = scan([.sha256], endsWithFirstWrong: true, helpers: isShared ? pool : nil, watch: watch)
            let findings = try #require(try scan.run(file, size: Int64(wrong.count), name: "f"))
            #expect(findings.wrong.first?.start == 0)
            #expect(read.load(ordering: .relaxed) < Int64(wrong.count) / 2)
        }
    }

    @Test(arguments: [false, true])
    func itStopsWhenItIsTold(isShared: Bool) async throws {
        try await with { _, file, pool in
            for allowed in [0, 1, 20] {
                let asked = CallCount()
                let watch = FinalizeWatch(mayContinue: { asked.add() < allowed })
                let scan = scan([.sha256, .md5], helpers: isShared ? pool : nil, watch: watch)
                let findings = try scan.run(file, size: Int64(Self.bytes.count), name: "f")
                #expect(findings == nil)
                #expect(asked.value == allowed + 1)
            }
        }
    }

    @Test(arguments: [false, true])
    func aFileThatEndsTooEarlyIsLost(isShared: Bool) async throws {
        try await with { scratch, file, pool in
            truncate(scratch.path + "/f", Self.bytes.count - 1)
            let error = #expect(throws: StorageError.self) {
                try scan([.sha256, .md5], helpers: isShared ? pool : nil)
                    .run(file, size: Int64(Self.bytes.count), name: "f")
            }
            #expect(error?.failureKind == .changed)
        }
    }

    @Test func aLargeFileIsFinalizedWithHelpers() async throws {
        try await with([]) { scratch, _, pool in
            let finalizer = Finalizer(sink: scratch.sink, pool: scratch.pool, helpers: pool, sync: scratch.sync)
            let md5 = ContentDigest(algorithm: .md5, bytes: Insecure.MD5.hash(data: Self.bytes))
            for fenced in [false, true] {
                try scratch.makePart(1, Self.bytes)
                let order = try scratch.order(
                    1,
                    path: "large\(fenced)",
                    Self.bytes,
                    chunkSize: 5_000_000,
                    expected: [md5],
                    recorded: [.sha256, .crc32c],
                    fenced: fenced
                )
                let finished = try #require(try await finalizer.finalize(order).finished)
                #expect(Set(finished.digests.keys) == ["md5", "sha256", "crc32c"])
                let expected = Dictionary(
                    uniqueKeysWithValues: Self.digests(Self.bytes).map { ($0.algorithm.rawValue, $0.hexadecimal) }
                )
                #expect(finished.digests.allSatisfy { expected[$0.key] == $0.value })
            }
        }
    }

    // MARK: - Digests that are known

    @Test(arguments: [false, true])
    func whatWasHashedOnArrivalIsNotHashedAgain(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(10_000)
            try scratch.makePart(1, bytes)
            // A wrong digest, which shows that the known digest is the one that is reported.
            let known = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: [1]))
            let order = try scratch.order(
                1,
                path: "f",
                bytes,
                expected: [known],
                recorded: [.md5],
                fenced: fenced,
                knownDigests: [known]
            )
            let finished = try #require(try await scratch.finalizer.finalize(order).finished)
            let md5 = ContentDigest(algorithm: .md5, bytes: Insecure.MD5.hash(data: bytes))
            #expect(finished.digests == ["sha256": known.hexadecimal, "md5": md5.hexadecimal])
        }
    }

    @Test func whatWasHashedOnArrivalMustStillBeThere() async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(10_000)
            var wrong = bytes
            wrong[5_000] ^= 1
            try scratch.makePart(1, wrong)
            let known = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: bytes))
            let order = try scratch.order(1, path: "f", bytes, expected: [known], knownDigests: [known])
            #expect(try await scratch.finalizer.finalize(order).failure?.kind == .changed)
        }
    }

    @Test func aKnownMismatchIsToldWithoutReadingBack() async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(10_000)
            try scratch.makePart(1, bytes)
            let known = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: bytes))
            let expected = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: [1]))
            let order = try scratch.order(1, path: "f", bytes, expected: [expected], knownDigests: [known])
            let read = CallCount()
            let watch = FinalizeWatch(verified: { _ in read.add() })
            let outcome = try await scratch.finalizer.finalize(order, watch: watch)
            #expect(outcome == .digestMismatch(expected: expected, found: known))
            #expect(read.value == 0)
            #expect(try scratch.partNames() == [])
        }
    }

    @Test func knownDigestsDoNotCountForAFileThatWasThere() async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(10_000)
            try scratch.makePart(1, bytes)
            try scratch.write(bytes, to: "f")
            let known = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: [1]))
            let order = try scratch.order(1, path: "f", bytes, expected: [known], knownDigests: [known])
            let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
            #expect(error?.failureKind == .storage)
        }
    }
}
