import Logging
import MusterCoordinator
import MusterCore
import MusterEmbeddedPostgres
import ServiceLifecycle
import SystemPackage

/// The private PostgreSQL of `get` and `up`: starts it, brings its schema up to date, restarts it if it dies, and shuts it
/// down last.
struct PostgresService: Service {
    /// How often in a row it is restarted before that is given up.
    private static let restarts = 5
    private static let backoff = Backoff(base: .milliseconds(500), maximum: .seconds(10))
    /// How long it may have run for its death to count as the first one in a row.
    private static let stable: Duration = .seconds(60)

    private let postgres: EmbeddedPostgres
    private let database: Eventual<String>
    private let logger: Logger

    /// A server in a state directory.
    ///
    /// - Parameters:
    ///   - stopLimit: how long a shutdown may take until the server is stopped without its final checkpoint.
    ///   - database: told the connection string once the schema is up to date.
    init(
        stateDirectory: FilePath,
        environment: [String: String],
        stopLimit: Duration,
        database: Eventual<String>,
        logger: Logger
    ) {
        var configuration = EmbeddedPostgres.Configuration()
        configuration.stopLimit = stopLimit
        postgres = EmbeddedPostgres(
            stateDirectory: stateDirectory,
            environment: environment,
            configuration: configuration,
            logger: logger
        )
        self.database = database
        self.logger = logger
    }

    /// Runs the server until shutdown.
    ///
    /// - Throws: `EmbeddedPostgresError` when it can't be started, or not any more.
    func run() async throws {
        do {
            var failures = 0
            while true {
                let endpoint = try await cancelWhenGracefulShutdown { try await postgres.start() }
                let started = ContinuousClock.now
                if database.current == nil {
                    _ = try await SchemaMigration.migrate(database: endpoint.conninfo)
                    database.fulfil(endpoint.conninfo)
                }
                guard await endsByItself() else { return }
                failures = ContinuousClock.now - started > Self.stable ? 1 : failures + 1
                guard failures <= Self.restarts else {
                    throw CommandFailure.other("PostgreSQL keeps ending by itself; see the logs in its directory")
                }
                logger.warning("postgres.restart", metadata: ["attempt": "\(failures)"])
                let delay = Self.backoff.delay(failures: failures, random: 1)
                try await cancelWhenGracefulShutdown { try await Task.sleep(for: delay) }
            }
        } catch {
            await postgres.stop()
            guard error is CancellationError else { throw error }
        }
    }

    /// Waits for the end of the server; false when that was the shutdown of this service.
    private func endsByItself() async -> Bool {
        await withTaskGroup(of: Bool.self) { tasks in
            tasks.addTask {
                await postgres.waitUntilExit()
                return true
            }
            tasks.addTask {
                try? await gracefulShutdown()
                return false
            }
            let isByItself = await tasks.next() ?? false
            // Stopping the server is also what ends the wait for it.
            if !isByItself { await postgres.stop() }
            tasks.cancelAll()
            return isByItself
        }
    }
}
