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
    /// - Parameter admit: is told where the connection leads, before the database becomes a new incarnation.
    /// - Throws: `SchemaRefusal` when the database is of another build, what `timeline(of:)` throws, or what `admit` throws.
    public static func enter(
        _ connection: PostgresConnection, admit: @Sendable (DatabaseTimeline) throws -> Void = { _ in }
    ) async throws {
        _ = try await connection.query("SELECT pg_advisory_lock_shared(\(key))::text")
        if let difference = try await Migrator.difference(connection) { throw difference }
        try admit(try await timeline(of: connection))
        _ = try await connection.query("SELECT enter_incarnation()::text")
    }

    /// Where a connection leads.
    ///
    /// - Throws: `PostgresError`; of the kind `unreachable` for a standby, to which a connection string may lead
    ///   (`target_session_attrs=any`): a connection that is open during its promotion would miss the new incarnation.
    public static func timeline(of connection: PostgresConnection) async throws -> DatabaseTimeline {
        let rows = try await connection.query("SELECT t.cluster, t.number FROM database_timeline() AS t")
        guard let row = rows.first else {
            throw PostgresError.connection(.init(kind: .unreachable, message: "the server is a standby"))
        }
        return DatabaseTimeline(cluster: try row.decode("cluster"), number: try row.decode("number"))
    }
}

/// A part of the history of a cluster of PostgreSQL. Each promotion of a standby and each restore to a point in time begins a
/// new timeline, with a higher number (`adr/0022`).
public struct DatabaseTimeline: Sendable, Hashable {
    /// The identifier of the cluster, which its standbys and backups share.
    public let cluster: String
    /// The number of the timeline, from 1.
    public let number: Int64

    /// A timeline of a cluster.
    public init(cluster: String, number: Int64) {
        self.cluster = cluster
        self.number = number
    }

    /// Whether it is a part of the same cluster's history that was left for `other`: its server is a former primary.
    public func isOlder(than other: DatabaseTimeline) -> Bool {
        cluster == other.cluster && number < other.number
    }
}
