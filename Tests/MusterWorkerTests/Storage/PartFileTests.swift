import Glibc
import MusterCore
import Testing

@testable import MusterWorker

@Suite struct PartFileTests {
    @Test func twoWritersShareOnePart() async throws {
        try await ScratchSink.with { scratch in
            let first = try scratch.sink.part(task: TaskID(3), version: 1)
            let second = try scratch.sink.part(task: TaskID(3), version: 1)
            #expect(first === second)
            let bytes = ScratchSink.content(300_000)
            await withTaskGroup(of: Void.self) { group in
                for start in stride(from: 0, to: bytes.count, by: 10_000) {
                    group.addTask {
                        let piece = Array(bytes[start..<start + 10_000])
                        #expect(throws: Never.self) { try first.write(piece, at: Int64(start)) }
                    }
                }
            }
            #expect(try scratch.read("\(ScratchSink.parts)/3.1.part") == bytes)
            let whole = try first.checksum(of: ByteRange(first: 300_000))
            #expect(whole == CRC32C.extend(CRC32C.empty, bytes))
            #expect(try first.checksum(of: ByteRange(first: 300_000), while: { false }) == nil)
        }
    }

    @Test func theLastToDropAPartClosesIt() async throws {
        try await ScratchSink.with { scratch in
            weak var dropped: PartFile?
            do {
                let part = try scratch.sink.part(task: TaskID(3), version: 1)
                dropped = part
                #expect(scratch.sink.registry.open(PartName(TaskID(3), version: 1)) === part)
            }
            #expect(dropped == nil)
            #expect(scratch.sink.registry.open(PartName(TaskID(3), version: 1)) == nil)
        }
    }

    @Test func openingAVersionRemovesOlderOnes() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(3, version: 1, [1])
            try scratch.makePart(4, version: 1, [1])
            try scratch.makePart(3, version: 3, [1])
            #expect(try scratch.partNames() == ["3.3.part", "4.1.part"])
            // A late writer of an old version leaves the newer one alone.
            try scratch.makePart(3, version: 2, [1])
            #expect(try scratch.partNames() == ["3.2.part", "3.3.part", "4.1.part"])
        }
    }

    @Test func aDeletedPartIsNoticedWhenItIsMadeDurable() async throws {
        try await ScratchSink.with { scratch in
            let part = try scratch.sink.part(task: TaskID(3), version: 1)
            try part.write([1, 2, 3], at: 0)
            try await scratch.sync.makeDurable(part)
            #expect(unlink(scratch.path + "/\(ScratchSink.parts)/3.1.part") == 0)
            let error = await #expect(throws: StorageError.self) { try await scratch.sync.makeDurable(part) }
            #expect(error?.failureKind == .changed && error?.parksSink == false)
        }
    }

    @Test func aReplacedOrTruncatedPartIsNoticed() async throws {
        try await ScratchSink.with { scratch in
            let part = try scratch.sink.part(task: TaskID(3), version: 1)
            try part.write(ScratchSink.content(5_000), at: 0)
            #expect(truncate(scratch.path + "/\(ScratchSink.parts)/3.1.part", 4_999) == 0)
            #expect(throws: StorageError.self) { try part.synchronize() }
            #expect(throws: StorageError.self) { try part.checksum(of: ByteRange(first: 5_000)) }
            #expect(try part.stillNamed(size: 4_999))
            #expect(unlink(scratch.path + "/\(ScratchSink.parts)/3.1.part") == 0)
            try scratch.write(ScratchSink.content(5_000), to: "\(ScratchSink.parts)/3.1.part")
            #expect(try !part.stillNamed(size: 0))
        }
    }

    @Test func aPartThatSomebodyMadeALinkIsNotFollowed() async throws {
        try await ScratchSink.with { scratch in
            try scratch.write([9], to: "victim")
            #expect(symlink(scratch.path + "/victim", scratch.path + "/\(ScratchSink.parts)/3.1.part") == 0)
            let error = #expect(throws: StorageError.self) { try scratch.sink.part(task: TaskID(3), version: 1) }
            #expect(error?.parksSink == false)
            #expect(try scratch.read("victim") == [9])
        }
    }

    @Test func reservingKeepsTheSize() async throws {
        try await ScratchSink.with { scratch in
            let part = try scratch.sink.part(task: TaskID(3), version: 1)
            try part.reserve(1 << 20)
            try part.reserve(1 << 20)
            #expect(try scratch.read("\(ScratchSink.parts)/3.1.part") == [])
            let error = #expect(throws: StorageError.self) { try part.reserve(1 << 60) }
            #expect(error?.failureKind == .noSpace && error?.parksSink == false)
            #expect(error?.description.contains("needs \(ByteCount(bytes: (1 << 60) - (1 << 20))) more") == true)
        }
    }

    @Test(.enabled(if: ScratchMount.isPermitted, "needs the right to mount a tmpfs"))
    func aFullSinkIsReportedAsFull() async throws {
        let mount = try ScratchMount(size: "1m")
        try await ScratchSink.with(at: mount.path) { scratch in
            let part = try scratch.sink.part(task: TaskID(3), version: 1)
            let reserving = #expect(throws: StorageError.self) { try part.reserve(2 << 20) }
            #expect(reserving?.failureKind == .noSpace && reserving?.parksSink == false)
            let writing = #expect(throws: StorageError.self) {
                try part.write([UInt8](repeating: 1, count: 2 << 20), at: 0)
            }
            #expect(writing?.failureKind == .storageFull && writing?.detail.errno == ENOSPC)
            let again = #expect(throws: StorageError.self) { try part.reserve(2 << 20) }
            #expect(again?.failureKind == .storageFull && again?.parksSink == true)
            let probing = #expect(throws: StorageError.self) { try scratch.sink.probe() }
            #expect(probing?.failureKind == .storageFull)
            #expect(try scratch.partNames() == ["3.1.part"], "a probe leaves nothing behind")
            #expect(try scratch.sink.purge(task: TaskID(3)) == 1)
            mount.unmount()
        }
    }

    @Test func onlyAnEmptyPartIsDroppedAsOne() async throws {
        try await ScratchSink.with { scratch in
            let empty = try scratch.sink.part(task: TaskID(3), version: 1)
            let written = try scratch.sink.part(task: TaskID(4), version: 1)
            try written.write([1], at: 0)
            try scratch.sink.dropEmpty(empty)
            try scratch.sink.dropEmpty(written)
            #expect(try scratch.partNames() == ["4.1.part"])
            #expect(empty.isUseless && !written.isUseless)
        }
    }

    @Test func aSpoiledPartIsOpenedAnew() async throws {
        try await ScratchSink.with { scratch in
            let part = try scratch.sink.part(task: TaskID(3), version: 1)
            try part.write([1], at: 0)
            let reason = StorageError.unavailable(.init("a sync failed", errno: EIO))
            scratch.sink.registry.spoil(reason)
            #expect(throws: reason) { try part.write([1], at: 1) }
            await #expect(throws: reason) { try await scratch.sync.makeDurable(part) }
            let order = try scratch.order(3, path: "f", [1])
            await #expect(throws: reason) { try await scratch.finalizer.finalize(order) }
            let fresh = try scratch.sink.part(task: TaskID(3), version: 1)
            #expect(fresh !== part)
            try fresh.write([1], at: 0)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
        }
    }
}
