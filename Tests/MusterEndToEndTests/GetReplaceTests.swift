import Foundation
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// `get --if-exists replace` of the same list again and again, as a mirror that a timer renews.
    @Suite struct GetReplace {
        private struct Scene {
            let origin: ScriptedOrigin
            let directory: TemporaryDirectory

            init() async throws {
                origin = try await ScriptedOrigin.start()
                directory = try TemporaryDirectory()
            }

            func start(_ files: [WantedFile]) async throws -> TestProcess {
                try await TestProcess.muster(
                    ["get", "-d", directory.path.string, "--if-exists", "replace"] + files.map(\.url))
            }

            /// Runs `get`; returns its output.
            func get(_ files: [WantedFile], code: Int32 = 0) async throws -> String {
                let get = try await start(files)
                let said = { get.standardOutput + get.standardError }
                #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(code), "\(said())")
                return said()
            }

            func has(_ file: WantedFile) throws -> Bool {
                try FileDigest.sha256(directory.path.appending(file.path)) == file.sha256
            }
        }

        @Test func filesAreAskedAboutInEachRunThoughOneFailsInAll() async throws {
            let scene = try await Scene()
            let gone = scene.origin.serveFile("gone.bin", size: .kibibytes(10), seed: 1)
            let same = scene.origin.serveFile("same.bin", size: .kibibytes(10), seed: 2)
            scene.origin.misbehave("/gone.bin", .status(404, retryAfter: nil))
            for seed in UInt64(11)...14 {
                let asked = scene.origin.requests.count
                let changing = scene.origin.serveFile("changing.bin", size: .kibibytes(10), seed: seed)
                let said = try await scene.get([changing, gone, same], code: 1)
                #expect(try scene.has(changing) && scene.has(same), "\(said)")
                let targets = scene.origin.requests.dropFirst(asked).map(\.target)
                #expect(targets.contains("/same.bin"))
            }
            // A file that fails in one run is asked about with what an earlier run knows of it.
            scene.origin.misbehave("/same.bin", .status(404, retryAfter: nil))
            let changing = scene.origin.serveFile("changing.bin", size: .kibibytes(10), seed: 15)
            #expect(try await scene.get([changing, gone, same], code: 1).contains("could not be checked again"))
            scene.origin.behave("/same.bin")
            scene.origin.behave("/gone.bin")
            #expect(try await scene.get([changing, gone, same]).contains("2 unchanged"))
            #expect(try scene.has(changing) && scene.has(same) && scene.has(gone))
        }

        /// Bytes that had come stay, and the origin is asked about files that were finished by then.
        @Test(arguments: [true, false])
        func runThatEndedEarlyIsFollowedByOneThatAsksForAll(isInterrupted: Bool) async throws {
            let scene = try await Scene()
            let large = scene.origin.serveFile("large.bin", size: .mebibytes(6), seed: 1)
            var small = scene.origin.serveFile("small.bin", size: .kibibytes(10), seed: 2)
            let late = scene.origin.serveFile("late.bin", size: .kibibytes(10), seed: 3)
            scene.origin.misbehave("/late.bin", .status(isInterrupted ? 503 : 404, retryAfter: nil))
            if isInterrupted {
                scene.origin.hold("/large.bin", afterBytes: .mebibytes(4))
                let first = try await scene.start([large, small, late])
                try await eventually("the small file, and most of the large one") {
                    FileManager.default.fileExists(atPath: scene.directory.path.appending("small.bin").string)
                        && scene.origin.requests.contains { $0.bodyBytesSent >= .mebibytes(4) }
                }
                try first.signal(SIGINT)
                #expect(try await first.waitForExit() == .exited(130), "\(first.standardError)")
                scene.origin.release("/large.bin")
            } else {
                _ = try await scene.get([large, small, late], code: 1)
            }
            scene.origin.behave("/late.bin")
            small = scene.origin.serveFile("small.bin", size: .kibibytes(12), seed: 4)
            let asked = scene.origin.requests.count
            let said = try await scene.get([large, small, late])
            #expect(try scene.has(large) && scene.has(small) && scene.has(late), "\(said)")
            let sent = scene.origin.requests.dropFirst(asked).reduce(0) { $0 + $1.bodyBytesSent }
            #expect(sent < .mebibytes(3), "\(sent) bytes, \(said)")
            #expect(try await scene.get([large, small, late]).contains("3 unchanged"))
        }
    }
}
