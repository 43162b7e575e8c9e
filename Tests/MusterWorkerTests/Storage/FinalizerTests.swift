import Crypto
import Glibc
import MusterAPI
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

@Suite struct FinalizerTests {
    @Test func aCompletePartBecomesTheFile() async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(1_000_000)
            try scratch.makePart(1, bytes)
            let sha256 = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: bytes))
            let order = try scratch.order(
                1,
                path: "a/b/c.bin",
                bytes,
                chunkSize: 300_000,
                expected: [sha256],
                recorded: [.md5, .sha1, .sha512]
            )
            let outcome = try await scratch.finalizer.finalize(order)
            let digests = [
                "sha256": sha256.hexadecimal,
                "sha512": ContentDigest(algorithm: .sha512, bytes: SHA512.hash(data: bytes)).hexadecimal,
                "sha1": ContentDigest(algorithm: .sha1, bytes: Insecure.SHA1.hash(data: bytes)).hexadecimal,
                "md5": ContentDigest(algorithm: .md5, bytes: Insecure.MD5.hash(data: bytes)).hexadecimal,
            ]
            #expect(outcome == .inPlace(Report.Finished(size: 1_000_000, digests: digests)))
            #expect(outcome.failure == nil)
            #expect(try scratch.read("a/b/c.bin") == bytes)
            #expect(try scratch.partNames() == [])
        }
    }

    @Test(arguments: [false, true])
    func anEmptyFileSucceeds(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, [])
            let outcome = try await scratch.finalizer.finalize(scratch.order(1, path: "empty", [], fenced: fenced))
            #expect(outcome == .inPlace(Report.Finished(size: 0, digests: [:])))
            #expect(try scratch.read("empty") == [])
            #expect(try scratch.partNames() == [])
        }
    }

    // MARK: - Wrong contents

    @Test(arguments: [false, true])
    func bytesThatAreNotWhatWasFetchedAreFound(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(10_000)
            var wrong = bytes
            wrong[2_500] ^= 1
            wrong[9_999] ^= 1
            try scratch.makePart(1, wrong)
            let outcome = try await scratch.finalizer.finalize(scratch.order(1, path: "f", bytes, fenced: fenced))
            guard case .corrupt(let ranges, _) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(ranges.map(\.start) == [2_000, 9_000])
            #expect(outcome.failure?.kind == .changed)
            #expect(!scratch.exists("f"))
            #expect(try scratch.partNames() == [], "nothing of it is of use")
        }
    }

    @Test(arguments: [false, true])
    func aPartOfAnotherSizeIsCorrupt(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(10_000)
            for wrong in [Array(bytes.dropLast()), bytes + [0], []] {
                try scratch.write(wrong, to: "\(ScratchSink.parts)/1.1.part")
                let outcome = try await scratch.finalizer.finalize(scratch.order(1, path: "f", bytes, fenced: fenced))
                #expect(outcome.failure?.kind == .changed)
            }
            #expect(!scratch.exists("f"))
        }
    }

    @Test func chunksThatDoNotTileAreRefused() async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(10_000)
            let order = try scratch.order(1, path: "f", bytes)
            var gap = order
            gap.chunks.remove(at: 3)
            var overlap = order
            overlap.chunks.append(order.chunks[3])
            var short = order
            short.size = 9_000
            for wrong in [gap, overlap, short] {
                try scratch.makePart(1, bytes)
                #expect(try await scratch.finalizer.finalize(wrong).failure?.kind == .changed)
            }
            #expect(!scratch.exists("f"))
            #expect(try scratch.partNames() == [])
            try scratch.makePart(1, bytes)
            var shuffled = order
            shuffled.chunks.reverse()
            #expect(try await scratch.finalizer.finalize(shuffled).isInPlace)
        }
    }

    @Test func aWrongDigestIsToldWithWhatWasFound() async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(10_000)
            try scratch.makePart(1, bytes)
            let expected = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: [1]))
            let found = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: bytes))
            let outcome = try await scratch.finalizer.finalize(
                scratch.order(1, path: "f", bytes, expected: [expected])
            )
            #expect(outcome == .digestMismatch(expected: expected, found: found))
            #expect(outcome.failure?.kind == .digestMismatch)
            #expect(!scratch.exists("f"))
        }
    }

    @Test func aMissingPartIsLost() async throws {
        try await ScratchSink.with { scratch in
            for fenced in [false, true] {
                let order = try scratch.order(1, path: "d/f", [1, 2], fenced: fenced)
                let error = await #expect(throws: StorageError.self) { try await scratch.finalizer.finalize(order) }
                #expect(error?.failureKind == .changed)
            }
            #expect(!scratch.exists("d"))
        }
    }

    // MARK: - Stopping

    @Test(arguments: [false, true])
    func aLossOfTrustStopsTheFinalizer(fenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(1_000_000)
            try scratch.makePart(1, bytes)
            let order = try scratch.order(1, path: "f", bytes, chunkSize: 1_000_000, fenced: fenced)
            // However often the watch is asked before the file is put in place, a refusal at any of these times holds it back.
            for allowed in 0..<100 {
                let asked = Atomic<Int>(0)
                let watch = FinalizeWatch(mayContinue: { asked.add(1, ordering: .relaxed).oldValue < allowed })
                let outcome = try await scratch.finalizer.finalize(order, watch: watch)
                if outcome.isInPlace {
                    #expect(allowed > 3)
                    #expect(asked.load(ordering: .relaxed) == allowed, "the last question comes after the last byte")
                    #expect(try scratch.read("f") == bytes)
                    return
                }
                #expect(outcome == .stopped)
                #expect(!scratch.exists("f"))
                #expect(try scratch.partNames() == [order.part.string])
            }
            Issue.record("it never ended")
        }
    }

    /// Trust that ends with the last byte still holds the file back: the watch is asked again before the move.
    @Test(arguments: [false, true], [false, true])
    func aLossOfTrustAfterTheLastByteStopsTheFinalizer(fenced: Bool, isMoved: Bool) async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(1_000_000)
            try scratch.makePart(1, bytes)
            if isMoved { #expect(rename(scratch.path + "/\(ScratchSink.parts)/1.1.part", scratch.path + "/f") == 0) }
            let inode = scratch.inode("f")
            let verified = Atomic<Int64>(0)
            let watch = FinalizeWatch(
                mayContinue: { verified.load(ordering: .relaxed) < 1_000_000 },
                verified: { verified.store($0, ordering: .relaxed) }
            )
            let order = try scratch.order(1, path: "f", bytes, fenced: fenced)
            let outcome = try await scratch.finalizer.finalize(order, watch: watch)
            // A file that stands already, and stays as it is, needs no more trust.
            #expect(outcome == .stopped || isMoved && !fenced)
            #expect(scratch.inode("f") == inode)
            #expect(try scratch.partNames() == (isMoved ? [] : [order.part.string]))
        }
    }

    @Test func finalizerReportsItsProgress() async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(1_000_000)
            try scratch.makePart(1, bytes)
            let told = Mutex<[Int64]>([])
            let watch = FinalizeWatch(verified: { count in told.withLock { $0.append(count) } })
            _ = try await scratch.finalizer.finalize(
                scratch.order(1, path: "f", bytes, chunkSize: 400_000),
                watch: watch
            )
            let counts = told.withLock { $0 }
            #expect(counts == counts.sorted() && counts.last == 1_000_000 && counts.count > 3)
        }
    }

    // MARK: - Batches

    @Test func twoThousandSmallFilesAreFinalizedInBatches() async throws {
        try await ScratchSink.with { scratch in
            let content = (1...2_000).map { ScratchSink.content(64, seed: UInt64($0)) }
            for (index, bytes) in content.enumerated() { try scratch.makePart(Int64(index + 1), bytes) }
            for first in stride(from: 0, to: 2_000, by: 250) {
                let orders = try (first..<first + 250).map { index in
                    try scratch.order(Int64(index + 1), path: "d\(index % 7)/f\(index)", content[index])
                }
                for result in await scratch.finalizer.finalize(orders) { #expect(try result.get().isInPlace) }
            }
            for index in 0..<2_000 { #expect(try scratch.read("d\(index % 7)/f\(index)") == content[index]) }
            #expect(try scratch.partNames() == [])
        }
    }

    @Test func oneFailureDoesNotFailItsBatch() async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(2_000)
            for task in 1...8 as ClosedRange<Int64> where task != 5 { try scratch.makePart(task, bytes) }
            try scratch.write([1], to: "f2")
            var orders = try (1...8).map { try scratch.order($0, path: "f\($0)", bytes, fenced: $0 == 8) }
            orders[2].chunks[0] = FinishedChunk(range: orders[2].chunks[0].range, crc: 1)
            let results = await scratch.finalizer.finalize(orders)
            for index in [0, 3, 5, 6, 7] { #expect(try results[index].get().isInPlace) }
            #expect(throws: StorageError.self) { try results[1].get() }
            #expect(try results[2].get().failure?.kind == .changed)
            #expect(throws: StorageError.self) { try results[4].get() }
            #expect(await scratch.finalizer.finalize([]).isEmpty)
        }
    }
}
