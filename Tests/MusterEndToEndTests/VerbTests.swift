import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// What an operator does to a group while it runs.
    @Suite struct Verbs {
        private static let held = Int64.kibibytes(512)
        private static let size = Int64.mebibytes(3)

        /// Makes a group of one file that has arrived and another that is held half-way.
        private func half(_ origin: ScriptedOrigin, _ fleet: Fleet) async throws -> [WantedFile] {
            let files = [
                origin.serveFile("small", size: 5_000, seed: 7), origin.serveFile("large", size: Self.size, seed: 8),
            ]
            origin.hold("/large", afterBytes: Self.held)
            try await fleet.submit("g", files)
            try await origin.waitForRequests("/large", count: 3)
            try await fleet.waitUntilDurable(3 * Self.held, of: "large", in: "g")
            try await eventually("the small file") {
                try await fleet.client().task("small", of: "g").state == .succeeded
            }
            return files
        }

        @Test func pausedBytesAreKeptAndResumed() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.knowOrigins()
                try await fleet.startWorker("a")
                let files = try await half(origin, fleet)
                _ = try await fleet.muster(["pause", "g"])
                try await origin.waitForOpenConnections(atMost: 1)
                try await eventually("the pause") { try await fleet.client().task("large", of: "g").state == .paused }
                let task = try await fleet.client().task("large", of: "g")
                #expect(task.bytes.done == 3 * Self.held)
                #expect(!fleet.parts().isEmpty)
                // A pause holds the group open, and outlives the worker.
                #expect(try await fleet.client().group("g").state == .sealed)
                let before = origin.requests(for: "/large")
                for number in before.map(\.number) {
                    try await origin.waitForRequest { $0.number == number && $0.isFinished }
                }

                origin.release("/large")
                try await fleet.startWorker("b")
                _ = try await fleet.muster(["resume", "g"])
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", files)
                #expect(
                    origin.requests(for: "/large").dropFirst(3).allSatisfy { $0.start % .mebibytes(1) == Self.held }
                )
                #expect(origin.bytesSent("/large") == Self.size)
            }
        }

        @Test func cancelLeavesNothingOfWhatIsUnfinished() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.knowOrigins()
                try await fleet.startWorker("a")
                let files = try await half(origin, fleet)
                _ = try await fleet.muster(["cancel", "g"])
                _ = try await fleet.muster(["wait", "g"], expecting: 5)
                for number in origin.requests(for: "/large").map(\.number) {
                    try await origin.waitForRequest { $0.number == number && $0.isFinished }
                }
                try await fleet.waitForNoParts()
                #expect(!FileManager.default.fileExists(atPath: fleet.sink.appending("large").string))
                try await fleet.check("g", [files[0]], endings: [.cancelled])
                origin.release("/large")
                #expect(origin.requests(for: "/large").count == 3)
            }
        }

        @Test func removalTakesTheFilesAlongIfAsked() async throws {
            let origin = try await ScriptedOrigin.start()
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                _ = try await half(origin, fleet)
                _ = try await fleet.muster(["remove", "g", "--files", "delete"])
                _ = try await fleet.muster(["status", "g"], expecting: 6)
                try await fleet.waitForNoParts()
                try await eventually("the end of the files") {
                    !["small", "large"].contains {
                        FileManager.default.fileExists(atPath: fleet.sink.appending($0).string)
                    }
                }
                // The name is free again, and so are the paths.
                origin.release("/large")
                let files = [
                    origin.serveFile("small", size: 100, seed: 20), origin.serveFile("large", size: 200, seed: 21),
                ]
                try await fleet.submit("g", files)
                try await fleet.waitForEnd(of: "g")
                for file in files {
                    #expect(try FileDigest.sha256(fleet.sink.appending(file.path)) == file.sha256)
                }
            }
        }
    }
}
