import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport

@testable import MusterCoordinator

/// A database of a test's own whose log is as long as the test wants, and nobody who works on it.
struct LongLog: Sendable {
    let pool: PostgresPool
    let store: Store

    /// The type of the last event; all others have another one.
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

    /// Lets the log have so many events, of which one is of the last type.
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
