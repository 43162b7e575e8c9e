import Glibc
import MusterCore
import Testing

@testable import MusterWorker

@Suite struct SinkMarkTests {
    @Test func aDirectoryIsToldFromOthersByItsMark() async throws {
        try await ScratchSink.with { scratch in
            try await ScratchSink.with { other in
                let marks = await withTaskGroup(of: String?.self) { group in
                    for _ in 0..<8 { group.addTask { SinkDirectory.mark(at: scratch.path) } }
                    return await group.reduce(into: Set<String?>()) { $0.insert($1) }
                }
                let mark = try #require(marks.first ?? nil)
                #expect(marks.count == 1 && mark.utf8.count > 20)
                #expect(SinkDirectory.mark(at: other.path) != mark)
                #expect(SinkDirectory.mark(at: scratch.path) == mark)
                #expect(
                    try scratch.sink.root.directory(".muster").names().sorted() == [
                        ScratchSink.installation, "directory",
                    ])
            }
            #expect(SinkDirectory.mark(at: scratch.path + "/missing") == nil)
        }
    }

    @Test func whatASinkLacksAfterACrashIsToldFromABareMountPoint() async throws {
        try await ScratchSink.with { scratch in
            let mark = try #require(SinkDirectory.mark(at: scratch.path))
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
            let mark = try #require(SinkDirectory.mark(at: scratch.path))
            guard case .trouble = await station.begin(try ScratchSink.session(2), mark: mark) else {
                throw StorageError.unavailable(.init("the session began in another directory"))
            }
            return mark
        }
        // As the file system is mounted that was missing.
        let fresh = try #require(SinkDirectory.mark(at: bare))
        #expect(fresh != mark && station.equipment == nil)
        guard case .well = await station.begin(try ScratchSink.session(3), mark: fresh) else {
            throw StorageError.unavailable(.init("the session did not begin in the sink"))
        }
        await station.shutdown()
    }

    @Test func aSinkThatComesLateAndThatNobodyKnowsTakesASessionThatNamesIt() async throws {
        let path = try ScratchSink.makeDirectory()
        defer { ScratchSink.remove(path) }
        let late = path + "/late"
        let station = try SinkStation(
            SinkConfiguration(name: "s", path: late), gate: TrustGate(clock: MonotonicClock.now))
        guard case .trouble = await station.begin(try ScratchSink.session(1), mark: nil) else {
            throw StorageError.unavailable(.init("it is not there"))
        }
        #expect(mkdir(late, 0o755) == 0)
        guard case .sessionEnded = await station.probe() else {
            throw StorageError.unavailable(.init("it goes on in a directory that nobody knows"))
        }
        #expect(station.mark == SinkDirectory.mark(at: late) && station.equipment == nil)
        await station.shutdown()
    }
}
