public import MusterPostgres

/// Keeps a coordinator and the schema of its database at one build (`adr/0016`).
///
/// A connection that may call verbs holds an advisory lock in shared mode for as long as it lives; a migration holds it
/// exclusively. The build is read after the lock is held, by a statement of its own: a single statement could read with
/// a snapshot from before the lock.
public enum SchemaFence {
    /// The key of the lock. The first number is Muster's, the second one the schema's.
    static let key: SQL = "7300, 1"

    /// Admits a connection. If the database has lost commits since it was last used, it becomes a new incarnation
    /// (`enter_incarnation`).
    ///
    /// - Throws: `SchemaRefusal` when the database is of another build, `PostgresError` when it can't be asked.
    public static func enter(_ connection: PostgresConnection) async throws {
        _ = try await connection.query("SELECT pg_advisory_lock_shared(\(key))::text")
        if let difference = try await Migrator.difference(connection) { throw difference }
        _ = try await connection.query("SELECT enter_incarnation()::text")
    }
}
