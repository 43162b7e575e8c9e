import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// A sink without room (F9).
    @Suite struct FullDisk {
        /// Runs a program with a file system of 64 MiB mounted at the path in the first argument, in a mount namespace of its own: nothing
        /// is left when the program ends.
        private static let mounted = [
            "unshare", "--mount", "--propagation", "private", "sh", "-c",
            #"mount -t tmpfs -o size=64m tmpfs "$0" && exec "$@""#,
        ]

        /// Whether this machine permits the mount.
        @Sendable private static func mayMount() async -> Bool {
            guard let directory = try? TemporaryDirectory(),
                let process = try? await TestProcess.start(
                    "/usr/bin/env",
                    arguments: mounted + [directory.path.string, "true"]
                )
            else { return false }
            return (try? await process.waitForExit()) == .exited(0)
        }

        @Test(.enabled("mounting a file system needs root", mayMount))
        func sinkWithoutRoomIsParkedAndGoesOnByItself() async throws {
            let origin = try await ScriptedOrigin.start()
            let files = [
                origin.serveFile("large", size: .mebibytes(20), seed: 1), origin.serveFile("small", size: 100, seed: 2),
            ]
            try await Fleet.run { fleet in
                let disk = fleet.scratch.appending("disk")
                try FileManager.default.createDirectory(atPath: disk.string, withIntermediateDirectories: true)
                let worker = try await fleet.startWorker("a", sink: disk, prefix: Self.mounted + [disk.string])
                // The mount is visible to this worker alone, and through its entry in /proc.
                let inside = FilePath("/proc/\(worker.processID)/root\(disk)")
                let filler = inside.appending("filler")
                try SmallDisk.fill(filler)
                try await fleet.submit("g", [files[0]])

                try await worker.waitForLine(containing: "storageFull", in: .standardError)
                try await eventually("the news of the full sink") {
                    try await fleet.client().workers().items.first?.sinks.first?.parked == .storageFull
                }
                let workers = try await fleet.muster(["workers"])
                #expect(workers.standardOutput.contains("default (full)"))
                let status = try await fleet.muster(["status", "g"])
                #expect(status.standardOutput.contains("is in trouble"))
                #expect(try await fleet.client().task("large", of: "g").attempts == 0)

                try FileManager.default.removeItem(atPath: filler.string)
                try await fleet.waitForEnd(of: "g")
                #expect(try FileDigest.sha256(inside.appending("large")) == files[0].sha256)
                #expect(Fleet.parts(below: inside).isEmpty)
                try await fleet.submit("h", [files[1]])
                try await fleet.waitForEnd(of: "h")
                #expect(try FileDigest.sha256(inside.appending("small")) == files[1].sha256)
            }
        }

        @Test(.enabled("mounting a file system needs root", mayMount))
        func aFileWithoutRoomHoldsUpNoOther() async throws {
            let origin = try await ScriptedOrigin.start()
            let huge = origin.serveFile("huge", size: .mebibytes(20), seed: 1)
            let others = (0..<30).map { origin.serveFile("small\($0)", size: .kibibytes(100), seed: 2 + UInt64($0)) }
            try await Fleet.run { fleet in
                let disk = fleet.scratch.appending("disk")
                try FileManager.default.createDirectory(atPath: disk.string, withIntermediateDirectories: true)
                let worker = try await fleet.startWorker("a", sink: disk, prefix: Self.mounted + [disk.string])
                let inside = FilePath("/proc/\(worker.processID)/root\(disk)")
                let filler = inside.appending("filler")
                try Data(count: 50 << 20).write(to: URL(filePath: filler.string))
                try await fleet.submit("g", [huge] + others)
                try await eventually("all files that fit") {
                    try await fleet.client().group("g").tasks.succeeded == Int64(others.count)
                }
                let task = try await fleet.client().task("huge", of: "g")
                #expect(task.failure?.kind == .noSpace)
                #expect(task.failure?.detail.contains("MiB more, ") == true, "\(task.failure?.detail ?? "")")
                #expect(!worker.standardError.contains("takes no more work"))

                try FileManager.default.removeItem(atPath: filler.string)
                try await fleet.waitForEnd(of: "g")
                for file in [huge] + others {
                    #expect(try FileDigest.sha256(inside.appending(file.path)) == file.sha256)
                }
                #expect(Fleet.parts(below: inside).isEmpty)
            }
        }

        /// A process that may open only few files still puts files in place in many deep directories.
        @Test func fewDescriptorsAreEnough() async throws {
            let origin = try await ScriptedOrigin.start()
            let few =
                (0..<300).map {
                    origin.serveFile("d\($0 % 60)/b/c/d/e/f/g/h/\($0)", size: .kibibytes(10), seed: UInt64($0))
                }
                + (300..<320).map {
                    // More levels than the process may hold directories open.
                    let way = String(repeating: "a/", count: 300)
                    return origin.serveFile("d\($0)/\(way)\($0)", size: .kibibytes(10), seed: UInt64($0))
                }
            // Together they have far more directories than the process may hold open.
            let way = String(repeating: "a/", count: 37)
            let deep = (320..<440).map {
                origin.serveFile("d\($0)/\(way)\($0)", size: .kibibytes(10), seed: UInt64($0))
            }
            let files = few + deep
            try await Fleet.run { fleet in
                let worker = try await fleet.startWorker(
                    "a", slots: 64, prefix: ["prlimit", "--nofile=256:256"])
                try await fleet.submit("g", files)
                try await fleet.waitForEnd(of: "g")
                for file in files {
                    #expect(try FileDigest.sha256(fleet.sink.appending(file.path)) == file.sha256)
                }
                #expect(!worker.standardError.contains("takes no more work"))
                #expect(try await fleet.client().task(files[0].path, of: "g").attempts == 0)
            }
        }

        /// A missing sink is most likely a file system that isn't mounted: it isn't made, and that is reported at once.
        @Test func aMissingSinkIsSaidAtOnce() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("f", size: .kibibytes(10), seed: 1)
            try await Fleet.run { fleet in
                let missing = fleet.scratch.appending("mount")
                let worker = try await fleet.startWorker("a", sink: missing)
                let line = try await worker.waitForLine(containing: "takes no more work", in: .standardError)
                #expect(line.contains("\(missing) is not there: make the directory"), "\(line)")
                try await eventually("the news of the missing sink") {
                    try await fleet.client().workers().items.first?.sinks.first?.parked == .storage
                }
                #expect(!FileManager.default.fileExists(atPath: missing.string))
                try await fleet.submit("g", [file])
                try FileManager.default.createDirectory(atPath: missing.string, withIntermediateDirectories: true)
                try await fleet.waitForEnd(of: "g")
                #expect(try FileDigest.sha256(missing.appending("f")) == file.sha256)
            }
        }
    }
}
