import Glibc
import MusterAPI
import MusterTestSupport
import MusterWorker
import SystemPackage

/// A database, and processes of a coordinator and of workers, that last for a measurement.
actor BenchFleet {
    /// The typed client of the coordinator.
    nonisolated let client: MusterClient
    /// The coordinator's port.
    nonisolated let port: Int
    /// Its base URL.
    nonisolated let url: String
    /// The directory of the workers' sink.
    nonisolated let sink: FilePath
    /// The connection string of the database.
    nonisolated let conninfo: String
    /// The meter of what the database writes.
    nonisolated let database: DatabaseMeter
    private let bench: Bench
    private let postgres: TestPostgres
    private let directory: TemporaryDirectory
    private let transport: CurlTransport
    private let coordinator: TestProcess
    private var workers: [(name: String, process: TestProcess)] = []

    /// Starts a PostgreSQL for a measurement, configured as `muster up` has it: durable, unless the run is quick.
    static func withPostgres<Value: Sendable>(
        _ bench: Bench, _ body: (TestPostgres) async throws -> Value
    ) async throws -> Value {
        let postgres = try await TestPostgres.start(durability: bench.isQuick ? .none : .full)
        do {
            let value = try await body(postgres)
            await postgres.stop()
            return value
        } catch {
            await postgres.stop()
            throw error
        }
    }

    /// Runs a measurement with a fleet that has no workers yet. The fleet is stopped afterwards.
    ///
    /// - Parameters:
    ///   - postgres: The server in which the fleet gets its own database.
    ///   - options: Further options of `muster serve`.
    static func run<Value: Sendable>(
        _ bench: Bench, on postgres: TestPostgres, options: [String] = [],
        _ body: (BenchFleet) async throws -> Value
    ) async throws -> Value {
        let made = try await postgres.makeDatabase()
        _ = try await TimedCommand(
            program: bench.muster, arguments: ["migrate"], environment: ["MUSTER_DATABASE": made.conninfo]
        ).run()
        let process = try await TestProcess.start(
            bench.muster, arguments: ["serve", "--listen", "127.0.0.1:0"] + options,
            environment: ["MUSTER_DATABASE": made.conninfo])
        let line = try await process.waitForLine(containing: "listening on", in: .standardOutput)
        guard let port = line.split(separator: ":").last.flatMap({ Int($0) }) else {
            throw BenchFailure("no port in \(line)")
        }
        let fleet = try await BenchFleet(
            bench, postgres: postgres, conninfo: made.conninfo, coordinator: process, port: port)
        do {
            let value = try await body(fleet)
            await fleet.end()
            try await postgres.dropDatabase(made.name)
            return value
        } catch {
            await fleet.explain()
            await fleet.end()
            throw error
        }
    }

    private init(
        _ bench: Bench, postgres: TestPostgres, conninfo: String, coordinator: TestProcess, port: Int
    ) async throws {
        self.bench = bench
        self.postgres = postgres
        self.conninfo = conninfo
        self.coordinator = coordinator
        directory = try bench.directory()
        sink = directory.path.appending("sink")
        try Bench.make(sink)
        transport = try CurlTransport()
        self.port = port
        url = "http://127.0.0.1:\(port)"
        client = MusterClient(servers: [url], token: nil, send: transport.send)
        database = try await DatabaseMeter(conninfo: conninfo)
    }

    /// Starts a worker on the fleet's sink, and waits until the coordinator knows it. `server` is another URL of the coordinator.
    @discardableResult
    func startWorker(_ name: String, slots: Int, server: String? = nil) async throws -> TestProcess {
        let process = try await TestProcess.start(
            bench.muster,
            arguments: [
                "work", "--server", server ?? url, "--name", name, "--slots", "\(slots)", "--sink", "default=\(sink)",
            ])
        workers.append((name, process))
        try await process.waitForLine(containing: "Session opened", in: .standardError)
        return process
    }

    /// Ends a worker by SIGTERM, so that it gives back its leases.
    func stopWorker(_ name: String) async throws {
        guard let index = workers.firstIndex(where: { $0.name == name }) else { return }
        let process = workers.remove(at: index).process
        try process.signal(SIGTERM)
        try await process.waitForExit()
    }

    /// Kills a worker (SIGKILL).
    func killWorker(_ name: String) async throws {
        guard let index = workers.firstIndex(where: { $0.name == name }) else { return }
        try await workers.remove(at: index).process.killTree()
    }

    /// A meter of all processes of the fleet, and of some others.
    func meter(_ others: [(name: String, processID: Int32)] = []) async -> ProcessMeter {
        var roots =
            [("coordinator", coordinator.processID)] + workers.map { _, process in ("worker", process.processID) }
        if let server = await postgres.processID { roots.append(("postgres", server)) }
        return ProcessMeter(roots: roots + others)
    }

    /// Adds a manifest to a new group by `muster add --wait`, and returns the outcome of that command.
    func add(_ group: String, manifest: String, options: [String] = ["--wait"]) async throws -> TimedCommand.Outcome {
        let file = directory.path.appending("\(group).ndjson")
        try Bench.write(manifest.utf8, to: file)
        let outcome = try await TimedCommand(
            program: bench.muster, arguments: ["add", group, "-i", file.string, "--reuse", "off"] + options,
            environment: ["MUSTER_SERVER": url]
        ).run()
        try Bench.remove(file)
        return outcome
    }

    private func explain() {
        for (name, process) in [("coordinator", coordinator)] + workers {
            bench.say("--- \(name): \(process.standardError.suffix(3_000))")
        }
    }

    private func end() async {
        for (_, process) in workers where process.exit == nil { try? await process.killTree() }
        if coordinator.exit == nil { try? await coordinator.killTree() }
        await transport.shutdown()
        await database.close()
    }
}
