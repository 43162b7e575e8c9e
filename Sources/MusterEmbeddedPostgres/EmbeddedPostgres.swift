import Glibc
public import Logging
import MusterSystem
public import SystemPackage

/// A private PostgreSQL: a cluster in a state directory, and a server that lives as long as this process.
///
/// - The server listens on a Unix socket only, in a directory of mode 0700, and trusts every process that can reach that: the
///   server's account and root.
/// - Root runs it as `postgres`, or else as `nobody`, since PostgreSQL refuses to run as root. That account then owns
///   the data, log and socket directories, and nothing else. Where it cannot reach the state directory, the cluster is
///   kept below ``Configuration/fallbackDirectory``, and the file `pg/location` in the state directory names it.
/// - However this process ends, its supervisor shuts the server down. If the supervisor was killed as well, the server goes
///   on running; the next `start()` finds and adopts it.
/// - One process at a time uses a state directory; a second one gets ``EmbeddedPostgresError/inUse(stateDirectory:processID:)``.
public actor EmbeddedPostgres {
    /// How to shut down.
    public enum StopMode: Sendable, Hashable {
        /// Connections are ended, and everything is flushed (PostgreSQL's "fast shutdown").
        case fast
        /// All processes are ended at once; the next start recovers from the log ("immediate shutdown", F5).
        case immediate
    }

    /// What the user should know of a start that is under way.
    public enum StartNews: Sendable, Hashable {
        /// The server of an earlier process neither answers nor ends, and the start has waited for it for a few seconds.
        case waiting(Predecessor)
        /// A part of the cluster that contains no data was repaired, as the text says: nothing is lost by that.
        case mended(String)
    }

    private enum State {
        /// No server. `start()` leads to `starting`.
        case stopped
        /// `start()` is at work; leads to `running`, or back to `stopped` by an error.
        case starting
        /// The server accepted connections; leads to `stopping`, and to `starting` if it died of itself.
        case running(RunningServer)
        /// `stop()` waits for the end; leads to `stopped`.
        case stopping(RunningServer)
    }

    private let stateDirectory: FilePath
    private let environment: [String: String]
    private let configuration: Configuration
    private let content: ClusterContent?
    private let logger: Logger
    private var state = State.stopped
    /// The data of the last server, and its directory. A server that died by itself is started again on no other data.
    private var used: (directory: FilePath, data: DataIdentity?)?

    /// Prepares a server; nothing is touched before `start()`.
    ///
    /// - Parameters:
    ///   - stateDirectory: Where the cluster is kept, in `pg`. Made, with its parents, if it is missing.
    ///   - environment: The process's environment: `MUSTER_PG_BINDIR` and `PATH` are read from it.
    ///   - configuration: Tuning and limits.
    ///   - content: What the template of new clusters is filled with. A cluster that can't be copied from it is made empty, so the
    ///     caller must not count on the content.
    ///   - logger: Gets what happens, without any secret.
    public init(
        stateDirectory: FilePath,
        environment: [String: String],
        configuration: Configuration = Configuration(),
        content: ClusterContent? = nil,
        logger: Logger
    ) {
        self.stateDirectory = stateDirectory
        self.environment = environment
        self.configuration = configuration
        self.content = content
        self.logger = logger
    }

    /// Makes the cluster if there is none, starts the server or adopts one that was left over, and waits until it
    /// accepts connections. While it runs, a further call only returns its endpoint.
    ///
    /// - Parameter onNews: called with what the user should know of the start.
    /// - Throws: ``EmbeddedPostgresError``, or `CancellationError` when the task is cancelled; nothing is left running
    ///   then.
    public func start(onNews: @escaping @Sendable (StartNews) -> Void = { _ in }) async throws -> Endpoint {
        switch state {
        case .running(let server):
            if server.supervisor.ended == nil { return server.endpoint }
            server.ownerLock.unlock()
        case .starting, .stopping:
            throw EmbeddedPostgresError.busy
        case .stopped:
            break
        }
        state = .starting
        do {
            try checkData()
            let server = try await launch(onNews).run()
            state = .running(server)
            used = (server.location.dataDirectory, server.data)
            logger.info(
                "postgres.ready",
                metadata: [
                    "postgres.pid": "\(server.processID)",
                    "postgres.socket": "\(server.endpoint.socketDirectory)",
                    "postgres.provenance": "\(server.endpoint.provenance)",
                ]
            )
            return server.endpoint
        } catch {
            state = .stopped
            throw error
        }
    }

    private func launch(_ onNews: @escaping @Sendable (StartNews) -> Void = { _ in }) -> Launch {
        Launch(
            stateDirectory: stateDirectory,
            environment: environment,
            configuration: configuration,
            content: content,
            onNews: onNews,
            logger: logger
        )
    }

    /// Stops the server, whether it was started or adopted, and waits for its end, also where its supervisor was killed.
    /// Without a server it does nothing.
    ///
    /// It takes no longer than ``Configuration/stopLimit`` and a few seconds: a fast shutdown that takes longer is
    /// followed by an immediate one. To stop during `start()`, cancel the task that called it.
    public func stop(_ mode: StopMode = .fast) async {
        switch state {
        case .stopped, .starting:
            return
        case .stopping(let server):
            await server.supervisor.waitUntilEnded()
        case .running(let server):
            state = .stopping(server)
            switch mode {
            case .fast:
                break
            case .immediate:
                // The supervisor's SIGINT would overtake this signal, so the supervisor is told only after this one had
                // time to work.
                server.signal(SIGQUIT, logger: logger)
                await server.supervisor.waitUntilEnded(limit: .seconds(10))
            }
            used = nil
            server.supervisor.hangUp()
            await server.supervisor.waitUntilEnded()
            await launch().endLeftover(server.location, server.account)
            server.location.removeSocketDirectory(server.endpoint.socketDirectory)
            configuration.reserve(server.location).release()
            server.ownerLock.unlock()
            state = .stopped
            logger.info(
                "postgres.stopped",
                metadata: [
                    "postgres.pid": "\(server.processID)",
                    "postgres.status": "\(server.supervisor.ended?.text ?? "unknown")",
                ]
            )
        }
    }

    /// Waits until the server that runs now has ended, by `stop()` or of itself; returns at once if there is none.
    public func waitUntilExit() async {
        switch state {
        case .running(let server), .stopping(let server):
            await server.supervisor.waitUntilEnded()
        case .stopped, .starting:
            return
        }
    }

    /// Waits for the server's end for up to `limit`, and returns whether there is no server any more.
    public func hasEnded(within limit: Duration) async -> Bool {
        if case .running(let server) = state { await server.supervisor.waitUntilEnded(limit: limit) }
        return processID == nil
    }

    /// Checks that the data of the server is still that on which the server was started. Call it a few times a second, and
    /// when the server says something strange.
    ///
    /// - Throws: ``EmbeddedPostgresError/dataReplaced(dataDirectory:)``.
    public func checkData() throws {
        guard let used, try DataIdentity(used.directory) != used.data else { return }
        throw EmbeddedPostgresError.dataReplaced(dataDirectory: used.directory)
    }

    /// What keeps the server from its files, by its log since its start, and by an error that a client got; `nil` where
    /// these say nothing about files.
    public func trouble(telling text: String) async throws -> EmbeddedPostgresError? {
        switch state {
        case .running(let server), .stopping(let server):
            try await server.location.trouble(in: "\(server.location.logTail())\nFATAL:  \(text)", server.account)
        case .stopped, .starting: nil
        }
    }

    /// Whether the server failed, or did not start, for lack of room on its disk. The error or the log says so, the log
    /// could not be written, or there is no more room than a start leaves.
    public func lacksRoom(behind error: any Error) -> Bool {
        if case .serverExited(_, log: "") = error as? EmbeddedPostgresError { return true }
        if ClusterTrouble.isOfFullDisk("\(error)\n\(location?.logTail() ?? "")") { return true }
        let free = try? SpaceReserve.freeBytes(in: location?.dataDirectory ?? stateDirectory)
        return free.map { $0 <= SpaceReserve.leastBytes } ?? false
    }

    /// Gives up and takes back the room that is kept for the server, as needed: call it a few times a second. Returns `nil`
    /// without a server, or when no room is kept.
    ///
    /// - Throws: ``EmbeddedPostgresError``.
    public func tendReserve() throws -> Space? {
        guard configuration.reserveMiB > 0, case .running(let server) = state else { return nil }
        return try configuration.reserve(server.location).tend()
    }

    /// The process id of the server (its postmaster) while it runs.
    public var processID: Int32? {
        switch state {
        case .running(let server), .stopping(let server):
            server.supervisor.ended == nil ? server.processID : nil
        case .stopped, .starting:
            nil
        }
    }

    /// The data directory of the server while it runs.
    public var dataDirectory: FilePath? { location?.dataDirectory }

    /// Where the files of the server are while it runs.
    var location: ClusterLocation? {
        switch state {
        case .running(let server), .stopping(let server): server.location
        case .stopped, .starting: nil
        }
    }
}

/// A server that accepts connections, with the supervisor and the lock that keep it for this process.
struct RunningServer: Sendable {
    let endpoint: EmbeddedPostgres.Endpoint
    let processID: Int32
    let location: ClusterLocation
    /// The account it runs as.
    let account: ServerAccount
    /// The data it was started on.
    let data: DataIdentity?
    let supervisor: Supervisor
    /// Held for as long as the server is used.
    let ownerLock: FileLock

    /// Signals the server, unless its data directory names another process by now.
    func signal(_ number: Int32, logger: Logger) {
        do {
            // If its file was removed, it is the child of a supervisor that has not ended.
            let file = try PostmasterFile.read(dataDirectory: location.dataDirectory)
            guard file.map({ $0.processID == processID }) ?? (supervisor.ended == nil) else { return }
            guard kill(processID, number) == 0 else { throw Errno(rawValue: errno) }
        } catch {
            logger.warning(
                "postgres.signal.failed",
                metadata: ["postgres.pid": "\(processID)", "error": "\(error)"]
            )
        }
    }
}
