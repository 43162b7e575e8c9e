import Glibc
import Logging
import MusterCoordinator
import MusterCore
import MusterEmbeddedPostgres
import ServiceLifecycle
import SystemPackage

/// The private PostgreSQL of `get` and `up`: starts it, brings its schema up to date, starts it again whenever it dies, and shuts it
/// down last.
///
/// It is started again as often as it takes, with a pause that grows, unless it can't be as things are: a database that is damaged, or somebody
/// else's. A first start that fails ends the command, but for one that was killed: nothing says that it can succeed.
///
/// It keeps room for the server on its disk, since the files that are fetched may fill that. When there is no room for the
/// server all the same, it ends with what is missing, or waits, as it is told.
struct PostgresService: Service {
    private static let backoff = Backoff(base: .milliseconds(500), maximum: .seconds(30))
    /// How long it may have run for its death to count as the first one in a row.
    private static let stable: Duration = .seconds(60)
    /// How often the schema is installed again after a lost connection to a server that runs on.
    private static let mostLosses = 5
    /// How soon it is noticed at the latest that a server has ended whose connections have.
    private static let dying: Duration = .seconds(1)
    /// How often its data, and the room on its disk, are looked at.
    private static let period: Duration = .milliseconds(250)
    /// How large its log may grow where it shares the disk with what is fetched. The room that is kept has to do for what is added
    /// to it once the disk is full, and a checkpoint comes at about half of this.
    private static let smallLog = ["min_wal_size": "32MB", "max_wal_size": "128MB"]
    /// How often a start is tried once more whose disk was full meanwhile, and after what time.
    private static let mostFullStarts = 5
    private static let fullStartPause: Duration = .milliseconds(100)
    /// How often a disk that is full is looked at.
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
    ///   - isSmall: whether it takes no more of the disk than it must, for what is fetched is there too.
    ///   - room: told whether its disk has room for it.
    ///   - onFull: what happens when there is none.
    ///   - database: told the connection string once the schema is up to date.
    ///   - damage: what the server has told somebody of damage to its files, once it has.
    ///   - remark: told what a person should know.
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
        // It is meant for other servers, and a connection string can't gainsay all of it: a service, or another address.
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

    /// What libpq reads in the environment (PostgreSQL's documentation, "Environment Variables" of libpq), or a server and its programs do.
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

    /// The schema that a copied database has before its first use.
    private static let schema = ClusterContent(digest: SchemaMigration.build) { endpoint in
        _ = try await SchemaMigration.migrate(database: endpoint.conninfo)
    }

    /// How such a server is tuned.
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
                let delay = Self.backoff.delay(failures: failures, random: 1)
                // What it lacks is told once it does not start for it.
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

    /// What became of the data, if somebody has removed, replaced or damaged it while it was used: what is read of it then means nothing.
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

    /// The error that says that the data is damaged, and what to type; `nil` without a server.
    func damage(_ reason: String) async -> (any Error)? { await postgres.damaged(reason) }

    /// Brings the schema up to date, makes sure that all rows are there, and tells a database that can't be used from one that fails otherwise. False if the server has ended meanwhile.
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
                // One of its processes was killed, and takes the others along.
                try await Task.sleep(for: Self.backoff.delay(failures: losses + 1, random: 1))
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
                // A shutdown ends what the schema waits for, too.
                try Task.checkCancellation()
                // The disk was filled meanwhile. The next start looks for room first, what was kept for the server included, and says what is missing.
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

    /// How a server came to its end.
    private enum End {
        /// It has died.
        case ofItself
        /// This service was shut down.
        case stopped
        /// Its data is not there any more, or damaged, as the error says.
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
            // Stopping the server is also what ends the wait for it. What stands in the place of its data is not for it to write to.
            switch end {
            case .ofItself: break
            case .stopped: await postgres.stop()
            case .replaced: await postgres.stop(.immediate)
            }
            tasks.cancelAll()
            return end
        }
    }

    /// Looks after the data of the server, and after the room that is kept for it, until it is cancelled.
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
