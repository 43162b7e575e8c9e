import Hummingbird
import HummingbirdCore
public import Logging
import MusterCore
import MusterPostgres
import MusterStore
import MusterSystem
import NIOCore
public import ServiceLifecycle

/// A coordinator: any number of them serve one database, with no leader. It keeps no state that it can't lose.
///
/// Runs until graceful shutdown. Then it answers the waiting requests, writes what it has accepted, and ends within ten seconds.
public struct Coordinator: Service {
    private let configuration: CoordinatorConfiguration
    private let logger: Logger
    private let post: WebhookSend
    private let onListening: @Sendable (_ port: Int) async -> Void

    /// A coordinator that is not running yet.
    ///
    /// - Parameters:
    ///   - post: posts events to the receivers of subscriptions, as far as `CoordinatorConfiguration.addressGuard` allows
    ///     their addresses.
    ///   - onListening: called once with the port when requests are accepted.
    public init(
        configuration: CoordinatorConfiguration, logger: Logger, post: @escaping WebhookSend,
        onListening: @escaping @Sendable (_ port: Int) async -> Void = { _ in }
    ) throws(ConfigurationRefusal) {
        try configuration.check()
        self.configuration = configuration
        self.logger = logger
        self.post = post
        self.onListening = onListening
    }

    /// The logger of the database connections. Where the same process starts the database, the code that starts it reports
    /// its state, and only errors are logged here.
    private var databaseLogger: Logger {
        var own = logger
        if configuration.ownsDatabase { own.logLevel = max(.error, logger.logLevel) }
        return own
    }

    /// Serves until graceful shutdown.
    ///
    /// - Throws: `SchemaRefusal` when the database is of another build, now or later; `PostgresError` when it can't be used;
    ///   or the error that kept the coordinator from listening. It waits for a database that can't be reached.
    public func run() async throws {
        do {
            // The database may be starting too, as after a reboot.
            try await cancelWhenGracefulShutdown {
                try await DatabaseStart.patiently(logger: databaseLogger) { try await checkSchema() }
            }
        } catch is CancellationError {
            return
        }
        let database = Self.connections(to: configuration.database)
        var limits = PostgresPool.Limits(maximumConnections: configuration.databaseConnections)
        limits.acquireTimeout = .seconds(5)
        let watch = SchemaWatch(logger: logger)
        let pool = PostgresPool(
            database, limits: limits, logger: databaseLogger,
            onFailure: { [own = configuration.ownProcess] error in if error.isDamage { own.onDamage("\(error)") } },
            prepare: { try await watch.enter($0) })
        do {
            try await serve(pool, database, watch)
        } catch {
            await pool.shutdown()
            throw error
        }
        await pool.shutdown()
    }

    /// The settings of a coordinator's database connections, independent of the server's settings.
    static func connections(to database: String) -> PostgresConfiguration {
        var connections = PostgresConfiguration(database)
        connections.applicationName = "muster-coordinator"
        // Every statement ends well before a worker gives up waiting, by the server's limit: a client that cancels may hit a
        // commit that waits for a standby. A coordinator that is stopped with a transaction open (fault F4) holds its locks
        // for no longer than the idle timeout.
        connections.defaultTimeout = .seconds(15)
        connections.statementTimeout = .seconds(15)
        connections.idleInTransactionTimeout = .seconds(10)
        // A plan with disabled scan types looks expensive: the server would JIT-compile it, for 200 ms at each call of a
        // function.
        connections.settings = ["jit": "off", "max_parallel_workers_per_gather": "0"]
        return connections
    }

    private func serve(_ pool: PostgresPool, _ database: PostgresConfiguration, _ watch: SchemaWatch) async throws {
        var policy = Store.Policy()
        policy.firstChunk = configuration.minimumChunk.bytes
        policy.connectionsPerOrigin = configuration.maxConnectionsPerOrigin
        policy.fleetRate = configuration.maxBytesPerSecond
        policy.backoffBase = configuration.retryBase
        policy.backoffMaximum = configuration.retryMaximum
        policy.attempts = configuration.attempts
        policy.unreachedAttempts = configuration.unreachedAttempts
        policy.waitsForRoom = configuration.waitsForRoom
        let wakeup = Wakeup()
        let store = Store(pool: pool, policy: policy) { wakeup($0) }
        let metrics = CoordinatorMetrics()
        let clock = MonotonicClock.system
        let bell = Bell()
        let asked = AskedSessions()
        let dispatcher = ClaimDispatcher(
            store: store, signal: wakeup.claims, metrics: metrics, logger: logger, clock: clock, asked: asked)
        let sequencer = EventSequencer(
            store: store, door: wakeup.commits, bell: bell, metrics: metrics, logger: logger)
        let hinter = WorkHinter(store: store, door: wakeup.hints, logger: logger)
        let writer = ReportWriter(
            store: store,
            planner: ChunkPlanner(bounds: configuration.minimumChunk...configuration.maximumChunk), metrics: metrics,
            logger: logger, random: { Double.random(in: 0..<1) })
        let reports = ReportBatcher(writer: writer)
        let deliverer = Deliverer(
            store: store, post: post, bell: bell, door: wakeup.deliveries, policy: configuration.delivery,
            metrics: metrics, logger: logger, random: { Double.random(in: 0..<1) })
        let api = API(
            store: store,
            syncs: SyncService(
                store: store, dispatcher: dispatcher, reports: reports, configuration: configuration, metrics: metrics,
                asked: asked, logger: logger),
            bell: bell, clock: clock, configuration: configuration, metrics: metrics, logger: logger)
        let limits = configuration.connections
        let connections = ConnectionTable(limit: limits.count)
        var serverLogger = logger
        // Where only errors are logged, silence the server: it is no error that the server is stopped in the middle of a request.
        if logger.logLevel >= .error { serverLogger.logLevel = .critical }
        let listening = Listening(host: configuration.listenHost, port: configuration.listenPort)
        let server = Application(
            router: api.router(),
            server: HTTPServerBuilder { responder in
                CoordinatorChannel(table: connections, limits: limits, responder: responder)
            },
            configuration: ApplicationConfiguration(
                address: .hostname(configuration.listenHost, port: configuration.listenPort), serverName: "muster",
                backlog: Limits.listenBacklog),
            onServerRunning: { channel in
                listening.begin()
                await onListening(channel.localAddress?.port ?? configuration.listenPort)
            },
            logger: serverLogger)
        let listener = HintListener(
            listener: PostgresListener(
                database, channels: Store.Channel.allCases.map(\.rawValue), logger: databaseLogger,
                admit: { try await watch.admit($0) }),
            claims: wakeup.claims, bell: bell)
        let grace = SessionGrace()
        let sweeps = Sweeps(
            store: store, dispatcher: dispatcher, sequencer: sequencer, claims: wakeup.claims, grace: grace,
            configuration: configuration, metrics: metrics, logger: logger)
        let rounds = RoundTable(
            rounds: configuration.adjustRounds(sweeps.rounds),
            lanes: RoundTable.lanes(connections: configuration.databaseConnections), metrics: metrics, logger: logger,
            clock: clock,
            onFailure: { error in
                if let error = error as? PostgresError, error.isUnavailable { grace.notice() }
            })

        // Services stop in the reverse order: first those that create work, then the server, whose requests still need the
        // batcher and the sequencer, and these two at the end.
        let services: [any Service] = [
            sequencer, reports, hinter, listening.service(server), dispatcher, listener, rounds, deliverer, watch,
        ]
        var group = ServiceGroupConfiguration(
            services: services.map {
                .init(
                    service: NamedService($0), successTerminationBehavior: .gracefullyShutdownGroup,
                    failureTerminationBehavior: .gracefullyShutdownGroup)
            },
            logger: logger)
        group.maximumGracefulShutdownDuration = .seconds(8)
        try await ServiceGroup(configuration: group).run()
    }

    private func checkSchema() async throws {
        let database = PostgresConfiguration(configuration.database)
        try await SchemaMigration.checkSessions(database)
        if let refusal = try await Migrator(database).difference() { throw refusal }
    }
}

/// Brings a database's schema up to this build.
public enum SchemaMigration {
    /// Names this build of the schema.
    public static var build: String { Migrator.build }

    /// Applies what is missing. Returns the names of the tables that were applied, and `verbs` if functions were installed;
    /// nothing when the database is of this build already.
    ///
    /// - Throws: `SchemaRefusal` when no migration leads from the database to this build, or while coordinators use the database.
    public static func migrate(database: String) async throws -> [String] {
        let database = PostgresConfiguration(database)
        try await checkSessions(database)
        return try await Migrator(database).migrate()
    }

    /// Refuses a pooler between that gives each transaction another session.
    static func checkSessions(_ database: PostgresConfiguration) async throws {
        guard try await PostgresConnection.haveOwnSessions(database) else {
            throw PostgresError.connection(
                .init(
                    kind: .badConfiguration,
                    message: "the connection string leads to a pooler that gives each transaction another session of "
                        + "PostgreSQL (pgbouncer with pool_mode=transaction); use pool_mode=session, or connect directly"
                ))
        }
    }

    /// Checks that no table has lost rows that other tables refer to. A database without other supervision may have lost
    /// rows while it was not in use.
    ///
    /// - Throws: `PostgresError`, which `damage(in:)` turns into a message.
    public static func checkRows(database: String) async throws {
        try await Migrator(PostgresConfiguration(database)).checkRows()
    }

    /// Whether the connection to the database could not be made, or broke.
    public static func isConnectionLoss(_ error: any Error) -> Bool {
        if case .connection? = error as? PostgresError { true } else { false }
    }

    /// The message of a failure that damaged files of the database cause: class XX, an undefined file, or a database whose
    /// directory is gone. `nil` for other failures.
    public static func damage(in error: any Error) -> String? {
        // Only the migrator makes functions and tables. If one exists without the migrator's record of it, the record was lost.
        guard let error = error as? PostgresError, error.isDamage || ["42723", "42P07"].contains(error.sqlState?.code)
        else { return nil }
        return "\(error)"
    }
}
