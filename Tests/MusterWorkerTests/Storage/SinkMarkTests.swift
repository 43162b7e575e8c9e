import Glibc
import MusterCore
import MusterSystem
import Testing

@testable import MusterWorker

@Suite struct SinkMarkTests {
    @Test func aDirectoryIsToldFromOthersByItsMark() async throws {
        try await ScratchSink.with { scratch in
            try await ScratchSink.with { other in
                let marks = await withTaskGroup(of: String?.self) { group in
                    for _ in 0..<8 { group.addTask { try? SinkDirectory.mark(at: scratch.path) } }
                    return await group.reduce(into: Set<String?>()) { $0.insert($1) }
                }
                let mark = try #require(marks.first ?? nil)
                #expect(marks.count == 1 && mark.utf8.count > 20)
                #expect(try SinkDirectory.mark(at: other.path) != mark)
                #expect(try SinkDirectory.mark(at: scratch.path) == mark)
                #expect(
                    try scratch.sink.root.directory(".muster").names().sorted() == [
                        ScratchSink.installation, "directory",
                    ])
            }
            #expect((try? SinkDirectory.mark(at: scratch.path + "/missing")) == nil)
        }
    }

    @Test func sinkAfterACrashIsToldFromABareMountPoint() async throws {
        try await ScratchSink.with { scratch in
            let mark = try #require(try SinkDirectory.mark(at: scratch.path))
            #expect(!scratch.sink.lacksSession(mark: mark))
            #expect(rmdir(scratch.path + "/" + ScratchSink.own) == 0)
            #expect(scratch.sink.lacksSession(mark: mark))
            #expect(!scratch.sink.lacksSession(mark: "another"))
            #expect(unlink(scratch.path + "/.muster/directory") == 0)
            #expect(!scratch.sink.lacksSession(mark: mark))
        }
    }

    @Test func aSessionBeginsInNoOtherDirectoryThanTheSinkIsAndLeavesNothingThere() async throws {
        let bare = try ScratchSink.makeDirectory()
        defer { ScratchSink.remove(bare) }
        let error = #expect(throws: StorageError.self) {
            try SinkDirectory(name: "s", path: bare, session: ScratchSink.session(1), mark: "another")
        }
        #expect(error?.parksSink == true && error?.description.contains("--new-directory s") == true)
        #expect(access(bare + "/.muster", F_OK) != 0)

        let station = try SinkStation(
            SinkConfiguration(name: "s", path: bare), gate: TrustGate(clock: MonotonicClock.now))
        let mark = try await ScratchSink.with { scratch in
            let mark = try #require(try SinkDirectory.mark(at: scratch.path))
            guard case .trouble = await station.begin(try ScratchSink.session(2), mark: mark) else {
                throw StorageError.unavailable(.init("the session began in another directory"))
            }
            return mark
        }
        // As when the missing file system is mounted.
        let fresh = try #require(try SinkDirectory.mark(at: bare))
        #expect(fresh != mark && station.equipment == nil)
        guard case .well = await station.begin(try ScratchSink.session(3), mark: fresh) else {
            throw StorageError.unavailable(.init("the session did not begin in the sink"))
        }
        await station.shutdown()
    }

    @Test(arguments: ["", "\n", "no mark", String(repeating: "\0", count: 32), "a-b\nc", nil])
    func invalidMarkIsReplacedOnceTheCoordinatorHasTakenTheDirectory(_ text: String?) async throws {
        try await ScratchSink.with { scratch in
            let mark = try #require(try SinkDirectory.mark(at: scratch.path))
            let file = scratch.path + "/.muster/directory"
            try #require(unlink(file) == 0)
            if let text {
                try scratch.write(Array(text.utf8), to: ".muster/directory")
            } else {
                try #require(mkdir(file, 0o755) == 0)
            }
            let gate = TrustGate(clock: MonotonicClock.now)
            let station = try SinkStation(SinkConfiguration(name: "s", path: scratch.path), gate: gate)
            guard case .well = await station.probe(), station.mark == nil,
                case .trouble(let trouble) = await station.begin(try ScratchSink.session(2), mark: mark)
            else { throw StorageError.unavailable(.init("anything passes for a mark")) }
            #expect(trouble.detail.contains("\(file) does not say"), "\(trouble.detail)")
            #expect(trouble.detail.contains("have it say \(mark)") && trouble.detail.contains("--new-directory s"))
            await station.shutdown()

            let told = try SinkStation(
                SinkConfiguration(name: "s", path: scratch.path, identity: .replaced), gate: gate)
            guard case .well = await told.probe(), let fresh = told.mark else {
                throw StorageError.unavailable(.init("it has no mark"))
            }
            #expect(try fresh != mark && SinkDirectory.knownMark(at: scratch.path) == nil, "not agreed on yet")
            guard case .well = await told.begin(try ScratchSink.session(3), mark: fresh) else {
                throw StorageError.unavailable(.init("it is not replaced"))
            }
            #expect(try SinkDirectory.knownMark(at: scratch.path) == fresh)
            await told.shutdown()
        }
    }

    @Test func anEditorMayEndAMarkWithALine() async throws {
        try await ScratchSink.with { scratch in
            let mark = try #require(try SinkDirectory.mark(at: scratch.path))
            try #require(unlink(scratch.path + "/.muster/directory") == 0)
            try scratch.write(Array("\(mark)\n".utf8), to: ".muster/directory")
            #expect(try SinkDirectory.mark(at: scratch.path) == mark)
        }
    }

    @Test func aDirectoryThatHoldsTheDatabaseNeedsNoMark() async throws {
        try await ScratchSink.with { scratch in
            _ = unlink(scratch.path + "/.muster/directory")
            let station = try SinkStation(
                SinkConfiguration(name: "s", path: scratch.path, identity: .holdsDatabase),
                gate: TrustGate(clock: MonotonicClock.now))
            let session = try ScratchSink.session(2)
            guard case .well = await station.probe(), case .well = await station.begin(session, mark: nil) else {
                throw StorageError.unavailable(.init("it is compared with nothing"))
            }
            #expect(station.mark == nil && !scratch.exists(".muster/directory"))
            await station.shutdown()
        }
    }

    @Test(.enabled(if: ScratchMount.isPermitted, "needs the right to mount a tmpfs"))
    func aSinkWithoutRoomForItsMarkIsSaidToBeFull() async throws {
        let tmpfs = try ScratchMount(size: "4k")
        defer { tmpfs.unmount() }
        #expect(mkdir(tmpfs.path + "/.muster", 0o755) == 0)
        let filler = open(tmpfs.path + "/filler", O_WRONLY | O_CREAT, 0o644)
        defer { close(filler) }
        let page = [UInt8](repeating: 1, count: 4_096)
        #expect(page.withUnsafeBytes { write(filler, $0.baseAddress, $0.count) } == 4_096)
        let station = try SinkStation(
            SinkConfiguration(name: "s", path: tmpfs.path), gate: TrustGate(clock: MonotonicClock.now))
        guard case .trouble(let trouble) = await station.probe() else {
            throw StorageError.unavailable(.init("its mark found room"))
        }
        #expect(trouble.kind == .storageFull, "\(trouble)")
        await station.shutdown()
    }
}
