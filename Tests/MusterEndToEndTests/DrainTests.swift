import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// A worker that leaves in order.
    @Suite struct Drain {
        /// How a worker is told to leave.
        enum Way: String, CaseIterable, Sendable {
            case signal
            case command
        }

        @Test func aDrainedWorkerOfUpStaysAway() async throws {
            let directory = try TemporaryDirectory()
            let environment: [String: String?] = [
                "XDG_RUNTIME_DIR": directory.path.string, "MUSTER_TOKEN": nil, "MUSTER_WORKER_TOKEN": nil,
            ]
            let data = directory.path.appending("data").string
            let up = try await TestProcess.muster(
                ["up", "--data", data, "--listen", "127.0.0.1:0", "--workers", "1"], environment: environment)
            let line = try await up.waitForLine(containing: "listening on", in: .standardOutput, limit: .seconds(60))
            let server = String(line.split(separator: " ").last ?? "")
            func muster(_ arguments: [String]) async throws -> String {
                let process = try await TestProcess.muster(
                    arguments + ["--server", server], environment: environment)
                try await process.waitForExit(limit: .seconds(60))
                return process.standardOutput
            }
            try await eventually("the worker is ready", isTrue: { try await muster(["workers"]).contains("ready") })
            #expect(try await muster(["drain", "up-worker-1"]).contains("is draining"))
            _ = try await up.waitForLine(
                containing: "worker up-worker-1 has left", in: .standardOutput, limit: .seconds(60))
            #expect(try await muster(["workers"]).hasPrefix("there are no workers"))
            _ = try await muster(["add", "g", "http://127.0.0.1:1/a"])
            #expect(try await muster(["status", "g"]).contains("those of muster up were told to leave"))
            #expect(try await muster(["explain", "g"]).contains("or start one with: muster work --sink default=DIR"))
            #expect(!up.standardOutput.contains("starting it again"))
            try up.signal(SIGTERM)
            #expect(try await up.waitForExit(limit: .seconds(60)) == .exited(0))
        }

        /// The worker is stopped for longer than its session lives.
        @Test func aWorkerThatWasToLeaveWhileItSleptLeavesWhenItWakesUp() async throws {
            try await Fleet.run(timeToLive: "2s") { fleet in
                let worker = try await fleet.startWorker("first")
                try await fleet.waitForWorkers(["first"])
                try worker.signal(SIGSTOP)
                try await fleet.client().drain(worker: "first")
                try await fleet.waitForWorkers([])
                try worker.signal(SIGCONT)
                #expect(try await worker.waitForExit(limit: .seconds(40)) == .exited(0))
            }
        }

        /// `timeout` signals the process and its process group, so that the worker gets the signal twice.
        @Test func aWorkerThatIsSignalledTwiceGivesBackWhatItHolds() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("big.bin", size: .mebibytes(4))
            origin.hold("/big.bin", afterBytes: .kibibytes(512))
            // The sessions live for longer than the test: none of them expires.
            try await Fleet.run(timeToLive: "10m") { fleet in
                let worker = try await fleet.startWorker("first")
                try await fleet.submit("g", [file])
                try await origin.waitForRequests("/big.bin", count: 1)
                try worker.signal(SIGTERM)
                _ = try await worker.waitForLine(containing: "Draining", in: .standardError, limit: .seconds(20))
                try worker.signal(SIGTERM)
                #expect(try await worker.waitForExit(limit: .seconds(20)) == .exited(0))
                try await fleet.waitForWorkers([])
            }
        }

        @Test(arguments: Way.allCases)
        func drainedWorkerGivesBackAtOnceWhatItHasFetched(way: Way) async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("big.bin", size: .mebibytes(4))
            let held = Int64.kibibytes(512)
            origin.hold("/big.bin", afterBytes: held)
            // The sessions live for longer than the test: none of them expires.
            try await Fleet.run(timeToLive: "10m") { fleet in
                try await fleet.knowOrigins()
                let first = try await fleet.startWorker("first")
                try await fleet.submit("g", [file])
                try await origin.waitForRequests("/big.bin", count: 4)
                try await origin.waitUntil("/big.bin", bytesSent: 4 * held)
                switch way {
                case .signal: try first.signal(SIGTERM)
                case .command: _ = try await fleet.muster(["drain", "first"])
                }
                #expect(try await first.waitForExit(limit: .seconds(way == .signal ? 10 : 40)) == .exited(0))
                try await fleet.waitForWorkers([])

                let task = try await fleet.client().task(file.path, of: "g")
                #expect(task.state == .queued)
                #expect(task.attempts == 0)
                #expect(task.failure == nil)
                #expect(task.bytes.done > 0)
                #expect(task.bytes.done <= 4 * held)
                let sent = origin.bytesSent("/big.bin")
                let starts = origin.requests(for: "/big.bin").map(\.start)

                try await fleet.startWorker("second")
                try await origin.waitForRequests("/big.bin", count: 8)
                origin.release("/big.bin")
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", [file])
                // The second worker went on exactly at the offsets that the first one had reported.
                let later = origin.requests(for: "/big.bin").dropFirst(4).map(\.start)
                #expect(later.reduce(0, +) - starts.reduce(0, +) == task.bytes.done)
                #expect(origin.bytesSent("/big.bin") == sent + .mebibytes(4) - task.bytes.done)
            }
        }
    }
}
