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

    @Test func aPartThatBecameALinkIsNotFollowed() async throws {
        try await ScratchSink.with { scratch in
            try scratch.write([9], to: "victim")
            #expect(symlink(scratch.path + "/victim", scratch.path + "/\(ScratchSink.parts)/3.1.part") == 0)
            let error = #expect(throws: StorageError.self) { try scratch.sink.part(task: TaskID(3), version: 1) }
            #expect(error?.parksSink == false)
            #expect(try scratch.read("victim") == [9])
        }
    }

    /// Another program made it: the task begins its next version, the sink goes on, and purges leave the directory alone.
    @Test func aDirectoryInThePlaceOfAPartConcernsItsTaskAlone() async throws {
        try await ScratchSink.with { scratch in
            let place = scratch.path + "/\(ScratchSink.parts)/3.1.part"
            try #require(mkdir(place, 0o755) == 0)
            let error = #expect(throws: StorageError.self) { try scratch.sink.part(task: TaskID(3), version: 1) }
            #expect(error?.parksSink == false && error?.failureKind == .changed)
            let part = try scratch.sink.part(task: TaskID(3), version: 2)
            try part.write([1, 2, 3], at: 0)
            try part.synchronize()
            #expect(try scratch.sink.purge(task: TaskID(3)) == 1)
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

    /// The room is kept for the database, whose log grows while files come.
    @Test(.enabled(if: ScratchMount.isPermitted, "needs the right to mount a tmpfs"))
    func roomThatIsKeptForTheDatabaseIsNeitherReservedNorWritten() async throws {
        let tmpfs = try ScratchMount(size: "8m")
        defer { tmpfs.unmount() }
        try await ScratchSink.with(at: tmpfs.path) { _ in
            let sink = try SinkDirectory(
                name: "kept", path: tmpfs.path, session: ScratchSink.session(2),
                mark: SinkDirectory.mark(at: tmpfs.path), kept: 4 << 20)
            let bytes = [UInt8](repeating: 1, count: 1 << 20)
            func write(_ part: PartFile, _ mebibyte: Int64) throws { try part.write(bytes, at: mebibyte << 20) }
            let reserved = try sink.part(task: TaskID(1), version: 1)
            let other = try sink.part(task: TaskID(2), version: 1)
            try reserved.reserve(2 << 20)
            #expect(throws: StorageError.self) { try other.reserve(3 << 20) }
            try write(other, 0)
            let full = #expect(throws: StorageError.self) {
                for mebibyte in 1..<4 as Range<Int64> { try write(other, mebibyte) }
            }
            #expect(full?.failureKind == .storageFull && full?.detail.errno == ENOSPC)
            #expect(try sink.root.descriptor.space().free >= 3 << 20)
            // Writing into space that was reserved before takes no more room, also for a session that was begun since.
            try write(reserved, 0)
            try reserved.reserve(2 << 20)
            let later = try SinkDirectory(
                name: "kept", path: tmpfs.path, session: ScratchSink.session(3),
                mark: SinkDirectory.mark(at: tmpfs.path), kept: 4 << 20)
            let again = try later.part(task: TaskID(1), version: 1)
            try again.reserve(2 << 20)
            for mebibyte in 0..<2 as Range<Int64> { try write(again, mebibyte) }
            #expect(throws: StorageError.self) { try sink.probe() }
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

    /// If no other job can be writing it, a part stays in the session's own directory until it is made durable, or is deleted with the job.
    @Test func aPartOfOneJobAloneIsSharedBeforeItIsDurable() async throws {
        try await ScratchSink.with { scratch in
            let kept = try scratch.sink.part(task: TaskID(3), version: 1, isAlone: true)
            let dropped = try scratch.sink.part(task: TaskID(4), version: 1, isAlone: true)
            for part in [kept, dropped] { try part.write([1], at: 0) }
            #expect(try scratch.partNames() == [] && scratch.ownNames().count == 2)
            try await scratch.sync.makeDurable(kept)
            for part in [kept, dropped] { part.drop() }
            #expect(try scratch.partNames() == ["3.1.part"] && scratch.ownNames() == [])
            #expect(!kept.isUseless && dropped.isUseless)
            #expect(try scratch.sink.part(task: TaskID(3), version: 1, isAlone: true) === kept)
        }
    }

    @Test func aPartOfOneJobAloneIsSharedWithTheNextThatOpensIt() async throws {
        try await ScratchSink.with { scratch in
            let part = try scratch.sink.part(task: TaskID(3), version: 1, isAlone: true)
            #expect(try scratch.sink.part(task: TaskID(3), version: 1) === part)
            #expect(try scratch.partNames() == ["3.1.part"] && scratch.ownNames() == [])
        }
    }

    @Test func partOfAnEarlierTryIsResumed() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(3, [1])
            #expect(try scratch.sink.part(task: TaskID(3), version: 1, isAlone: true).stillNamed(size: 1))
            #expect(try scratch.partNames() == ["3.1.part"] && scratch.ownNames() == [])
        }
    }

    /// The session that made the part first may be writing it.
    @Test func aPartThatAnotherSessionHasMadeMeanwhileIsNotReplaced() async throws {
        try await ScratchSink.with { scratch in
            let part = try scratch.sink.part(task: TaskID(3), version: 1, isAlone: true)
            try scratch.write([7], to: "\(ScratchSink.parts)/3.1.part")
            let error = await #expect(throws: StorageError.self) { try await scratch.sync.makeDurable(part) }
            #expect(error?.failureKind == .changed && part.isUseless)
            #expect(try scratch.read("\(ScratchSink.parts)/3.1.part") == [7])
        }
    }

    /// A checkpoint may come at that moment.
    @Test func aPartIsNotSharedWhileItIsPutInPlace() async throws {
        try await ScratchSink.with { scratch in
            let part = try scratch.sink.part(task: TaskID(3), version: 1, isAlone: true)
            let name = try #require(part.take())
            #expect(throws: StorageError.self) { try part.share() }
            #expect(throws: StorageError.self) { try scratch.sink.part(task: TaskID(3), version: 1) }
            #expect(try scratch.ownNames() == [name] && !part.isUseless)
            part.giveBack()
            try part.share()
            #expect(try scratch.partNames() == ["3.1.part"])
        }
    }

    /// A worker that was stopped hears of the loss of its lease after its checkpoint. The part that it shares then belongs
    /// to a task that is over. It is deleted by the purge that follows the success of every task of which a lease was lost
    /// (adr/0017).
    @Test func aPartThatIsSharedAfterTheFileWasPutInPlaceIsLeftToThePurge() async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(5_000)
            let late = try ScratchSink.begin(ScratchSink.session(2), at: scratch.path)
            let part = try late.part(task: TaskID(3), version: 1, isAlone: true)
            try part.write(bytes, at: 0)
            try scratch.makePart(3, bytes)
            let order = try scratch.order(3, path: "f", bytes, fenced: true)
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            try await DurableSync(sink: late, pool: scratch.pool).makeDurable(part)
            #expect(!part.drop())
            #expect(try scratch.partNames() == ["3.1.part"])
            try scratch.sink.purge([PurgeOrder(task: TaskID(3), version: 1)])
            #expect(try scratch.partNames() == [] && late.own.names() == [])
            #expect(try scratch.read("f") == bytes)
        }
    }

    /// Nor can a checkpoint share the part later, when nothing would delete it any more.
    @Test(arguments: [nil, "held"])
    func aPartGoesWithTheFileThatIsTakenInItsPlace(held: String?) async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(5_000)
            try scratch.write(bytes, to: held ?? "f")
            let part = try scratch.sink.part(task: TaskID(3), version: 1, isAlone: true)
            try part.write(bytes, at: 0)
            let order = try scratch.order(3, path: "f", bytes, held: held.map { try DestinationPath(validating: $0) })
            #expect(try await scratch.finalizer.finalize(order).isInPlace)
            #expect(throws: StorageError.self) { try part.share() }
            #expect(try scratch.partNames() == [] && scratch.ownNames() == [])
            #expect(try scratch.read("f") == bytes)
        }
    }

    @Test func aFileThatOneRequestBringsIsPutInPlaceFromTheSessionsOwnDirectory() async throws {
        try await ScratchSink.with { scratch in
            let bytes = ScratchSink.content(5_000)
            let part = try scratch.sink.part(task: TaskID(3), version: 1, isAlone: true)
            try part.write(bytes, at: 0)
            // The part is not among the shared parts, and a wrong part is given back.
            let wrong = try scratch.order(3, path: "f", ScratchSink.content(5_000, seed: 2))
            #expect(try await scratch.finalizer.finalize(wrong).failure != nil)
            part.drop()
            let again = try scratch.sink.part(task: TaskID(3), version: 1, isAlone: true)
            try again.write(bytes, at: 0)
            #expect(try await scratch.finalizer.finalize(scratch.order(3, path: "f", bytes)).isInPlace)
            #expect(try scratch.read("f") == bytes)
            #expect(try scratch.partNames() == [] && scratch.ownNames() == [])
            // A job that opens the part now gets another one: no later write changes the file (I8).
            let late = try scratch.sink.part(task: TaskID(3), version: 1)
            try late.write([9], at: 0)
            #expect(late !== again)
            #expect(try scratch.read("f") == bytes)
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
