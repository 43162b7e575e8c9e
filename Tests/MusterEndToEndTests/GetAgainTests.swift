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
                    // As if it had been done two seconds after the file was there.
                    let later = Date().addingTimeInterval(2)
                    try FileManager.default.setAttributes([.modificationDate: later], ofItemAtPath: path.string)
                }
                let get = try await TestProcess.muster(["get", "-d", directory.path.string, file.url])
                #expect(try await get.waitForExit(limit: .seconds(120)) == .exited(end.code), "\(get.standardError)")
                #expect(get.standardOutput.contains(end.words), "\(get.standardOutput)")
            }
        }
    }
}
