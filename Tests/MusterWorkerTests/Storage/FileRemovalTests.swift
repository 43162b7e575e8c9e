import Glibc
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterWorker

/// Files are deleted by name, which may lead to another file from one moment to the next (adr/0014).
@Suite struct FileRemovalTests {
    private static let bytes = ScratchSink.content(2_500)

    private func order(_ task: Int64, path: String = "a", size: Int64? = nil) throws -> PurgeOrder {
        let owner = FileMark.Owner(installation: ScratchSink.installation, task: TaskID(task))
        let path = try DestinationPath(validating: path)
        return PurgeOrder(task: TaskID(task), version: 1, file: .init(path: path, size: size, owner: owner))
    }

    /// Moves `a` to where a purge of task 1 sets it aside before its second look, as if the purge had died there.
    private func setAside(_ scratch: ScratchSink) throws {
        try scratch.sink.root.move("a", to: "1.1.removed", in: try scratch.sink.partsDirectory(), .exclusive)
    }

    @Test func fileSetAsideByADeadPurgeIsDeletedByTheNext() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
            try setAside(scratch)
            try scratch.sink.purge([try order(1)])
            #expect(try scratch.fileNames() == [] && scratch.partNames() == [])
        }
    }

    @Test func fileSetAsideByADeadPurgeIsReportedAsDeletedWhateverStandsThereNow() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
            try setAside(scratch)
            try scratch.write([1], to: "a")
            let results = try scratch.sink.purge([try order(1, size: Int64(Self.bytes.count))])
            #expect(try results.first?.get() == .deleted)
            #expect(try scratch.read("a") == [1])
        }
    }

    @Test func fileOfAnotherTaskComesBack() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(2, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(2, path: "a", Self.bytes)).isInPlace)
            let inode = scratch.inode("a")
            try setAside(scratch)
            try scratch.sink.purge([try order(1)])
            #expect(scratch.inode("a") == inode)
            #expect(try scratch.partNames() == [])
        }
    }

    @Test func fileWithoutAPlaceToComeBackToIsKept() async throws {
        try await ScratchSink.with { scratch in
            try scratch.write(Self.bytes, to: "a")
            try setAside(scratch)
            try scratch.write([1], to: "a")
            try scratch.sink.purge([try order(1)])
            #expect(try scratch.read("a") == [1])
            #expect(try scratch.partNames() == ["1.1.removed"])
        }
    }

    /// Only the worker sees that the file was replaced, so its report and its log say so.
    @Test func replacedFileStaysAndIsReported() async throws {
        try await ScratchSink.with { scratch in
            let order = try order(1, size: Int64(Self.bytes.count))
            func purge() throws -> RemovedFile? { try #require(try scratch.sink.purge([order]).first).get() }
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
            #expect(try purge() == .deleted && !scratch.exists("a"))
            #expect(try purge() == .missing)
            try scratch.write([1], to: "a")
            #expect(try purge() == .changed && scratch.read("a") == [1])
        }
    }

    /// A task adopts the file that a purge has set aside, finds it gone from its path, and puts its own there.
    @Test func fileThatItsOwnerHasReplacedIsDeleted() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(2, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(2, path: "a", Self.bytes)).isInPlace)
            try setAside(scratch)
            try scratch.makePart(2, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(2, path: "a", Self.bytes)).isInPlace)
            let inode = scratch.inode("a")
            try scratch.sink.purge([try order(1)])
            #expect(scratch.inode("a") == inode)
            #expect(try scratch.partNames() == [])
        }
    }

    /// A task adopts the file of a cancelled task while a purge deletes that file: a file stands in the end, whichever is faster.
    @Test func adoptingAndDeletingDoNotLoseTheFile() async throws {
        try await ScratchSink.with { scratch in
            for _ in 0..<150 {
                try scratch.makePart(1, Self.bytes)
                #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
                try scratch.makePart(2, Self.bytes)
                let next = try scratch.order(2, path: "a", Self.bytes)
                let purge = try order(1)
                async let placed = scratch.finalizer.finalize(next)
                async let purged: Void = scratch.pool.run { () throws(StorageError) in try scratch.sink.purge([purge]) }
                _ = try await (placed, purged)
                #expect(try await placed.isInPlace)
                #expect(try scratch.read("a") == Self.bytes)
                #expect(try scratch.partNames() == [])
                _ = try scratch.sink.root.remove("a")
            }
        }
    }

    /// A system error on one file says nothing of the sink, nor of the next file.
    @Test(.enabled(if: ScratchMount.isPermitted))
    func aFileThatIsBusyFailsAlone() async throws {
        try await ScratchSink.with { scratch in
            for (task, path) in [(Int64(1), "a"), (2, "b")] {
                try scratch.makePart(task, Self.bytes)
                let order = try scratch.order(task, path: path, Self.bytes)
                #expect(try await scratch.finalizer.finalize(order).isInPlace)
            }
            let file = scratch.path + "/a"
            let size = Int64(Self.bytes.count)
            let orders = [try order(1, size: size), try order(2, path: "b", size: size)]
            guard mount(file, file, nil, UInt(MS_BIND), nil) == 0 else { throw SystemError.last }
            do {
                defer { umount2(file, Int32(MNT_DETACH)) }
                let results = try scratch.sink.purge(orders)
                let error = #expect(throws: StorageError.self) { try results[0].get() }
                #expect(error?.detail.errno == EBUSY && error?.parksSink == false)
                #expect(error?.description == "deleting a: Device or resource busy")
                #expect(try results[1].get() == .deleted)
            }
            #expect(try scratch.sink.purge(orders).map { try $0.get() } == [.deleted, .missing])
        }
    }

    /// It is the same file, and the operator may change the mount.
    @Test(.enabled(if: ScratchMount.isPermitted), arguments: [true, false])
    func aFileInAnotherMountIsNamedWithTheReason(isReadOnly: Bool) async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "d/a", Self.bytes)).isInPlace)
            let directory = scratch.path + "/d"
            let order = try order(1, path: "d/a", size: Int64(Self.bytes.count))
            guard mount(directory, directory, nil, UInt(MS_BIND), nil) == 0 else { throw SystemError.last }
            do {
                defer { umount2(directory, Int32(MNT_DETACH)) }
                let flags = UInt(MS_BIND) | UInt(MS_REMOUNT) | UInt(MS_RDONLY)
                if isReadOnly { try #require(mount(nil, directory, nil, flags, nil) == 0) }
                let result = try #require(try scratch.sink.purge([order]).first)
                let error = #expect(throws: StorageError.self) { try result.get() }
                #expect(error?.parksSink == false && error?.detail.errno == (isReadOnly ? EROFS : EXDEV))
                #expect(error?.description.contains(isReadOnly ? "Read-only file system" : "another mount") == true)
            }
            #expect(try scratch.sink.purge([order]).first?.get() == .deleted)
        }
    }

    @Test func pathBehindAPlainFileIsMissingAndOneBehindALinkIsNot() async throws {
        try await ScratchSink.with { scratch in
            try scratch.write([1], to: "d")
            let order = try order(1, path: "d/a", size: 1)
            #expect(try scratch.sink.purge([order]).first?.get() == .missing)
            try #require(unlink(scratch.path + "/d") == 0 && symlink("/", scratch.path + "/d") == 0)
            #expect(try scratch.sink.purge([order]).first?.get() == .changed)
        }
    }

    /// Without attributes, no file is deleted that may belong to another task or process.
    @Test(.enabled(if: ScratchMount.isPermitted))
    func whereNoFileCanBeMarkedOnlyTheSizeTells() async throws {
        let path = try ScratchSink.makeDirectory()
        guard mount("ramfs", path, "ramfs", 0, nil) == 0 else { throw SystemError.last }
        defer {
            umount2(path, Int32(MNT_DETACH))
            rmdir(path)
        }
        try await ScratchSink.with(at: path) { scratch in
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
            try scratch.sink.purge([try order(1)])
            #expect(scratch.exists("a"))
            try scratch.sink.purge([try order(1, size: Int64(Self.bytes.count))])
            #expect(!scratch.exists("a"))
        }
    }

    /// A call of the purge fails, whichever: another session's purge finds what is left. If it could not be given back at once, the session's next probe
    /// does that (I13).
    @Test func purgeOfAnotherSessionFinishesOneThatFailed() async throws {
        var isOver = false
        for step in 0..<60 where !isOver {
            try await ScratchSink.with { scratch in
                try scratch.makePart(1, Self.bytes)
                #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "a", Self.bytes)).isInPlace)
                let kernel = FaultyKernel(.failure(EIO), at: step)
                guard let sink = try? scratch.begin(2, on: kernel) else { return }
                let order = try order(1, size: Int64(Self.bytes.count))
                let isDone = (try? sink.purge([order]).first?.get()) != nil
                if (try? sink.probe()) == nil { try sink.probe() }
                isOver = !kernel.hasCome
                let again = try scratch.sink.purge([order]).first?.get()
                #expect(again == .deleted || isDone || !scratch.exists("a"), "step \(step)")
                #expect(try scratch.fileNames() == [] && scratch.partNames() == [], "step \(step)")
                #expect(try sink.own.names() == [], "step \(step)")
            }
        }
        #expect(isOver)
    }
}
