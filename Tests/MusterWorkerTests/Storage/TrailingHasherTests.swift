import Crypto
import Glibc
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// Digests of a file that came in one piece, computed as it arrives.
@Suite struct TrailingHasherTests {
    static let size = Int(TrailingHasher.smallestFile) + 3_456_789
    static let bytes = ScratchSink.content(size)
    var sha256: ContentDigest { ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: Self.bytes)) }

    private let fresh = DurablePrefix(offset: 0, crc: CRC32C.empty)

    private func writer(
        _ scratch: ScratchSink,
        after prefix: DurablePrefix,
        control: LeaseControl = LeaseControl()
    ) throws -> ChunkWriter {
        let gate = TrustGate { 0 }
        _ = gate.open(until: 1)
        return ChunkWriter(
            try scratch.sink.part(task: TaskID(1), version: 1),
            after: prefix,
            gate: gate,
            control: control
        )
    }

    private func write(_ bytes: ArraySlice<UInt8>, _ writer: ChunkWriter) {
        var rest = bytes
        while !rest.isEmpty {
            let piece = rest.prefix(100_001)
            #expect(piece.withUnsafeBytes { writer.write($0) } == .written)
            rest = rest.dropFirst(piece.count)
        }
    }

    @Test func theDigestsAreThoseOfTheBytes() async throws {
        try await ScratchSink.with { scratch in
            let writer = try writer(scratch, after: fresh)
            writer.hash([.sha256, .md5], on: scratch.pool)
            write(Self.bytes[...], writer)
            let md5 = ContentDigest(algorithm: .md5, bytes: Insecure.MD5.hash(data: Self.bytes))
            #expect(await Set(writer.digests()) == [sha256, md5])
        }
    }

    @Test func digestsServeTheFinalizer() async throws {
        try await ScratchSink.with { scratch in
            let writer = try writer(scratch, after: fresh)
            writer.hash([.sha256], on: scratch.pool)
            write(Self.bytes[...], writer)
            let order = try scratch.order(
                1,
                path: "f",
                Self.bytes,
                chunkSize: Self.size,
                expected: [sha256],
                knownDigests: await writer.digests()
            )
            #expect(order.knownDigests == [sha256])
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
        }
    }

    @Test func noDigestIsComputedUnlessAskedFor() async throws {
        try await ScratchSink.with { scratch in
            let writer = try writer(scratch, after: fresh)
            writer.hash([], on: scratch.pool)
            write(Self.bytes[...], writer)
            #expect(await writer.digests().isEmpty)
        }
    }

    @Test func smallFilesAreLeftToTheFinalizer() async throws {
        try await ScratchSink.with { scratch in
            let writer = try writer(scratch, after: fresh)
            writer.hash([.sha256], on: scratch.pool)
            write(Self.bytes.prefix(Int(TrailingHasher.smallestFile)), writer)
            #expect(await writer.digests().isEmpty)
        }
    }

    @Test func resumedFileIsNotHashed() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Array(Self.bytes.prefix(1_000)))
            let prefix = DurablePrefix(offset: 1_000, crc: CRC32C.extend(CRC32C.empty, Self.bytes.prefix(1_000)))
            let writer = try writer(scratch, after: prefix)
            writer.hash([.sha256], on: scratch.pool)
            write(Self.bytes.dropFirst(1_000), writer)
            #expect(writer.offset == Int64(Self.size))
            #expect(await writer.digests().isEmpty)
        }
    }

    @Test func aRestartDiscardsWhatWasHashed() async throws {
        try await ScratchSink.with { scratch in
            let writer = try writer(scratch, after: fresh)
            writer.hash([.sha256], on: scratch.pool)
            write(ScratchSink.content(Self.size, seed: 9)[...], writer)
            writer.restart(at: 0)
            write(Self.bytes[...], writer)
            #expect(await writer.digests().isEmpty)
            // After another restart at 0, hashing may begin again.
            writer.restart(at: 0)
            writer.hash([.sha256], on: scratch.pool)
            write(Self.bytes[...], writer)
            #expect(await writer.digests() == [sha256])
        }
    }

    @Test func bytesThatChangedMeanwhileGiveNoDigest() async throws {
        try await ScratchSink.with { scratch in
            let writer = try writer(scratch, after: fresh)
            writer.hash([.sha256], on: scratch.pool)
            write(Self.bytes.prefix(1_000_000), writer)
            let part = try scratch.sink.part(task: TaskID(1), version: 1)
            try part.write([Self.bytes[7] ^ 1], at: 7)
            write(Self.bytes.dropFirst(1_000_000), writer)
            #expect(await writer.digests().isEmpty, "what was hashed is not what arrived")
        }
    }

    @Test func aTruncatedPartGivesNoDigest() async throws {
        try await ScratchSink.with { scratch in
            let blocked = try await Blocked(scratch.pool, threads: 2)
            let writer = try writer(scratch, after: fresh)
            writer.hash([.sha256], on: scratch.pool)
            write(Self.bytes[...], writer)
            truncate(scratch.path + "/\(ScratchSink.parts)/1.1.part", 5_000_000)
            async let digests = writer.digests()
            blocked.release()
            #expect(await digests.isEmpty)
        }
    }

    @Test func fileThatIsNotWantedAnyMoreIsNotHashed() async throws {
        try await ScratchSink.with { scratch in
            let control = LeaseControl()
            let blocked = try await Blocked(scratch.pool, threads: 2)
            let writer = try writer(scratch, after: fresh, control: control)
            writer.hash([.sha256], on: scratch.pool)
            write(Self.bytes[...], writer)
            control.ask(.release)
            async let digests = writer.digests()
            blocked.release()
            #expect(await digests.isEmpty)
        }
    }

    /// No thread hashes. The writer goes on all the same, and there is no result rather than a long wait.
    @Test func theWriterIsNeverHeldUp() async throws {
        try await ScratchSink.with { scratch in
            let blocked = try await Blocked(scratch.pool, threads: 2)
            let part = try scratch.sink.part(task: TaskID(1), version: 1)
            let hasher = TrailingHasher(part, [.sha256], on: scratch.pool) { true }
            for mebibyte in 1...300 as ClosedRange<Int64> { hasher.follow(to: mebibyte << 20) }
            #expect(await hasher.finish(DurablePrefix(offset: 300 << 20, crc: 0)).isEmpty)
            blocked.release()
        }
    }

    @Test func aPoolThatTakesNothingGivesNoDigest() async throws {
        try await ScratchSink.with { scratch in
            let pool = try BlockingPool(threads: 1)
            await pool.shutdown()
            let writer = try writer(scratch, after: fresh)
            writer.hash([.sha256], on: pool)
            write(Self.bytes[...], writer)
            #expect(await writer.digests().isEmpty)
        }
    }

    /// Keeps the threads of a pool busy until it is told to let them go.
    private final class Blocked: Sendable {
        private let opener: Int32

        init(_ pool: BlockingPool, threads: Int) async throws {
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            opener = ends[1]
            let gate = ends[0]
            let busy = Observed(0)
            for _ in 0..<threads {
                #expect(
                    pool.submit {
                        busy.update { $0 += 1 }
                        var byte: UInt8 = 0
                        _ = read(gate, &byte, 1)
                    } == nil
                )
            }
            try await busy.wait(for: "busy threads") { $0 == threads }
        }

        func release() {
            close(opener)
        }
    }
}
