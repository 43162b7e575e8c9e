import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport

@testable import MusterCoordinator

/// A test's own database with a log of any length, and no coordinator at work on it.
struct LongLog: Sendable {
    let pool: PostgresPool
    let store: Store

    /// The type of the last event; all other events have another type.
    static let lastType = "dev.muster.group.failed.v1"

    /// Runs a test on an empty log.
    static func with(_ body: @Sendable (LongLog) async throws -> Void) async throws {
        try await TestGate.shared.pass {
            let database = try await TestPostgres.shared().makeDatabase()
            _ = try await SchemaMigration.migrate(database: database.conninfo)
            let pool = PostgresPool(PostgresConfiguration(database.conninfo), limits: .init(maximumConnections: 2))
            do {
                try await body(LongLog(pool: pool, store: Store(pool: pool)))
            } catch {
                await pool.shutdown()
                throw error
            }
            await pool.shutdown()
        }
    }

    /// Fills the log with `count` events, the last of which has the type `lastType`.
    func fill(_ count: Int64) async throws {
        _ = try await pool.query(
            """
            INSERT INTO events (id, position, type, subject, data, at)
            SELECT 'e-' || n, n, CASE WHEN n = \(count) THEN \(Self.lastType) ELSE 'dev.muster.task.succeeded.v1' END,
                'groups/g', '{}', statement_timestamp()
            FROM generate_series(1, \(count)) AS n
            """)
        _ = try await pool.query("UPDATE event_log SET last_position = \(count)")
    }
}
