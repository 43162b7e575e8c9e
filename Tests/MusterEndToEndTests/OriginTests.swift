import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Difficult origins, through the whole of Muster.
    @Suite struct Origins {
        @Test func filesThatAreEmptyOrOfUnknownLengthOrWithoutRangesArrive() async throws {
            let origin = try await ScriptedOrigin.start()
            let files = [
                origin.serveFile("empty", size: 0),
                origin.serveFile("chunked", size: .mebibytes(3), seed: 2),
                origin.serveFile("chunked-empty", size: 0),
                origin.serveFile("no-ranges", size: .mebibytes(3), seed: 3),
                origin.serveFile("no-validators", size: .mebibytes(3), seed: 4),
            ]
            for path in ["/chunked", "/chunked-empty"] {
                origin.misbehave(path, .chunked)
                origin.misbehave(path, .ignoreRange)
            }
            origin.misbehave("/no-ranges", .ignoreRange)
            origin.misbehave("/no-validators", .noValidators)
            try await Fleet.run { fleet in
                for name in ["a", "b"] { try await fleet.startWorker(name) }
                try await fleet.submit("g", files)
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", files)
            }
        }

        @Test func fileWithoutRangesIsStartedOverWhenItsWorkerDies() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("stream", size: .mebibytes(3))
            origin.misbehave("/stream", .ignoreRange)
            origin.hold("/stream", afterBytes: .mebibytes(2))
            try await Fleet.run(timeToLive: "2s") { fleet in
                let first = try await fleet.startWorker("first")
                try await fleet.submit("g", [file])
                try await fleet.waitUntilDurable(.mebibytes(2), of: "stream", in: "g")
                try await fleet.kill(first)
                origin.release("/stream")
                try await fleet.startWorker("second")
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", [file])
            }
        }

        @Test func missingFileFailsTheGroupAndARetryMendsIt() async throws {
            let origin = try await ScriptedOrigin.start()
            let present = origin.serveFile("present", size: 1_000)
            let missing = origin.serveFile("missing", size: 2_000, seed: 5)
            origin.remove("/missing")
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                _ = try await fleet.muster(["add", "g", present.url, missing.url])
                let wait = try await fleet.muster(["wait", "g"], expecting: 1)
                #expect(wait.standardError.contains("failed: missing: 404 Not Found"))
                let task = try await fleet.client().task("missing", of: "g")
                #expect(task.failure?.kind == .notFound)

                _ = origin.serveFile("missing", size: 2_000, seed: 5)
                _ = try await fleet.muster(["retry", "g"])
                _ = try await fleet.muster(["wait", "g", "--timeout", "60s"])
                #expect(try await fleet.client().group("g").generation == 2)
                try await fleet.check("g", [present, missing], endings: [.failed, .succeeded])
                // Besides, a single byte of it was requested as a witness (adr/0033).
                #expect(origin.requests(for: "/present").filter { $0.range != "bytes=0-0" }.count == 1)
            }
        }

        /// Maintenance of one mirror is no reason to wait where there is another.
        @Test func filesComeFromTheirOtherSourceWhileAnOriginIsPaused() async throws {
            let (paused, other) = (try await ScriptedOrigin.start(), try await ScriptedOrigin.start())
            let files = other.serveFiles("f", sizes: Array(repeating: 10_000, count: 6))
            _ = paused.serveFiles("f", sizes: Array(repeating: 10_000, count: 6))
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                let client = await fleet.client()
                _ = try await client.setOrigin(paused.url(""), OriginPatch(pauseFor: "1h"))
                let tasks = files.map { TaskRequest(urls: [paused.url("/\($0.path)"), $0.url], path: $0.path) }
                _ = try await client.createGroup(GroupRequest(name: "g", sealed: true, tasks: tasks))
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", files)
                #expect(paused.requests.isEmpty)
            }
        }

        @Test func waitThatTakesTooLongSaysSo() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("slow", size: 1_000)
            origin.hold("/slow", afterBytes: 10)
            try await Fleet.run { fleet in
                try await fleet.startWorker("a")
                try await fleet.submit("g", [file])
                _ = try await fleet.muster(["wait", "g", "--timeout", "500ms"], expecting: 4)
                // A mistyped key is reported before the group has ended.
                _ = try await fleet.muster(["wait", "g", "nosuch"], expecting: 6)
                origin.release("/slow")
                _ = try await fleet.muster(["wait", "g"])
                try await fleet.check("g", [file])
            }
        }
    }
}
