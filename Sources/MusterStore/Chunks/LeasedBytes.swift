import MusterPostgres

/// Bytes being fetched under a set of leases: those of a session, or those on an origin.
public struct LeasedBytes: Sendable, Hashable {
    /// The number of leases of any kind.
    public let leases: Int64
    /// The number of leases that fetch.
    public let fetching: Int64
    /// Durable bytes of the chunks being fetched.
    public let done: Int64
    /// The sum of the known lengths of these chunks.
    public let total: Int64
    /// Chunks of unknown length: the origin has not answered, or does not state a size.
    public let unknown: Int64
    /// Seconds that the slowest lease still needs, each at its own speed since it was granted; `nil` if none makes
    /// progress.
    public let slowestSeconds: Int64?

    /// The sums over the leases `l` that meet a condition: one row, named `u`, to be joined. Leases must have an index for
    /// the condition.
    static func sums(where condition: SQL) -> SQL {
        """
        LATERAL (
            SELECT count(*) AS leases, count(*) FILTER (WHERE m.fetches) AS leases_fetching,
                coalesce(sum(m.durable - m.first) FILTER (WHERE m.fetches), 0)::bigint AS leased_done,
                coalesce(sum(m.last - m.first) FILTER (WHERE m.fetches AND m.is_known), 0)::bigint AS leased_total,
                count(*) FILTER (WHERE m.fetches AND NOT m.is_known) AS leased_unknown,
                max(m.seconds) FILTER (WHERE m.fetches AND m.is_known) AS leased_seconds
            FROM (
                SELECT l.first, l.last, l.durable, l.kind = 'fetch' AS fetches, \(seconds) AS seconds,
                    -- Before the first answer a chunk ends where one of a large file would.
                    l.last IS NOT NULL AND coalesce(t.planned OR t.size IS NOT NULL, false) AS is_known
                FROM leases l LEFT JOIN tasks t ON t.id = l.task_id
                WHERE \(condition)
            ) AS m
        ) AS u
        """
    }

    /// Seconds that a lease `l` still needs at its speed since it was granted; NULL if its end is not known, or if nothing
    /// has come for 20 seconds.
    static let seconds: SQL = """
        CASE WHEN l.durable > l.resume AND l.last IS NOT NULL AND l.progress_at > statement_timestamp() - interval '20 seconds'
            THEN least(1e15, ceil((l.last - l.durable)::double precision * greatest(100, busy_ms(l.granted_at))
                / (l.durable - l.resume) / 1000))::bigint END
        """
}

extension LeasedBytes {
    /// A row with `sums`.
    init(_ row: PostgresRow) throws {
        leases = try row.decode("leases")
        fetching = try row.decode("leases_fetching")
        done = try row.decode("leased_done")
        total = try row.decode("leased_total")
        unknown = try row.decode("leased_unknown")
        slowestSeconds = try row.decode("leased_seconds")
    }
}
