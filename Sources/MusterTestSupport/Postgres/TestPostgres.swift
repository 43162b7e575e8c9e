import FoundationEssentials
import Glibc
import Logging
import MusterEmbeddedPostgres
import Subprocess
import SystemPackage

/// A real PostgreSQL for tests. It ends, and its files are removed, when the test process ends in any way.
public actor TestPostgres {
    /// Which failures a committed transaction survives.
    public enum Durability: Sendable, Hashable {
        /// A crash of the machine; for tests of durability.
        case full
        /// Only the end of the server. Nothing is flushed to storage, which is fast.
        case none
    }

    /// How the server is stopped.
    public enum StopMode: Sendable, Hashable {
        /// Connections are ended, and everything is written.
        case fast
        /// All of its processes end at once, and the next start recovers from the log (F5).
        case immediate
    }

    /// A fresh, empty schema.
    public struct Schema: Sendable, Hashable {
        /// Its name: lower-case, needs no quotes.
        public let name: String
        /// A connection string whose connections have this schema alone as their `search_path`.
        public let conninfo: String
    }

    /// A fresh, empty database.
    public struct Database: Sendable, Hashable {
        /// Its name: lower-case, needs no quotes.
        public let name: String
        /// A connection string for it.
        public let conninfo: String
    }

    /// A statement that `psql` refused.
    public struct StatementFailed: Error, Sendable, Hashable {
        /// What was run.
        public let statement: String
        /// What was printed.
        public let output: String
    }

    private let directory: TemporaryDirectory
    private let server: EmbeddedPostgres
    private let environment: [String: String]
    private var endpoint: EmbeddedPostgres.Endpoint

    /// The cluster that all tests of a process share; the first caller starts it. It does not flush to storage: tests of
    /// durability, and tests that restart their server, start their own.
    public static func shared() async throws -> TestPostgres {
        try await sharedStart.value
    }

    private static let sharedStart = Task { try await TestPostgres.start() }

    /// Starts a separate cluster.
    ///
    /// - Parameters:
    ///   - durability: `.full` to test what survives a crash.
    ///   - settings: Further settings of PostgreSQL.
    public static func start(
        durability: Durability = .none,
        maxConnections: Int = 200,
        settings: [String: String] = [:]
    ) async throws -> TestPostgres {
        let directory = try TemporaryDirectory(
            in: durability == .none ? Self.fastParent : "/tmp",
            permissions: [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute],
            removal: .afterServer
        )
        var configuration = EmbeddedPostgres.Configuration()
        switch durability {
        case .full: configuration.durability = .full
        case .none: configuration.durability = .none
        }
        configuration.maxConnections = maxConnections
        configuration.settings = settings
        var environment: [String: String] = [:]
        for name in ["PATH", "MUSTER_PG_BINDIR"] { environment[name] = Environs.value(name) }
        var logger = Logger(label: "muster.test.postgres")
        logger.logLevel = .warning
        let server = EmbeddedPostgres(
            // The reaper looks here for a server that is still stopping.
            stateDirectory: directory.path.appending("state"),
            environment: environment,
            configuration: configuration,
            logger: logger
        )
        return TestPostgres(
            directory: directory,
            server: server,
            environment: environment,
            endpoint: try await server.start()
        )
    }

    /// The directory for clusters that don't flush: in memory if there are 4 GiB of room. A database has three hundred files, and a disk takes long to make
    /// and to remove them for each test.
    private static var fastParent: FilePath {
        let memory: FilePath = "/dev/shm"
        var found = statvfs()
        guard let mounts = try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8),
            mounts.contains(" \(memory) tmpfs "), statvfs(memory.string, &found) == 0,
            UInt64(found.f_bavail) * UInt64(found.f_frsize) >= 4 << 30
        else { return "/tmp" }
        return memory
    }

    private init(
        directory: TemporaryDirectory,
        server: EmbeddedPostgres,
        environment: [String: String],
        endpoint: EmbeddedPostgres.Endpoint
    ) {
        self.directory = directory
        self.server = server
        self.environment = environment
        self.endpoint = endpoint
    }

    /// The connection string of the database `muster`, which exists from the start.
    public var conninfo: String { endpoint.conninfo }

    /// The directory of the server's Unix socket.
    public var socketDirectory: String { endpoint.socketDirectory.string }

    /// The data directory; nil while the server is stopped.
    var dataDirectory: FilePath? { get async { await server.dataDirectory } }

    /// The process id of the server; nil while it is stopped.
    public var processID: Int32? { get async { await server.processID } }

    /// Stops the server; the connection strings stay good for when it is started again.
    public func stop(_ mode: StopMode = .fast) async {
        switch mode {
        case .fast: await server.stop(.fast)
        case .immediate: await server.stop(.immediate)
        }
    }

    /// Kills the server and all of its processes (SIGKILL), as the loss of its machine does; it can be started again.
    public func crash() async throws {
        guard let process = await server.processID else { return }
        try await ProcessTree.kill(process)
        await server.stop(.immediate)
    }

    /// Starts it again, with what it had committed.
    public func start() async throws { endpoint = try await server.start() }

    /// Stops and starts it; `.immediate` ends in crash recovery (F5).
    public func restart(_ mode: StopMode = .fast) async throws {
        await stop(mode)
        try await start()
    }

    /// Makes a schema with a unique name in the database `muster`.
    public func makeSchema(_ prefix: String = "t") async throws -> Schema {
        let name = Self.uniqueName(prefix)
        try await execute("CREATE SCHEMA \(name)")
        let options = EmbeddedPostgres.Endpoint.quoted("-c search_path=\(name)")
        return Schema(name: name, conninfo: "\(endpoint.conninfo) options=\(options)")
    }

    /// Makes a database, which is removed with the cluster, or by ``dropDatabase(_:)``.
    ///
    /// - Parameters:
    ///   - name: Nil chooses a unique name.
    ///   - template: A database to copy, to which there must be no connections.
    public func makeDatabase(_ name: String? = nil, template: String? = nil) async throws -> Database {
        let name = name ?? Self.uniqueName("db")
        try await execute("CREATE DATABASE \"\(name)\"\(template.map { " TEMPLATE \"\($0)\"" } ?? "")")
        return Database(name: name, conninfo: endpoint.conninfo(database: name))
    }

    /// Drops a database, ending the connections to it.
    public func dropDatabase(_ name: String) async throws {
        try await execute("DROP DATABASE IF EXISTS \"\(name)\" WITH (FORCE)")
    }

    /// Runs SQL by `psql`, each statement on its own, and returns what it prints: a line per row, values separated by `|`.
    @discardableResult
    public func execute(_ sql: String, conninfo: String? = nil) async throws -> String {
        let program = environment["MUSTER_PG_BINDIR"].map { "\($0)/psql" } ?? "psql"
        let result = try await Subprocess.run(
            program.contains("/") ? .path(FilePath(program)) : .name(program),
            arguments: ["-XAtq", "-v", "ON_ERROR_STOP=1", conninfo ?? endpoint.conninfo],
            input: .string(sql),
            output: .string(limit: 16 << 20),
            error: .combinedWithOutput
        )
        guard result.terminationStatus.isSuccess else {
            throw StatementFailed(statement: sql, output: result.standardOutput)
        }
        return result.standardOutput
    }

    private static func uniqueName(_ prefix: String) -> String {
        "\(prefix)_\(String(UInt64.random(in: .min ... .max), radix: 36))"
    }
}
