import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Which directory a sink is (adr/0034).
    @Suite struct Sinks {
        /// Runs a test with two files, a directory into which a worker that has ended has put the first of them, and another, empty directory.
        private static func withFinishedGroup(
            _ body: (Fleet, ScriptedOrigin, [WantedFile], _ disk: FilePath, _ other: FilePath) async throws -> Void
        ) async throws {
            let origin = try await ScriptedOrigin.start()
            let files = origin.serveFiles("f", sizes: [.kibibytes(10), .kibibytes(20)])
            try await Fleet.run { fleet in
                let (disk, other) = (fleet.scratch.appending("disk"), fleet.scratch.appending("mount"))
                for path in [disk, other] {
                    try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
                }
                let worker = try await fleet.startWorker("a", sink: disk)
                try await fleet.submit("g", [files[0]])
                try await fleet.waitForEnd(of: "g")
                try worker.signal(SIGTERM)
                _ = try await worker.waitForExit()
                try await body(fleet, origin, files, disk, other)
            }
        }

        private static func names(_ path: FilePath) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: path.string).sorted()
        }

        /// A worker may start on a bare mount point whose file system is mounted only later (I8).
        @Test func aWorkerThatStartsBeforeItsFileSystemIsMountedWritesNothingAndGoesOnWhenItIs() async throws {
            try await Self.withFinishedGroup { fleet, _, files, disk, mountPoint in
                let worker = try await fleet.startWorker("b", sink: mountPoint)
                let line = try await worker.waitForLine(containing: "is not the directory", in: .standardError)
                #expect(line.contains("\(mountPoint)") && line.contains("--new-directory default"), "\(line)")
                try await eventually("the news of the sink") {
                    try await fleet.client().workers().items.first?.sinks.first?.parked == .storage
                }
                try await fleet.submit("h", [files[1]])
                let status = try await fleet.muster(["status", "h"])
                #expect(status.standardOutput.contains("is in trouble"), "\(status.standardOutput)")
                #expect(try Self.names(mountPoint) == [".muster"])
                #expect(try Self.names(mountPoint.appending(".muster")) == ["directory"])

                try FileManager.default.removeItem(atPath: mountPoint.string)
                try FileManager.default.moveItem(atPath: disk.string, toPath: mountPoint.string)
                try await fleet.waitForEnd(of: "h")
                for file in files {
                    #expect(try FileDigest.sha256(mountPoint.appending(file.path)) == file.sha256)
                }
            }
        }

        @Test func aDirectoryTakesThePlaceOfAnotherOneWhenTheOperatorSaysSo() async throws {
            try await Self.withFinishedGroup { fleet, origin, files, disk, fresh in
                let new = ["--new-directory", "default"]
                let old = try await fleet.startWorker("b", sink: disk)
                let early = try await TestProcess.start(
                    try TestProcess.musterExecutable(),
                    arguments: ["work", "--server", fleet.servers, "--name", "c", "--sink", "default=\(fresh)"] + new)
                let line = try await early.waitForLine(containing: "another directory here", in: .standardError)
                #expect(line.contains(#"at the worker \"b\""#) || line.contains(#"at the worker "b""#), "\(line)")
                try await fleet.submit("h", [files[1]])
                try await fleet.waitForEnd(of: "h")
                #expect(try FileDigest.sha256(disk.appending(files[1].path)) == files[1].sha256)

                try old.signal(SIGTERM)
                _ = try await old.waitForExit()
                try await early.waitForLine(containing: "Session opened", in: .standardError)
                let last = origin.serveFile("last", size: .kibibytes(10), seed: 3)
                try await fleet.submit("i", [last])
                try await fleet.waitForEnd(of: "i")
                #expect(try FileDigest.sha256(fresh.appending("last")) == last.sha256)
                try early.signal(SIGTERM)
                _ = try await early.waitForExit()

                let late = try await fleet.startWorker("d", sink: disk)
                try await late.waitForLine(containing: "is not the directory", in: .standardError)
            }
        }

        @Test func aRefusedDirectoryLeavesTheOtherSinksOfItsWorkerWorking() async throws {
            try await Self.withFinishedGroup { fleet, origin, files, disk, taken in
                let fresh = fleet.scratch.appending("fresh")
                try FileManager.default.createDirectory(atPath: fresh.string, withIntermediateDirectories: true)
                let old = try await TestProcess.start(
                    try TestProcess.musterExecutable(),
                    arguments: ["work", "--server", fleet.servers, "--name", "b", "--sink", "mem=\(taken)"])
                try await old.waitForLine(containing: "Session opened", in: .standardError)
                let worker = try await fleet.startWorker(
                    "c", sink: disk, options: ["--sink", "mem=\(fresh)", "--new-directory", "mem"])
                try await worker.waitForLine(containing: "another directory here", in: .standardError)
                try await fleet.submit("h", [files[1]])
                try await fleet.waitForEnd(of: "h")
                let shown = try await fleet.client().workers().items.first { $0.name == "c" }
                let mem = shown?.sinks.first { $0.name == "mem" }
                #expect(mem?.detail?.contains("another directory here") == true, "\(shown as Any)")

                try old.signal(SIGTERM)
                _ = try await old.waitForExit()
                try await worker.waitForLine(containing: "A sink works again", in: .standardError)
                let last = origin.serveFile("last", size: .kibibytes(10), seed: 3)
                _ = try await fleet.client().createGroup(
                    GroupRequest(name: "i", sink: "mem", sealed: true, tasks: [last.task]))
                try await fleet.waitForEnd(of: "i")
                #expect(try FileDigest.sha256(fresh.appending("last")) == last.sha256)
            }
        }
    }
}
