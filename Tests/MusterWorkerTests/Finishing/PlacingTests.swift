import Crypto
import Glibc
import MusterAPI
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

/// What a group's policy says about finished files reaches the storage, for small files as for large ones.
@Suite struct PlacingTests {
    private static let sizes = [10_000, Int(SinkStation.batchedBytes) + 1]

    /// A finalize lease over one chunk whose part is on storage.
    private func lease(_ bytes: [UInt8], on bench: JobBench, _ policy: TransferPolicy) throws -> LeaseDocument {
        let part = try #require(bench.station.equipment).directory.part(task: TaskID(1), version: 1)
        try part.write(bytes, at: 0)
        var lease = LeaseDocument.first("", path: "d/f.bin")
        lease.kind = .finalize
        lease.source = nil
        lease.representation = Representation(
            size: Int64(bytes.count),
            lastModified: "Tue, 14 Nov 2023 22:13:20 GMT"
        )
        lease.chunks = [FinishedChunk(range: ByteRange(first: Int64(bytes.count)), crc: crc(bytes))]
        lease.policy = policy
        return lease
    }

    private func with(
        on system: any FileSystem = Kernel(), _ body: (JobBench) async throws -> Void
    ) async throws {
        let bench = try await JobBench(on: system)
        do {
            try await body(bench)
        } catch {
            await bench.close()
            throw error
        }
        await bench.close()
    }

    @Test(arguments: sizes)
    func aFileThatHadToMoveTellsWhereItStands(size: Int) async throws {
        try await with { bench in
            let bytes = ScratchSink.content(size)
            var policy = TransferPolicy()
            policy.ifExists = .rename
            try bench.put("d/f.bin", [1])
            let ending = await bench.run(try lease(bytes, on: bench, policy))
            #expect(ending.finished?.path == "d/f (2).bin")
            #expect(try bench.file("d/f (2).bin") == bytes)
            #expect(try bench.file("d/f.bin") == [1])
        }
    }

    @Test(arguments: sizes, ExistingFileRule.allCases)
    func theRuleIsThePolicys(size: Int, rule: ExistingFileRule) async throws {
        try await with { bench in
            let bytes = ScratchSink.content(size)
            var policy = TransferPolicy()
            policy.ifExists = rule
            // The same content: only `fail` refuses it.
            try bench.put("d/f.bin", bytes)
            let ending = await bench.run(try lease(bytes, on: bench, policy))
            #expect((ending.finished == nil) == (rule == .fail))
            #expect((ending.failure?.kind == .storage) == (rule == .fail))
            // Other content: only `replace` puts the file in its place.
            try bench.put("d/f.bin", [1])
            _ = await bench.run(try lease(bytes, on: bench, policy))
            #expect(try bench.file("d/f.bin") == (rule == .replace ? bytes : [1]))
        }
    }

    @Test(arguments: sizes, [nil, false, true])
    func theTimeOfTheContentIsKeptIfAskedFor(size: Int, isKept: Bool?) async throws {
        try await with { bench in
            var policy = TransferPolicy()
            policy.keepModificationTime = isKept
            let ending = await bench.run(try lease(ScratchSink.content(size), on: bench, policy))
            #expect(ending.finished != nil)
            #expect(try (bench.modificationTime("d/f.bin") == 1_700_000_000) == (isKept == true))
        }
    }

    @Test func aTimeThatIsNoDateIsLeftOut() async throws {
        try await with { bench in
            var policy = TransferPolicy()
            policy.keepModificationTime = true
            var lease = try lease([1, 2, 3], on: bench, policy)
            lease.representation.lastModified = "yesterday"
            #expect(await bench.run(lease).finished != nil)
        }
    }

    @Test(arguments: sizes)
    func furtherDigestsAreRecorded(size: Int) async throws {
        try await with { bench in
            let bytes = ScratchSink.content(size)
            var policy = TransferPolicy()
            policy.computeDigests = [.sha256, .crc32c]
            let digests = await bench.run(try lease(bytes, on: bench, policy)).finished?.digests
            let sha256 = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: bytes))
            let crc32c = withUnsafeBytes(of: crc(bytes).bigEndian) { ContentDigest(algorithm: .crc32c, bytes: $0) }
            #expect(digests == ["sha256": sha256.hexadecimal, "crc32c": crc32c.hexadecimal])
        }
    }

    @Test(arguments: sizes)
    func nothingIsLeftOfContentWithAnotherDigest(size: Int) async throws {
        try await with { bench in
            var lease = try lease(ScratchSink.content(size), on: bench, TransferPolicy())
            lease.expectedDigests = [
                "md5": ContentDigest(algorithm: .md5, bytes: Insecure.MD5.hash(data: [])).hexadecimal
            ]
            #expect(await bench.run(lease).failure?.kind == .digestMismatch)
            #expect(throws: (any Error).self) { try bench.part(lease) }
            #expect(!bench.exists("d/f.bin"))
        }
    }

    /// What was moved may be on storage where it was before: the lease must not go back, not even one that was taken away (I13).
    @Test(arguments: sizes, [LeaseControl.Wish.work, .abort])
    func jobWhoseDirectoriesAreNotSyncedIsUnsettled(size: Int, wish: LeaseControl.Wish) async throws {
        let control = LeaseControl()
        let isBroken = Atomic(false)
        let kernel = FaultyKernel { (extent, _) throws(SystemError) in
            guard isBroken.load(ordering: .relaxed), extent != .data else { return }
            control.ask(wish)
            throw SystemError(EIO)
        }
        try await with(on: kernel) { bench in
            let lease = try lease(ScratchSink.content(size), on: bench, TransferPolicy())
            isBroken.store(true, ordering: .relaxed)
            let ending = await bench.run(lease, control: control)
            guard case .unsettled(let trouble) = ending else {
                Issue.record("\(ending)")
                return
            }
            #expect(trouble.kind == .storage)
        }
    }

    @Test func purgeThatIsNotSyncedIsUnsettled() async throws {
        let isBroken = Atomic(false)
        let kernel = FaultyKernel { (_, _) throws(SystemError) in
            if isBroken.load(ordering: .relaxed) { throw SystemError(EIO) }
        }
        try await with(on: kernel) { bench in
            var lease = try lease(ScratchSink.content(9), on: bench, TransferPolicy())
            lease.kind = .purge
            isBroken.store(true, ordering: .relaxed)
            guard case .unsettled = await bench.run(lease) else {
                Issue.record("the purge counts as done")
                return
            }
        }
    }
}
