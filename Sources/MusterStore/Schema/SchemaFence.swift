public import MusterPostgres

/// Keeps the verbs that a coordinator calls and the schema of its database one build (`adr/0016`).
///
/// A connection that may call verbs holds an advisory lock in shared mode for as long as it lives; a migration holds it
/// exclusively. The build is read after the lock is held, by a statement of its own: one that did both could read with a
/// snapshot from before the lock.
public enum SchemaFence {
    /// The key of the lock. The first number is Muster's, the second one the schema's.
    static let key: SQL = "7300, 1"

    /// Lets a connection in. Where the database has lost something since it was last used, what it says from now on is told from that
    /// (`enter_incarnation`).
    ///
    /// - Throws: `SchemaRefusal` when the database is of another build, `PostgresError` when it can't be asked.
    public static func enter(_ connection: PostgresConnection) async throws {
        _ = try await connection.query("SELECT pg_advisory_lock_shared(\(key))::text")
        if let difference = try await Migrator.difference(connection) { throw difference }
        _ = try await connection.query("SELECT enter_incarnation()::text")
    }
}
