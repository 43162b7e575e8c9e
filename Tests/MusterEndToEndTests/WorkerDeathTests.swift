import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// A worker that dies, or seems to (F1, F2).
    @Suite struct WorkerDeath {
        /// Every response stops after so many bytes until it is released.
        private static let held = Int64.kibibytes(512)

        /// Has a worker hold a file of several chunks half-way, all of it durable. Returns the number of requests that this took.
        private func fetchHalf(
            of file: WantedFile,
            from origin: ScriptedOrigin,
            in fleet: Fleet,
            chunks: Int
        ) async throws -> Int {
            let path = "/\(file.path)"
            origin.hold(path, afterBytes: Self.held)
            try await fleet.submit("g", [file])
            try await origin.waitForRequests(path, count: chunks)
            try await fleet.waitUntilDurable(Self.held * Int64(chunks), of: file.path, in: "g")
            return chunks
        }

        /// The session lives for longer than the test, so that `up` can't be helped by its expiry.
        @Test func upGoesOnAtOnceWithWhatAKilledWorkerHeld() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("big.bin", size: .mebibytes(2))
            let path = "/\(file.path)"
            origin.hold(path, afterBytes: Self.held)
            let directory = try TemporaryDirectory()
            let environment: [String: String?] = [
                "XDG_RUNTIME_DIR": directory.path.string, "MUSTER_TOKEN": nil, "MUSTER_WORKER_TOKEN": nil,
            ]
            let up = try await TestProcess.muster(
                [
                    "up", "--data", directory.path.appending("data").string, "--listen", "127.0.0.1:0", "--workers",
                    "1",
                    "--session-ttl", "10m",
                ], environment: environment)
            let line = try await up.waitForLine(containing: "listening on", in: .standardOutput, limit: .seconds(60))
            let server = String(line.split(separator: " ").last ?? "")
            let worker = try await up.waitForLine(containing: "has pid", in: .standardOutput, limit: .seconds(60))
            let processID = try #require(worker.split(separator: " ").last.flatMap { pid_t($0) })
            let wait = try await TestProcess.muster(
                ["add", "g", file.url, "--wait", "--server", server], environment: environment)
            try await origin.waitForRequests(path, count: 1)
            try #require(kill(processID, SIGKILL) == 0)
            try await origin.waitForRequest { $0.isFinished }
            origin.release(path)
            #expect(try await wait.waitForExit(limit: .seconds(60)) == .exited(0), "\(wait.standardError)")
            try up.signal(SIGTERM)
            #expect(try await up.waitForExit(limit: .seconds(60)) == .exited(0))
        }

        @Test func chunksOfAKilledWorkerAreFinishedByAnotherFromTheirDurableOffsets() async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("big.bin", size: .mebibytes(4))
            try await Fleet.run { fleet in
                try await fleet.knowOrigins()
                let first = try await fleet.startWorker("first")
                // [0, 1 MiB) before the size is known; then the rest in chunks of the same size.
                let before = try await fetchHalf(of: file, from: origin, in: fleet, chunks: 4)
                try await fleet.startWorker("second")
                try await fleet.kill(first)
                for number in 0..<before {
                    try await origin.waitForRequest { $0.number == number && $0.isFinished }
                }
                origin.release("/big.bin")
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", [file])

                let requests = origin.requests(for: "/big.bin")
                let starts = Set(requests[..<before].map(\.start))
                #expect(starts == [0, .mebibytes(1), .mebibytes(2), .mebibytes(3)])
                #expect(Set(requests[before...].map(\.start)) == Set(starts.map { $0 + Self.held }))
                #expect(requests.count == 2 * before)
                // I16: everything was durable, so that nothing was fetched twice.
                #expect(origin.bytesSent("/big.bin") == .mebibytes(4))
            }
        }

        @Test func workersKilledAtAnyMomentCostNoMoreThanWhatWasNotDurable() async throws {
            var random = SeededGenerator.forTest()
            let origin = try await ScriptedOrigin.start()
            let size = Int64.mebibytes(4)
            let files = origin.serveFiles("f", sizes: Array(repeating: size, count: 4), seed: random.next())
            try await Fleet.run { fleet in
                // No slow file is compared with a plain GET (adr/0028), which fetches its beginning again even if no worker dies.
                try await fleet.postgres.execute(
                    "ALTER TABLE origins ALTER COLUMN compared_at SET DEFAULT now()", conninfo: fleet.conninfo)
                // A chunk takes 8 s, in which its offset becomes durable several times.
                origin.limitRate(bytesPerSecond: 128 << 10)
                var worker = try await fleet.startWorker("w0", slots: 8)
                try await fleet.submit("g", files)
                var lost: Int64 = 0
                for round in 1...2 {
                    let durable = try await fleet.client().group("g").bytes.done
                    let target = durable + Int64.random(in: .mebibytes(2) ... .mebibytes(4), using: &random)
                    try await eventually("\(target) bytes sent") {
                        files.reduce(0) { $0 + origin.bytesSent("/\($1.path)") } >= target + lost
                    }
                    try await fleet.kill(worker)
                    try await origin.waitForOpenConnections(atMost: 0)
                    let sent = files.reduce(0) { $0 + origin.bytesSent("/\($1.path)") }
                    // The bytes that were sent and are not durable by now may be fetched again, and no others.
                    lost = sent - (try await fleet.client().group("g").bytes.done)
                    worker = try await fleet.startWorker("w\(round)", slots: 8)
                }
                origin.limitRate(bytesPerSecond: nil)
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", files)
                let sent = files.reduce(0) { $0 + origin.bytesSent("/\($1.path)") }
                #expect(sent <= size * Int64(files.count) + lost)
            }
        }

        @Test(arguments: [Int64.kibibytes(768), .mebibytes(4)])
        func sleeperThatWakesUpLateChangesNoFinishedFile(size: Int64) async throws {
            let origin = try await ScriptedOrigin.start()
            let file = origin.serveFile("late.bin", size: size)
            try await Fleet.run(timeToLive: "3s") { fleet in
                // Only the chunks are requested.
                try await fleet.knowOrigins()
                let sleeper = try await fleet.startWorker("sleeper")
                let chunks = size > .mebibytes(1) ? 4 : 1
                for index in 0..<chunks {
                    let wrong = Int64.mebibytes(Int64(index)) + Self.held + 1_000
                    origin.misbehave("/late.bin", .corruptByte(at: wrong), when: .first(chunks))
                }
                _ = try await fetchHalf(of: file, from: origin, in: fleet, chunks: chunks)
                try sleeper.signal(SIGSTOP)
                try await fleet.startWorker("second")
                try await origin.waitForRequests("/late.bin", count: 2 * chunks)
                // The rest reaches the sleeper's sockets too, with wrong bytes in it: it finds them there when it wakes up.
                origin.release("/late.bin")
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", [file])
                let path = fleet.sink.appending(file.path)
                let before = try FileIdentity(path)

                try sleeper.signal(SIGCONT)
                try await sleeper.waitForLine(containing: "The session is over", in: .standardError)
                try await fleet.waitForWorkers(["sleeper", "second"])
                #expect(try FileIdentity(path) == before)
                try await fleet.check("g", [file])

                // The sleeper is a good worker again.
                let next = origin.serveFile("next.bin", size: .kibibytes(64), seed: 9)
                try await fleet.submit("h", [next])
                try await fleet.waitForEnd(of: "h")
                try await fleet.check("h", [next])
                #expect(try FileIdentity(path) == before)
            }
        }
    }
}

/// The identity of a file, by which a test sees that it is untouched: inode, size and modification time.
struct FileIdentity: Hashable {
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int
    private let nanoseconds: Int

    /// The identity of the file at a path.
    init(_ path: FilePath) throws {
        var status = stat()
        guard lstat(path.string, &status) == 0 else { throw Errno(rawValue: errno) }
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = Int(status.st_mtim.tv_sec)
        nanoseconds = Int(status.st_mtim.tv_nsec)
    }
}
