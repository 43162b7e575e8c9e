public import MusterCore
import MusterPostgres

/// An origin as it is stored.
public struct OriginRecord: Sendable {
    /// Scheme, host and port.
    public let key: String
    /// Its own cap on leases, if it has one.
    public let maxConnections: Int32?
    /// Leases on it now.
    public let leases: Int64
    /// Nothing is leased on it before this moment.
    public let pausedUntil: Timestamp?
}

extension Store {
    /// The origins that are known.
    public func origins() async throws -> [OriginRecord] {
        try await query(
            """
            SELECT o.key, o.max_connections, (SELECT count(*) FROM leases l WHERE l.origin_id = o.id) AS leases,
                CASE WHEN o.not_before > statement_timestamp() THEN o.not_before END AS paused_until
            FROM origins o ORDER BY o.key LIMIT 10000
            """
        ).map { row in
            OriginRecord(
                key: try row.decode("key"), maxConnections: try row.decode("max_connections"),
                leases: try row.decode("leases"),
                pausedUntil: try row.decode("paused_until", as: PostgresTimestamp?.self).map(Timestamp.init))
        }
    }
}
