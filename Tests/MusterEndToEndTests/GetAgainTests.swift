import Foundation
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// What `get` says of files that it has fetched before.
    @Suite struct GetAgain {
        @Test func aFileThatHasAnotherContentSinceIsNotCalledThere() async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory()
            let file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            let path = directory.path.appending(file.path)
            // What is written before: the same once more, and something else of the same size.
            let ends: [(seed: UInt64?, words: String, code: Int32)] = [
                (nil, "1 succeeded", 0), (nil, "nothing to do", 0), (1, "nothing to do", 0),
                (2, "changed: f.bin was written to", 1),
            ]
            for end in ends {
                if let seed = end.seed {
                    let content = ScriptedOrigin.Content.seeded(seed: seed, size: .kibibytes(10)).bytes(in: 0..<10_240)
                    try Data(content).write(to: URL(filePath: path.string))
                    // As a copy that keeps the time of what it was copied from.
                    try FileManager.default.setAttributes(
                        [.modificationDate: Date(timeIntervalSince1970: 1_577_836_800)], ofItemAtPath: path.string)
                }
                let get = try await TestProcess.muster(["get", "-d", directory.path.string, file.url])
                #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(end.code), "\(get.standardError)")
                #expect((get.standardError + get.standardOutput).contains(end.words), "\(get.standardOutput)")
            }
        }

        /// One that succeeded, one that failed at the end of the last run, and both together.
        @Test(arguments: [false, true])
        func aFileThatIsGoneIsFetchedAgainHoweverTheLastRunEnded(failed: Bool) async throws {
            let origin = try await ScriptedOrigin.start()
            let directory = try TemporaryDirectory()
            let file = origin.serveFile("f.bin", size: .kibibytes(10), seed: 1)
            let other = origin.serveFile("g.bin", size: .kibibytes(10), seed: 2)
            let path = directory.path.appending(file.path).string
            if failed { origin.misbehave("/\(other.path)", .status(404, retryAfter: nil)) }
            let summary = failed ? "failed: 1 succeeded, 1 failed, 10.0 KiB" : "succeeded: 2 succeeded, 20.0 KiB"
            for isGone in [false, true] {
                if isGone { try FileManager.default.removeItem(atPath: path) }
                let get = try await TestProcess.muster(["get", "-d", directory.path.string, file.url, other.url])
                let status = try await get.waitForExit(limit: .seconds(120))
                #expect(status == .exited(failed ? 1 : 0), "\(get.standardError)")
                #expect(get.standardOutput.contains(summary), "\(get.standardOutput)")
                #expect(get.standardError.contains("a file is not there any more; fetching it again") == isGone)
                #expect(FileManager.default.fileExists(atPath: path), "counted as succeeded")
            }
        }
    }
}
