import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Every cell of the product's table: a task in each state, and each fault of the fleet.
    @Suite struct Transitions {
        /// A row of the table.
        enum Fault: CaseIterable, Sendable {
            case workerKilled
            case workerTerminated
            case workerAsleep
            case coordinatorKilled
            case databaseRestarted
            case powerCut

            /// The time to live of the workers' sessions: short only where a worker has to be missed.
            var timeToLive: String {
                switch self {
                case .workerKilled, .workerAsleep, .powerCut: "3s"
                case .workerTerminated, .coordinatorKilled, .databaseRestarted: "2m"
                }
            }
        }

        @Test(arguments: Fault.allCases)
        func taskInAnyStateComesToItsEndAfter(fault: Fault) async throws {
            let board = try await Board()
            let postgres = try await TestPostgres.start(durability: .full)
            let options = ["--max-connections-per-origin", "64"]
            try await Fleet.run(on: postgres, timeToLive: fault.timeToLive, options: options) { fleet in
                try await fleet.knowOrigins()
                let worker = try await fleet.startWorker("a", slots: 32)
                try await board.setUp(fleet)
                switch fault {
                case .workerKilled:
                    try await fleet.kill(worker)
                    try await fleet.startWorker("b", slots: 32)
                case .workerTerminated:
                    try worker.signal(SIGTERM)
                    #expect(try await worker.waitForExit(limit: .seconds(20)) == .exited(0))
                    try await fleet.startWorker("b", slots: 32)
                case .workerAsleep:
                    try worker.signal(SIGSTOP)
                    try await fleet.startWorker("b", slots: 32)
                case .coordinatorKilled:
                    let coordinator = await fleet.coordinators[0]
                    try await fleet.kill(coordinator.process)
                    // There is no coordinator to report to, and the worker goes on.
                    board.origin.release("/fetching")
                    try await board.origin.waitUntil("/fetching", bytesSent: Board.size)
                    try await fleet.startCoordinator(port: coordinator.port)
                case .databaseRestarted:
                    try await postgres.restart(.immediate)
                case .powerCut:
                    try await fleet.cutPower(to: [worker])
                    try await fleet.startWorker("b", slots: 32)
                }
                try await board.check(fleet, after: fault)
                if fault == .workerAsleep { try await board.wake(worker, fleet) }
            }
        }
    }
}

/// One group for each state that a task may be in, all at the same time.
private struct Board {
    static let size = Int64.mebibytes(3)
    private static let held = Int64.kibibytes(512)
    private static let chunks = 3

    /// The origin of the tasks that are being fetched, paused and cancelled.
    let origin: ScriptedOrigin
    /// The paused origin that the queued task waits for.
    private let closed: ScriptedOrigin
    /// The origin of the large file, whose digests take a while.
    private let nginx: NginxServer
    private let directory: TemporaryDirectory
    private let fetching: WantedFile
    private let paused: WantedFile
    private let cancelled: WantedFile
    private let queued: WantedFile
    private let finalizing: WantedFile
    private let digests: [String: String]

    init() async throws {
        origin = try await ScriptedOrigin.start()
        closed = try await ScriptedOrigin.start()
        fetching = origin.serveFile("fetching", size: Self.size, seed: 1)
        paused = origin.serveFile("paused", size: Self.size, seed: 2)
        cancelled = origin.serveFile("cancelled", size: Self.size, seed: 3)
        queued = closed.serveFile("queued", size: Self.size, seed: 4)
        for name in ["fetching", "paused", "cancelled"] { origin.hold("/\(name)", afterBytes: Self.held) }
        directory = try TemporaryDirectory()
        let large = directory.path.appending("finalizing")
        var random = SeededGenerator(seed: 5)
        let block = (0..<131_072).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
        let descriptor = try FileDescriptor.open(
            large, .writeOnly, options: [.create], permissions: [.ownerReadWrite, .groupRead, .otherRead])
        try descriptor.closeAfter { for _ in 0..<256 { try descriptor.writeAll(block) } }
        nginx = try await NginxServer.start(documentRoot: directory.path)
        var digests: [String: String] = [:]
        for name in ["md5", "sha512"] {
            let sum = try await TestProcess.start(FilePath("/usr/bin/\(name)sum"), arguments: [large.string])
            #expect(try await sum.waitForExit() == .exited(0))
            digests[name] = sum.standardOutput.split(separator: " ").first.map { String($0) }
        }
        self.digests = digests
        finalizing = WantedFile(
            path: "finalizing", url: nginx.url + "/finalizing", sha256: try FileDigest.sha256(large))
    }

    /// Brings each task into its state; finalizing comes last, since it passes.
    func setUp(_ fleet: Fleet) async throws {
        _ = try await fleet.muster(["origins", "set", closed.url(""), "--pause-until", "1h"])
        for file in [queued, fetching, paused, cancelled] { try await fleet.submit(file.path, [file]) }
        for file in [fetching, paused, cancelled] {
            try await origin.waitForRequests("/\(file.path)", count: Self.chunks)
            try await fleet.waitUntilDurable(Int64(Self.chunks) * Self.held, of: file.path, in: file.path)
        }
        _ = try await fleet.muster(["pause", "paused"])
        _ = try await fleet.muster(["cancel", "cancelled"])
        for request in origin.requests where request.path != "/fetching" {
            try await origin.waitForRequest { $0.number == request.number && $0.isFinished }
        }
        let task = TaskRequest(urls: [finalizing.url], path: "finalizing", digests: digests)
        let client = await fleet.client()
        _ = try await client.createGroup(GroupRequest(name: "finalizing", sealed: true, tasks: [task]))
        try await eventually("the file to be verified") {
            let state = try await client.task("finalizing", of: "finalizing").state
            guard state != .succeeded else { throw Unexpected("the file was verified too soon to be seen") }
            return state == .finalizing
        }
    }

    /// Checks what holds after every fault.
    func check(_ fleet: Fleet, after fault: EndToEnd.Transitions.Fault) async throws {
        try await fleet.waitForEnd(of: "finalizing")
        origin.release("/fetching")
        try await fleet.waitForEnd(of: "fetching")
        // I16: all bytes that had come were durable, so none is fetched twice; but the bytes in a sleeper's sockets are lost.
        if fault != .workerAsleep { #expect(origin.bytesSent("/fetching") == Self.size) }

        let client = await fleet.client()
        let task = try await client.task("paused", of: "paused")
        #expect(task.state == .paused)
        #expect(task.bytes.done == Int64(Self.chunks) * Self.held)
        origin.release("/paused")
        _ = try await fleet.muster(["resume", "paused"])
        try await fleet.waitForEnd(of: "paused")
        #expect(origin.bytesSent("/paused") == Self.size)

        #expect(try await client.task("queued", of: "queued").state == .queued)
        #expect(closed.requests.isEmpty)
        _ = try await fleet.muster(["origins", "set", closed.url(""), "--pause-until", "none"])
        try await fleet.waitForEnd(of: "queued")

        for file in [finalizing, fetching, paused, queued] { try await fleet.check(file.path, [file]) }
        try await fleet.check("cancelled", [], endings: [.cancelled])
        #expect(!FileManager.default.fileExists(atPath: fleet.sink.appending("cancelled").string))
        #expect(origin.requests(for: "/cancelled").count == Self.chunks)
    }

    /// A worker that was taken for dead wakes up, and changes nothing that is finished.
    func wake(_ worker: TestProcess, _ fleet: Fleet) async throws {
        let paths = [finalizing, fetching, paused, queued].map { fleet.sink.appending($0.path) }
        let before = try paths.map { try FileIdentity($0) }
        try worker.signal(SIGCONT)
        try await worker.waitForLine(containing: "The session is over", in: .standardError)
        try await fleet.waitForWorkers(["a", "b"])
        #expect(try paths.map { try FileIdentity($0) } == before)
        for file in [finalizing, fetching, paused, queued] { try await fleet.check(file.path, [file]) }
    }
}
