import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// A sink without room (F9).
    @Suite struct FullDisk {
        /// Runs a program where a file system of 64 MiB is mounted at the path that is the first argument, in a mount
        /// namespace of its own: so nothing is left when that program ends.
        private static let mounted = [
            "unshare", "--mount", "--propagation", "private", "sh", "-c",
            #"mount -t tmpfs -o size=64m tmpfs "$0" && exec "$@""#,
        ]

        /// Whether this machine lets us mount.
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
                // What is mounted there is visible to this worker alone, and through it.
                let inside = FilePath("/proc/\(worker.processID)/root\(disk)")
                let filler = inside.appending("filler")
                try Data(count: 52 << 20).write(to: URL(filePath: filler.string))
                try await fleet.submit("g", [files[0]])

                try await worker.waitForLine(containing: "storageFull", in: .standardError)
                try await eventually("the news of the full sink") {
                    try await fleet.client().workers().items.first?.sinks.first?.parked == .storageFull
                }
                let workers = try await fleet.muster(["workers"])
                #expect(workers.standardOutput.contains("default (storageFull)"))
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
    }
}
