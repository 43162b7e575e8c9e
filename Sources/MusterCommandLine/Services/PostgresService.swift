import Glibc
import Logging
import MusterCoordinator
import MusterCore
import MusterEmbeddedPostgres
import MusterSystem
import ServiceLifecycle
import SystemPackage

/// The private PostgreSQL of `get` and `up`. Starts the server, brings its schema up to date, restarts it when it dies, and shuts it down last.
///
/// It restarts the server any number of times, with a growing pause, unless the server can't start as things are: its database is damaged,
/// or belongs to another user. A first start that fails ends the command, since nothing says that another one can succeed; a first start
/// that was killed is repeated.
///
/// It keeps room for the server on its disk, since the fetched files may fill that. When there is no room for the server all the same, it
/// ends and says what is missing, or waits, depending on `onFull`.
struct PostgresService: Service {
    private static let backoff = Backoff(first: .milliseconds(500), longest: .seconds(30), jitter: 0)
    /// A server that ran longer than this starts a new count of failures when it dies.
    private static let stable: Duration = .seconds(60)
    /// How often the schema is installed again after a lost connection to a server that runs on.
    private static let mostLosses = 5
    /// How long to wait, after connections were lost, to see whether the server has ended.
    private static let dying: Duration = .seconds(1)
    /// How often its data and the room on its disk are checked.
    private static let period: Duration = .milliseconds(250)
    /// The size of its write-ahead log where it shares the disk with the fetched files. The reserved room has to suffice for what is added
    /// to the log once the disk is full, and a checkpoint comes at about half of this.
    private static let smallLog = ["min_wal_size": "32MB", "max_wal_size": "128MB"]
    /// How often a start that failed because the disk filled up meanwhile is repeated, and after what pause.
    private static let mostFullStarts = 5
    private static let fullStartPause: Duration = .milliseconds(100)
    /// How often a full disk is checked.
    private static let fullPeriod: Duration = .seconds(1)

    private let postgres: EmbeddedPostgres
    private let database: Eventual<String>
    private let damage: Eventual<String>
    private let room: DatabaseRoom
    private let onFull: OnFull
    private let remark: @Sendable (String) -> Void
    private let logger: Logger

    /// A server in a state directory.
    ///
    /// - Parameters:
    ///   - stopLimit: how long a shutdown may take until the server is stopped without its final checkpoint.
    ///   - isSmall: whether it takes as little of the disk as possible, because the fetched files are there too.
    ///   - room: receives whether its disk has room for it.
    ///   - onFull: what happens when there is none.
    ///   - database: receives the connection string once the schema is up to date.
    ///   - damage: what the server has reported to a client about damage to its files, once it has.
    ///   - remark: receives messages for the user.
    init(
        stateDirectory: FilePath,
        environment: [String: String],
        stopLimit: Duration,
        isSmall: Bool,
        room: DatabaseRoom,
        onFull: OnFull,
        database: Eventual<String>,
        damage: Eventual<String>,
        remark: @escaping @Sendable (String) -> Void,
        logger: Logger
    ) {
        // These variables are meant for other servers, and a connection string can't override all of them: a service, or another address.
        for name in Self.readByLibpq { unsetenv(name) }
        postgres = EmbeddedPostgres(
            stateDirectory: stateDirectory,
            environment: environment,
            configuration: Self.configuration(stopLimit: stopLimit, isSmall: isSmall),
            content: Self.schema,
            logger: logger
        )
        self.database = database
        self.damage = damage
        self.room = room
        self.onFull = onFull
        self.remark = remark
        self.logger = logger
    }

    /// The variables that libpq reads (PostgreSQL's documentation, "Environment Variables" of libpq), or that a server and its programs read.
    private static let readByLibpq =
        [
            "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGREQUIREAUTH",
            "PGCHANNELBINDING", "PGSERVICE", "PGSERVICEFILE", "PGOPTIONS", "PGAPPNAME", "PGSSLMODE", "PGREQUIRESSL",
            "PGSSLNEGOTIATION", "PGSSLCOMPRESSION", "PGSSLCERT", "PGSSLKEY", "PGSSLCERTMODE", "PGSSLROOTCERT",
            "PGSSLCRL",
            "PGSSLCRLDIR", "PGSSLSNI", "PGREQUIREPEER", "PGSSLMINPROTOCOLVERSION", "PGSSLMAXPROTOCOLVERSION",
            "PGGSSENCMODE", "PGKRBSRVNAME", "PGGSSLIB", "PGGSSDELEGATION", "PGCONNECT_TIMEOUT", "PGCLIENTENCODING",
            "PGTARGETSESSIONATTRS", "PGLOADBALANCEHOSTS", "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION", "PGDATESTYLE",
            "PGTZ", "PGGEQO", "PGSYSCONFDIR", "PGLOCALEDIR", "PGREALM", "PGTTY", "PGSSLKEYLOGFILE",
            "PGOAUTHDEBUG", "PGOAUTHCAFILE", "PGDATA", "PG_COLOR", "PG_COLORS",
        ]

    /// The schema, installed in the template that new databases are copied from.
    private static let schema = ClusterContent(digest: SchemaMigration.build) { endpoint in
        _ = try await SchemaMigration.migrate(database: endpoint.conninfo)
    }

    /// The configuration of the server.
    private static func configuration(stopLimit: Duration, isSmall: Bool) -> EmbeddedPostgres.Configuration {
        var configuration = EmbeddedPostgres.Configuration()
        configuration.stopLimit = stopLimit
        configuration.reserveMiB = 64
        if isSmall {
            configuration.settings = smallLog
            configuration.hasTemplateDatabases = false
        }
        return configuration
    }

    /// Runs the server until shutdown.
    ///
    /// - Throws: `EmbeddedPostgresError` when it can't be started, or not any more.
    func run() async throws {
        do {
            var failures = 0
            while true {
                let end: String
                do {
                    try await cancelWhenGracefulShutdown { try await startWithRoom() }
                    let started = ContinuousClock.now
                    if failures > 0 { remark("the private PostgreSQL runs again") }
                    switch await untilEnd() {
                    case .ofItself: break
                    case .stopped: return
                    case .replaced(let error): throw error
                    }
                    if ContinuousClock.now - started > Self.stable { failures = 0 }
                    end = "the private PostgreSQL has ended by itself"
                } catch let error as EmbeddedPostgresError
                    where error.isKill || error.mayPass && database.current != nil
                {
                    end = "the private PostgreSQL does not start: \(error.brief)"
                }
                failures += 1
                let delay = Self.backoff.delay(failures: failures)
                // A lack of room is reported when it keeps the server from starting.
                if room.lack == nil {
                    remark(
                        "\(end); it is started again"
                            + (delay < .seconds(1) ? "" : " in \(DurationNotation.format(delay))"))
                }
                try await cancelWhenGracefulShutdown { try await Task.sleep(for: delay) }
            }
        } catch {
            await postgres.stop()
            guard error is CancellationError else { throw error }
        }
    }

    /// The error of data that was removed, replaced or damaged while it was used; what is read of it then means nothing. `nil` while the
    /// data is sound.
    func replacement() async -> (any Error)? {
        do {
            try await postgres.checkData()
            guard let reason = damage.current else { return nil }
            if let trouble = try await postgres.trouble(telling: reason) { return trouble }
            return await postgres.damaged(reason)
        } catch {
            return error
        }
    }

    /// The error that the data is damaged, with the command to type; `nil` without a server.
    func damage(_ reason: String) async -> (any Error)? { await postgres.damaged(reason) }

    /// Brings the schema up to date, checks that all rows are there, and distinguishes an unusable database from other failures. False if
    /// the server has ended meanwhile.
    private func migrate(_ endpoint: EmbeddedPostgres.Endpoint, losses: Int = 0) async throws -> Bool {
        do {
            _ = try await SchemaMigration.migrate(database: endpoint.conninfo)
            try await SchemaMigration.checkRows(database: endpoint.conninfo)
            return true
        } catch {
            let hasEnded = await postgres.hasEnded(within: Self.dying)
            if let trouble = try await postgres.trouble(telling: "\(error)") { throw trouble }
            if hasEnded { return false }
            if losses < Self.mostLosses, SchemaMigration.isConnectionLoss(error) {
                // One of the server's processes was killed, which ends the other connections too.
                try await Task.sleep(for: Self.backoff.delay(failures: losses + 1))
                return try await migrate(endpoint, losses: losses + 1)
            }
            guard let reason = SchemaMigration.damage(in: error), let damage = await postgres.damaged(reason) else {
                throw error
            }
            throw damage
        }
    }

    /// Starts the server, once its disk has room for it, and brings its schema up to date.
    private func startWithRoom() async throws {
        var fullStarts = 0
        while true {
            do {
                let endpoint = try await postgres.start { [remark] in remark(Self.text($0)) }
                room.found(nil, isRunning: true)
                if database.current == nil, try await migrate(endpoint) { database.fulfil(endpoint.conninfo) }
                return
            } catch let error as EmbeddedPostgresError where error.isLackOfRoom {
                guard onFull == .wait else { throw DiskWatch.failure(error) }
                room.found(error, isRunning: false)
                try await Task.sleep(for: Self.fullPeriod)
            } catch {
                // A shutdown also ends what the schema waits for.
                try Task.checkCancellation()
                // The disk filled up meanwhile. The next start checks the room first, including what was reserved for the server, and says
                // what is missing.
                guard fullStarts < Self.mostFullStarts, await postgres.lacksRoom(behind: error) else { throw error }
                fullStarts += 1
                await postgres.stop(.immediate)
                try await Task.sleep(for: Self.fullStartPause)
            }
        }
    }

    private static func text(_ news: EmbeddedPostgres.StartNews) -> String {
        switch news {
        case .mended(let what): "\(what), and nothing is lost"
        case .waiting(let predecessor):
            "waiting for \(predecessor), which neither answers nor ends, for \(predecessor.limit) at most; \(predecessor.help)"
        }
    }

    /// Why a server ended.
    private enum End {
        /// It has died.
        case ofItself
        /// This service was shut down.
        case stopped
        /// Its data is gone or damaged, as the error says.
        case replaced(any Error)
    }

    /// Waits for the end of the server.
    private func untilEnd() async -> End {
        await withTaskGroup(of: End?.self) { tasks in
            tasks.addTask {
                await postgres.waitUntilExit()
                return .ofItself
            }
            tasks.addTask {
                try? await gracefulShutdown()
                return .stopped
            }
            tasks.addTask { await tend() }
            var end = End.stopped
            for await found in tasks {
                guard let found else { continue }
                end = found
                break
            }
            // Stopping the server also ends the task that waits for it. A server whose data was replaced must not write to the replacement.
            switch end {
            case .ofItself: break
            case .stopped: await postgres.stop()
            case .replaced: await postgres.stop(.immediate)
            }
            tasks.cancelAll()
            return end
        }
    }

    /// Checks the data of the server and maintains the room reserved for it, until it is cancelled.
    private func tend() async -> End? {
        while (try? await Task.sleep(for: Self.period)) != nil {
            if let replacement = await replacement() { return .replaced(replacement) }
            do {
                guard let space = try await postgres.tendReserve() else { continue }
                room.found(space.lack(after: room.lack), owed: space.owedBytes, isRunning: true)
            } catch {
                logger.debug("postgres.reserve.failed", metadata: ["error": "\(error)"])
            }
        }
        return nil
    }
}
