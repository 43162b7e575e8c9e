import Glibc
import MusterCore
import MusterSystem
import Testing

@testable import MusterWorker

@Suite struct SinkDirectoryTests {
    @Test func aMissingDirectoryIsNotMade() async throws {
        let base = try ScratchSink.makeDirectory()
        defer { ScratchSink.remove(base) }
        let missing = base + "/mount"
        for _ in 0..<2 {
            let error = #expect(throws: StorageError.self) {
                try ScratchSink.begin(ScratchSink.session(1), at: missing)
            }
            #expect(error?.parksSink == true && error?.description.contains(missing) == true)
            #expect(throws: StorageError.self) { try SinkDirectory.look(at: missing) }
        }
        #expect(mkdir(missing, 0o755) == 0)
        try await ScratchSink.with(at: missing) { scratch in
            #expect(scratch.exists(ScratchSink.parts))
            try scratch.sink.probe()
            #expect(try scratch.sink.freeBytes() > 0)
            #expect(try scratch.partNames() == [])
        }
    }

    @Test func aLinkInPlaceOfMustersOwnDirectoryIsRefused() throws {
        let base = try ScratchSink.makeDirectory()
        defer { ScratchSink.remove(base) }
        #expect(symlink("/tmp", base + "/.muster") == 0)
        #expect(throws: StorageError.self) { try ScratchSink.begin(ScratchSink.session(1), at: base) }
    }

    @Test func aReplacedDirectoryIsNoticed() async throws {
        try await ScratchSink.with { scratch in
            try scratch.sink.check()
            #expect(rename(scratch.path, scratch.path + ".away") == 0)
            #expect(throws: StorageError.self) { try scratch.sink.check() }
            #expect(mkdir(scratch.path, 0o755) == 0)
            let error = #expect(throws: StorageError.self) { try scratch.sink.check() }
            #expect(error?.parksSink == true)
            // An empty directory is not taken for the sink that came back.
            #expect(throws: StorageError.self) { try scratch.sink.probe() }
            #expect(rmdir(scratch.path) == 0)
            #expect(rename(scratch.path + ".away", scratch.path) == 0)
            try scratch.sink.probe()
        }
    }

    @Test func anotherDirectoryWithPartsIsTakenByAProbeAndOpenPartsAreNot() async throws {
        try await ScratchSink.with { scratch in
            let part = try scratch.sink.part(task: TaskID(1), version: 1)
            #expect(rename(scratch.path, scratch.path + ".away") == 0)
            #expect(mkdir(scratch.path, 0o755) == 0)
            // As if a disk had been away and came back with the directory: the session's own directory is there.
            _ = try ScratchSink.begin(ScratchSink.session(1), at: scratch.path)
            await #expect(throws: StorageError.self) { try await scratch.sync.makeDurable(part) }
            try scratch.sink.probe()
            try scratch.sink.check()
            #expect(part.isUseless)
            #expect(throws: StorageError.self) { try part.write([1], at: 0) }
            let fresh = try scratch.sink.part(task: TaskID(1), version: 1)
            try fresh.write([1, 2], at: 0)
            try await scratch.sync.makeDurable(fresh)
            #expect(try scratch.read("\(ScratchSink.parts)/1.1.part") == [1, 2])
            ScratchSink.remove(scratch.path + ".away")
        }
    }

    @Test(.enabled(if: ScratchMount.isPermitted, "needs the right to mount a tmpfs"))
    func anUnmountedSinkIsUnavailableUntilItIsMountedAgain() async throws {
        let mount = try ScratchMount(size: "1m")
        try await ScratchSink.with(at: mount.path) { scratch in
            mount.unmount()
            let error = #expect(throws: StorageError.self) { try scratch.sink.part(task: TaskID(1), version: 1) }
            #expect(error?.parksSink == true && error?.failureKind == .storage)
            let bare = #expect(throws: StorageError.self) { try scratch.sink.probe() }
            #expect(bare?.description.contains("\(mount.path) is there, but not what this worker keeps in it") == true)
            #expect(bare?.description.contains("as after an unmount") == true && bare?.parksSink == true)
            #expect(!scratch.exists(".muster"), "nothing is written below the bare mount point")
            try mount.mountAgain(size: "1m")
            #expect(throws: StorageError.self, "it is another file system than before") { try scratch.sink.probe() }
            _ = try ScratchSink.begin(ScratchSink.session(1), at: scratch.path)
            try scratch.sink.probe()
            try scratch.makePart(1, [1])
            mount.unmount()
        }
    }

    @Test(.enabled(if: ScratchMount.isPermitted, "needs the right to mount a tmpfs"))
    func aSessionBeginsAndDeletesWhereThereIsNoRoomForAFile() async throws {
        let tmpfs = try ScratchMount(size: "1m,nr_inodes=64")
        defer { tmpfs.unmount() }
        try await ScratchSink.with(at: tmpfs.path) { scratch in
            for task in 1...6 { try scratch.makePart(Int64(task), [1]) }
            for (session, tasks) in [(2, [1, 2, 3]), (3, [4, 5, 6])] as [(Int64, [Int64])] {
                var name = 0
                while (try? scratch.write([], to: "\(session).\(name)")) != nil { name += 1 }
                let late = try ScratchSink.begin(ScratchSink.session(session), at: tmpfs.path)
                let error = #expect(throws: StorageError.self) { try late.probe() }
                #expect(error?.failureKind == .storageFull)
                for task in tasks { #expect(try late.purge(task: TaskID(task)) == 1) }
                try late.probe()
                #expect(scratch.exists(ScratchSink.home + "/\(session)"))
            }
        }
    }

    @Test(.enabled(if: ScratchMount.isPermitted, "needs the right to mount a tmpfs"))
    func aSinkWithoutAByteIsFullForASessionThatBeginsThereAndDeletes() async throws {
        let tmpfs = try ScratchMount(size: "64k")
        defer { tmpfs.unmount() }
        try await ScratchSink.with(at: tmpfs.path) { scratch in
            // The rest of the space holds the mark of the directory.
            try scratch.makePart(1, [UInt8](repeating: 1, count: 60 << 10))
            let gate = TrustGate(clock: MonotonicClock.now)
            let station = try SinkStation(SinkConfiguration(name: "s", path: tmpfs.path), gate: gate)
            let mark = try SinkDirectory.mark(at: tmpfs.path)
            let found = await station.begin(try ScratchSink.session(2), mark: mark)
            guard case .trouble(let trouble) = found else { throw StorageError.unavailable(.init("\(found)")) }
            #expect(trouble.kind == .storageFull)
            #expect(try station.equipment?.directory.purge(task: TaskID(1)) == 1)
            guard case .well = await station.probe() else { throw StorageError.unavailable(.init("still full")) }
            await station.shutdown()
        }
    }

    @Test(.enabled(if: ScratchMount.isPermitted, "needs the right to mount a tmpfs"))
    func aReadOnlySinkIsUnavailable() async throws {
        let tmpfs = try ScratchMount(size: "1m")
        try await ScratchSink.with(at: tmpfs.path) { scratch in
            #expect(mount("tmpfs", tmpfs.path, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), nil) == 0)
            let error = #expect(throws: StorageError.self) { try scratch.sink.part(task: TaskID(1), version: 1) }
            #expect(error?.detail.errno == EROFS && error?.parksSink == true)
            #expect(throws: StorageError.self) { try scratch.sink.probe() }
            tmpfs.unmount()
        }
    }

    @Test func missingSinkIsReportedWithARemedy() async throws {
        try await ScratchSink.with { scratch in
            try #require(rename(scratch.path, scratch.path + ".away") == 0)
            let looks: [() throws -> Void] = [
                { try scratch.sink.check() }, { try scratch.sink.probe() },
                { _ = try SinkDirectory.look(at: scratch.path) },
            ]
            for (index, look) in looks.enumerated() {
                let error = #expect(throws: StorageError.self) { try look() }
                #expect(error?.parksSink == true && error?.failureKind == .storage)
                let text = error?.description ?? ""
                #expect(text.contains("\(scratch.path) is not there") && text.contains("mount that again"), "\(text)")
                #expect(!text.contains("No such file"))
                // A worker that looks for the first time can't know whether the directory ever existed.
                #expect(text.contains("make the directory") == (index == 2), "\(text)")
                #expect(text.contains("as after an unmount") == (index < 2), "\(text)")
            }
            try #require(rename(scratch.path + ".away", scratch.path) == 0)
        }
    }

    @Test func purgeDeletesWhatIsLeftOfTheTaskAndNothingElse() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(7, version: 1, [1])
            try scratch.makePart(70, version: 1, [1])
            let foreign = ["7.x", "07.1.part", "7.1.part.bak", "+7.1.part"]
            for name in foreign + ["7.2.part"] {
                try scratch.write([1], to: "\(ScratchSink.parts)/" + name)
            }
            #expect(try scratch.sink.purge(task: TaskID(7)) == 2)
            #expect(try scratch.partNames() == (foreign + ["70.1.part"]).sorted())
            #expect(try scratch.sink.purge(task: TaskID(7)) == 0)
        }
    }

    @Test func partsDirectoryThatWasDeletedIsMadeAgain() async throws {
        try await ScratchSink.with { scratch in
            #expect(rmdir(scratch.path + "/\(ScratchSink.parts)") == 0)
            try scratch.makePart(1, [1, 2, 3])
            #expect(try scratch.read("\(ScratchSink.parts)/1.1.part") == [1, 2, 3])
        }
    }

    @Test func errorsSayWhetherTheSinkOrTheTaskIsAtFault() {
        for number in [ENOSPC, EDQUOT] {
            #expect(SystemError(number).inSink("x").failureKind == .storageFull)
            #expect(SystemError(number).atDestination("x").parksSink)
        }
        for number in [EIO, EROFS, ESTALE, ENOENT, EBUSY, ETXTBSY] {
            #expect(SystemError(number).atDestination("x") == .denied(.init("x", errno: number)))
            #expect(SystemError(number).inSink("x") == .unavailable(.init("x", errno: number)))
        }
        for number in [EACCES, ENAMETOOLONG, ENOTDIR, EXDEV] {
            #expect(!SystemError(number).atDestination("x").parksSink)
            #expect(SystemError(number).inSink("x").parksSink)
        }
        for number in [EMFILE, ENFILE] {
            for error in [SystemError(number).inSink("x"), SystemError(number).atDestination("x")] {
                #expect(error.isPassing && !error.parksSink)
            }
        }
        for number in [EACCES, EPERM] {
            let error = SystemError(number).atDestination("making the directory d of d/f")
            #expect(error.failureKind == .noPermission && error.description.contains("the directory d of d/f"))
        }
        #expect(StorageError.partLost(.init("x")).failureKind == .changed)
        var inodes = SystemError(ENOSPC)
        inodes.isForInodes = true
        #expect(
            inodes.atDestination("making a").description
                == """
                the sink is full: making a: its file system has no inode left for another file: No space left on device
                """)
        #expect(SystemError(ENOSPC).inSink("writing a").description.hasSuffix("writing a: No space left on device"))
    }
}
