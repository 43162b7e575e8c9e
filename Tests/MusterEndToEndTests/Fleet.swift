import FoundationEssentials
import Glibc
import MusterAPI
import MusterCore
import MusterTestSupport
import MusterWorker
import SystemPackage

/// Real coordinators and workers on a real database, with one sink that all workers share.
///
/// Whatever it started is killed when it ends. What its processes printed is shown when a test fails.
actor Fleet {
    /// A coordinator process.
    struct Coordinator: Sendable {
        /// The process.
        let process: TestProcess
        /// The port that it listens on.
        let port: Int
        /// Its base URL.
        var url: String { "http://127.0.0.1:\(port)" }
    }

    /// How a worker is started, and started again in place of a dead one.
    struct WorkerSetup: Sendable {
        /// Transfers at once.
        var slots = 4
        /// The directory of the sink `default`; nil is the one that all workers share.
        var sink: FilePath?
        /// The URLs that it is given as `--server`; nil is those of the fleet.
        var servers: String?
        /// Its token.
        var token: String?
        /// A program with arguments that becomes the worker.
        var prefix: [String] = []
        /// Further options of `muster work`.
        var options: [String] = []
    }

    /// The sink's directory.
    nonisolated let sink: FilePath
    /// A directory for manifests and the like.
    nonisolated let scratch: FilePath
    /// The database cluster.
    nonisolated let postgres: TestPostgres
    /// The connection string of the fleet's own database.
    nonisolated let conninfo: String
    private let database: String
    private let directory: TemporaryDirectory
    private let transport: CurlTransport
    private let coordinatorOptions: [String]
    private let coordinatorPrefix: [String]
    private var processes: [(name: String, process: TestProcess)] = []
    private(set) var coordinators: [Coordinator] = []
    /// The URL of the balancer before the coordinators; nil without one.
    private(set) var balancer: String?
    /// The connection strings of coordinators that do not use the fleet's, by their ports.
    private var databases: [Int: String] = [:]
    private var setups: [String: WorkerSetup] = [:]

    /// Runs a test with a fleet, which is taken down afterwards.
    ///
    /// - Parameters:
    ///   - postgres: A cluster that the test may stop; nil takes the one that all tests share.
    ///   - timeToLive: Of the workers' sessions.
    ///   - options: Further options of `muster serve`.
    ///   - prefix: A program with arguments that becomes the coordinator.
    static func run(
        on postgres: TestPostgres? = nil,
        coordinators: Int = 1,
        timeToLive: String = "5s",
        options: [String] = [],
        prefix: [String] = [],
        _ body: (Fleet) async throws -> Void
    ) async throws {
        let cluster = if let postgres { postgres } else { try await TestPostgres.shared() }
        let fleet = try await Fleet(
            postgres: cluster,
            options: ["--session-ttl", timeToLive, "--minimum-chunk", "1MiB"] + options,
            prefix: prefix
        )
        do {
            try await fleet.migrate()
            for _ in 0..<coordinators { try await fleet.startCoordinator() }
            try await body(fleet)
        } catch {
            await fleet.printLogs()
            await fleet.end()
            throw error
        }
        await fleet.end()
    }

    private init(postgres: TestPostgres, options: [String], prefix: [String]) async throws {
        self.postgres = postgres
        let made = try await postgres.makeDatabase()
        database = made.name
        conninfo = made.conninfo
        directory = try TemporaryDirectory()
        sink = directory.path.appending("sink")
        scratch = directory.path.appending("scratch")
        for path in [sink, scratch] {
            try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
        }
        transport = try CurlTransport()
        coordinatorOptions = options
        coordinatorPrefix = prefix
    }

    /// A client of some coordinators; of all that were started, or of the balancer before them, when none is named.
    func client(of urls: [String]? = nil, token: String? = nil) -> MusterClient {
        let all = balancer.map { [$0] } ?? coordinators.map(\.url)
        return MusterClient(servers: urls ?? all, token: token, send: transport.send)
    }

    /// The URLs of all coordinators, or of the balancer before them, as `--server` takes them.
    var servers: String { balancer ?? coordinators.map(\.url).joined(separator: ",") }

    /// Has clients, commands and workers that are started from now on use a balancer before the coordinators.
    func use(balancer url: String) { balancer = url }

    /// Starts a coordinator and waits until it listens; it gets a port of its own unless one is named.
    ///
    /// - Parameter database: Its connection string; nil is that of the last coordinator at the port, or else the fleet's.
    @discardableResult
    func startCoordinator(
        port: Int = 0, options: [String] = [], database: String? = nil
    ) async throws -> Coordinator {
        let database = database ?? databases[port] ?? conninfo
        let process = try await TestProcess.start(
            "/usr/bin/env",
            arguments: coordinatorPrefix + [
                try TestProcess.musterExecutable().string, "serve", "--listen", "127.0.0.1:\(port)",
            ] + coordinatorOptions + options,
            environment: ["MUSTER_DATABASE": database]
        )
        processes.append(("coordinator", process))
        let line = try await process.waitForLine(containing: "listening on", in: .standardOutput)
        guard let number = line.split(separator: ":").last.flatMap({ Int($0) }) else {
            throw Unexpected("no port in \(line)")
        }
        let coordinator = Coordinator(process: process, port: number)
        databases[number] = database
        coordinators.removeAll { $0.port == number }
        coordinators.append(coordinator)
        return coordinator
    }

    /// Makes the fleet take every origin that it meets for one that is known to serve a file more than once (adr/0027).
    func knowOrigins() async throws {
        try await postgres.execute(
            "ALTER TABLE origins ALTER COLUMN serves_again SET DEFAULT true", conninfo: conninfo)
    }

    /// Starts a worker and waits until a coordinator knows it.
    ///
    /// - Parameters:
    ///   - sink: The directory of the sink `default`; nil is the one that all share.
    ///   - prefix: A program with arguments that becomes the worker.
    ///   - options: Further options of `muster work`.
    @discardableResult
    func startWorker(
        _ name: String,
        slots: Int = 4,
        sink: FilePath? = nil,
        token: String? = nil,
        prefix: [String] = [],
        options: [String] = []
    ) async throws -> TestProcess {
        try await startWorker(
            name, WorkerSetup(slots: slots, sink: sink, token: token, prefix: prefix, options: options))
    }

    /// The same. The setup is kept for ``replaceWorker(_:_:)``.
    @discardableResult
    func startWorker(_ name: String, _ setup: WorkerSetup) async throws -> TestProcess {
        setups[name] = setup
        return try await launch(name, setup, as: name)
    }

    private func launch(_ name: String, _ setup: WorkerSetup, as label: String) async throws -> TestProcess {
        let process = try await TestProcess.start(
            "/usr/bin/env",
            arguments: setup.prefix + [
                try TestProcess.musterExecutable().string, "work", "--server", setup.servers ?? servers, "--name", name,
                "--slots", "\(setup.slots)", "--sink", "default=\(setup.sink ?? sink)",
                // Tests have their keys and certificates in any directory.
                "--secret-directory", "/=*",
            ] + setup.options,
            environment: ["MUSTER_WORKER_TOKEN": setup.token]
        )
        processes.append((label, process))
        try await process.waitForLine(containing: "Session opened", in: .standardError)
        return process
    }

    /// Kills the worker of that name (SIGKILL) and starts another one under it.
    ///
    /// - Parameter change: Changes how it is started, this time and when it is replaced again.
    func replaceWorker(_ name: String, _ change: @Sendable (inout WorkerSetup) -> Void = { _ in }) async throws {
        if let index = processes.lastIndex(where: { $0.name == name }) {
            let process = processes.remove(at: index).process
            try await kill(process)
        }
        var setup = setups[name] ?? WorkerSetup()
        change(&setup)
        try await startWorker(name, setup)
    }

    /// Starts another worker under the name of one that runs, and with its setup (F16). ``worker(_:)`` means the first one still.
    func startNamesake(of name: String) async throws -> TestProcess {
        try await launch(name, setups[name] ?? WorkerSetup(), as: "namesake of \(name)")
    }

    /// The worker of that name, alive or not.
    func worker(_ name: String) -> TestProcess? { processes.last { $0.name == name }?.process }

    /// Runs a command of `muster` to its end.
    func muster(
        _ arguments: [String],
        expecting status: Int32? = 0,
        environment: [String: String?] = [:],
        input: TestProcess.Input = .none,
        limit: Duration = .seconds(120)
    ) async throws -> TestProcess {
        var environment = environment
        if !coordinators.isEmpty { environment["MUSTER_SERVER"] = .some(servers) }
        let process = try await TestProcess.muster(arguments, environment: environment, input: input)
        processes.append((arguments.prefix(2).joined(separator: " "), process))
        let exit = try await process.waitForExit(limit: limit)
        if let status, exit != .exited(status) { throw Unexpected("\(arguments.prefix(3)) ended as \(exit)") }
        return process
    }

    /// Kills a process (SIGKILL) and waits for its end.
    func kill(_ process: TestProcess) async throws {
        try process.signal(SIGKILL)
        try await process.waitForExit()
    }

    private func migrate() async throws {
        let process = try await TestProcess.muster(["migrate"], environment: ["MUSTER_DATABASE": conninfo])
        processes.append(("migrate", process))
        guard try await process.waitForExit() == .exited(0) else { throw Unexpected("muster migrate failed") }
    }

    private func end() async {
        for (_, process) in processes where process.exit == nil { try? await process.killTree() }
        await transport.shutdown()
        // A cluster that a test has stopped is removed with all of its databases.
        try? await postgres.dropDatabase(database)
    }

    private func printLogs() {
        for (name, process) in processes {
            print("--- \(name) (pid \(process.processID), \(process.exit.map { "\($0)" } ?? "running"))")
            print(process.standardOutput.suffix(2_000), process.standardError.suffix(6_000), separator: "\n")
        }
    }
}

/// A state in which a test can't go on.
struct Unexpected: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
