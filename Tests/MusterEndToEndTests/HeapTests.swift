import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Many small files.
    @Suite struct Heap {
        @Test func twoThousandSmallFilesByThreeWorkers() async throws {
            var random = SeededGenerator.forTest()
            let root = try TemporaryDirectory()
            let count = 2_000
            var bytes: [[UInt8]] = []
            for index in 0..<count {
                let size = Int64.random(in: 1...4_000, using: &random)
                let content = ScriptedOrigin.Content.seeded(seed: random.next(), size: size).allBytes
                bytes.append(content)
                try Data(content).write(to: URL(filePath: root.path.appending("\(index).bin").string))
            }
            let nginx = try await NginxServer.start(documentRoot: root.path)
            let files = bytes.enumerated().map { index, content in
                WantedFile(
                    path: "d\(index % 50)/\(index).bin",
                    url: "\(nginx.url)/\(index).bin",
                    sha256: FileDigest.sha256(content)
                )
            }
            try await Fleet.run { fleet in
                for name in ["a", "b", "c"] { try await fleet.startWorker(name, slots: 16) }
                let lines = files.map { #"{"urls": ["\#($0.url)"], "path": "\#($0.path)"}"# }.joined(separator: "\n")
                let manifest = fleet.scratch.appending("manifest.ndjson")
                try Data(lines.utf8).write(to: URL(filePath: manifest.string))
                let add = try await fleet.muster(
                    ["add", "heap", "-i", manifest.string, "--wait"],
                    limit: .seconds(240)
                )
                #expect(add.standardOutput.contains("added 2000 tasks"))
                try await fleet.check("heap", files)
                let group = try await fleet.client().group("heap")
                #expect(group.tasks.succeeded == Int64(count))
                #expect(group.bytes.done == Int64(bytes.reduce(0) { $0 + $1.count }))
                // No worker died, so each file was fetched once. A worker asks for a byte of some of its first files again, until one has
                // come (adr/0033): of eight of the 2,000 at the most.
                let fetches = try await eventually("a request for each file") {
                    let found = nginx.requests.count { $0.range != "bytes=0-0" }
                    return found >= count ? found : nil
                }
                #expect(fetches == count && nginx.requests.count <= count + 3 * 8)

                // The same manifest again changes nothing.
                let again = try await fleet.muster(["add", "heap", "-i", manifest.string, "--json"])
                #expect(again.standardOutput.contains(#""existing":2000"#))
                try await fleet.check("heap", files)
            }
            try await nginx.stop()
        }

        @Test func eachGenerationOfAGroupCompletesOnceHoweverManyFinishAtOnce() async throws {
            let origin = try await ScriptedOrigin.start()
            let files = origin.serveFiles("f", sizes: (0..<200).map { Int64($0 % 7) * 100 })
            // Some are missing at first; some of these are still missing the next time.
            for index in 0..<200 where index % 10 == 0 { origin.remove("/f\(index)") }
            func mend(_ indices: [Int]) {
                let contents = (0..<200).map { index in
                    ScriptedOrigin.Content.seeded(seed: 1 &+ UInt64(index) &* 1_000_003, size: Int64(index % 7) * 100)
                }
                for index in indices { origin.serve("/f\(index)", ScriptedOrigin.File(contents[index])) }
            }
            let missing = (0..<200).filter { $0 % 10 == 0 }
            try await Fleet.run(coordinators: 2) { fleet in
                for name in ["a", "b", "c", "d"] { try await fleet.startWorker(name, slots: 16) }
                try await fleet.submit("g", files)
                let first = try await fleet.waitForEnd(of: "g", generation: 1)
                #expect(first.state == .failed)
                #expect(first.tasks.failed == Int64(missing.count))

                mend(Array(missing.prefix(12)))
                _ = try await fleet.client().apply(.retry, to: "g")
                let second = try await fleet.waitForEnd(of: "g", generation: 2)
                #expect(second.state == .failed)
                #expect(second.tasks.failed == Int64(missing.count - 12))

                mend(missing)
                _ = try await fleet.client().apply(.retry, to: "g")
                let third = try await fleet.waitForEnd(of: "g", generation: 3)
                #expect(third.state == .succeeded)
                try await fleet.check("g", files, endings: [.failed, .failed, .succeeded])
            }
        }
    }
}
