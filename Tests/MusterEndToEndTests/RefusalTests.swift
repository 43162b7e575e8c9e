import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// What Muster refuses, and how it says so.
    @Suite struct Refusals {
        private static let lineCount = 100_000
        private static let badLine = 61_234

        /// A manifest with one bad line.
        private static func manifest(_ bad: String) -> [UInt8] {
            var text = ""
            for line in 1...lineCount {
                text += line == badLine ? bad : #"{"urls": ["http://127.0.0.1:9/\#(line)"]}"#
                text += "\n"
            }
            return Array(text.utf8)
        }

        @Test func oneBadLineOfManyAddsNothing() async throws {
            try await Fleet.run { fleet in
                let path = fleet.scratch.appending("manifest.ndjson").string
                let bytes = Self.manifest(#"{"urls": ["http://127.0.0.1:9/x"], "path": "../x"}"#)
                try Data(bytes).write(to: URL(filePath: path))
                let add = try await fleet.muster(["add", "g", "-i", path], expecting: 6)
                #expect(add.standardError.contains("line \(Self.badLine)"))
                #expect(add.standardError.contains(#"field "path""#))
                _ = try await fleet.muster(["status", "g"], expecting: 6)

                // A client that checks nothing itself is told the same.
                let client = await fleet.client()
                _ = try await client.createGroup(GroupRequest(name: "h"))
                let (stream, continuation) = AsyncThrowingStream<[UInt8], any Error>.makeStream()
                for start in stride(from: 0, to: bytes.count, by: 65_536) {
                    continuation.yield(Array(bytes[start..<min(start + 65_536, bytes.count)]))
                }
                continuation.finish()
                let problem = await #expect(throws: Problem.self) {
                    try await client.addTasks(streaming: { stream }, to: "h")
                }
                #expect(problem?.code == .invalidRequest)
                #expect(problem?.line == Self.badLine)
                #expect(try await client.group("h").tasks.total == 0)
            }
        }

        @Test(arguments: ["../out", "/etc/passwd", "a/../../out", "a//b", ".muster/parts/1", "a/./b"])
        func pathThatLeavesItsSinkIsRefused(path: String) async throws {
            try await Fleet.run { fleet in
                let client = await fleet.client()
                let tasks = [TaskRequest(urls: ["http://127.0.0.1:9/x"], path: path)]
                let problem = await #expect(throws: Problem.self) {
                    try await client.createGroup(GroupRequest(name: "g", sealed: true, tasks: tasks))
                }
                #expect(problem?.code == .invalidRequest)
                #expect(problem?.pointer == "/tasks/0/path")
                _ = try await fleet.muster(["status", "g"], expecting: 6)
            }
        }

        @Test func sinkThatNoWorkerReachesIsReportedAtOnce() async throws {
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                let add = try await fleet.muster(["add", "g", "--sink", "elsewhere", "http://127.0.0.1:9/x"])
                #expect(add.standardError.contains("elsewhere"))
                #expect(add.standardError.contains("note: "))
                let status = try await fleet.muster(["status", "g"])
                #expect(status.standardOutput.contains("no live worker reaches the sink"))
            }
        }

        @Test func openCoordinatorWithoutTokensIsRefused() async throws {
            let process = try await TestProcess.muster(
                ["serve", "--listen", "0.0.0.0:0"],
                environment: ["MUSTER_DATABASE": "host=127.0.0.1", "MUSTER_TOKEN": nil, "MUSTER_WORKER_TOKEN": nil]
            )
            #expect(try await process.waitForExit() == .exited(2))
            #expect(process.standardError.contains("without tokens"))
            #expect(process.standardError.contains("MUSTER_TOKEN"))
        }

        @Test func tokensOpenWhatTheyAreForAndNothingElse() async throws {
            let admin = "an-administrator-s-token"
            let worker = "a-worker-s-own-token"
            let options = ["--token", admin, "--worker-token", worker]
            try await Fleet.run(options: options) { fleet in
                for (token, code, command) in [
                    (nil, "unauthorized", ["status"]), ("something-else-entirely", "unauthorized", ["status"]),
                    (worker, "forbidden", ["status"]), (worker, "forbidden", ["add", "g", "http://127.0.0.1:9/x"]),
                    (worker, "forbidden", ["drain", "a"]),
                ] {
                    let refused = try await fleet.muster(command, expecting: 6, environment: ["MUSTER_TOKEN": token])
                    #expect(refused.standardError.contains("code: \(code)"), "\(command)")
                }
                let json = try await fleet.muster(
                    ["status", "--json"],
                    expecting: 6,
                    environment: ["MUSTER_TOKEN": "wrong-wrong-wrong-wrong"]
                )
                #expect(json.standardOutput.contains(#""code":"unauthorized""#))
                _ = try await fleet.muster(["status"], environment: ["MUSTER_TOKEN": admin])

                // A worker does its work with its token.
                let origin = try await ScriptedOrigin.start()
                let file = origin.serveFile("f", size: 1_000)
                try await fleet.startWorker("a", token: worker)
                _ = try await fleet.muster(["add", "g", file.url, "--wait"], environment: ["MUSTER_TOKEN": admin])
                #expect(try FileDigest.sha256(fleet.sink.appending("f")) == file.sha256)
            }
        }
    }
}
