public import MusterCore
import MusterPostgres

/// A live worker whose syncs are overdue.
public struct SilentWorker: Hashable, Sendable {
    /// Its name.
    public let name: String
    /// When the coordinator last heard from it.
    public let seenAt: Timestamp
    /// When its session and its leases end, unless it syncs before.
    public let endsAt: Timestamp

    /// Whether the worker of a session `s` is silent. A worker syncs at least three times in the life of its session, and
    /// every three seconds while bytes come. It is silent after a third of that life without a sync, or after 6 s while
    /// bytes come: it has missed two syncs then.
    static let isSilent: SQL = """
        (s.seen_at < statement_timestamp() - (s.expires_at - s.seen_at) / 3
            OR s.seen_at < statement_timestamp() - interval '6 s' AND EXISTS (
                SELECT 1 FROM leases b WHERE b.session_id = s.id AND b.durable > b.resume AND b.progress_at > s.seen_at - interval '3 s'))
        """

    /// The `WITH` tables that a statement with `join` needs: the live sessions. Each session is judged once, whatever the
    /// number of its groups.
    static let tables: SQL = """
        alive AS MATERIALIZED (
            SELECT s.id, s.worker, s.seen_at, s.expires_at, s.sinks, s.parked, s.sink_status, s.draining,
                \(isSilent) AS is_silent
            FROM sessions s WHERE s.expires_at > statement_timestamp()
        ), crews AS MATERIALIZED (
            -- A sink that was refused when the session was opened is parked, and not one of its sinks.
            SELECT sink, count(*) AS reaching, count(*) FILTER (WHERE n.is_present) AS present,
                -- What one that leaves, or is gone perhaps, has seen of its sink is no news.
                count(*) FILTER (WHERE n.is_present AND sink = ANY (a.parked)) AS parked,
                min((SELECT status ->> 'detail' FROM jsonb_array_elements(a.sink_status) AS status
                    WHERE status ->> 'name' = sink LIMIT 1)) FILTER (WHERE n.is_present AND sink = ANY (a.parked)) AS parked_detail,
                bool_and(a.is_silent) FILTER (WHERE NOT a.draining) AS all_silent
            FROM alive a CROSS JOIN LATERAL (SELECT NOT a.is_silent AND NOT a.draining AS is_present) AS n,
                LATERAL (SELECT unnest(a.sinks) UNION SELECT unnest(a.parked)) AS u (sink)
            GROUP BY sink
        ), silent AS MATERIALIZED (
            SELECT * FROM alive WHERE is_silent
        ), holders AS MATERIALIZED (
            SELECT held.group_id, array_agg(s.id) AS sessions
            -- A question for each of them, by index: a join would read all leases, also where no worker is silent.
            FROM silent s CROSS JOIN LATERAL (
                SELECT DISTINCT l.group_id FROM leases l WHERE l.session_id = s.id AND l.kind <> 'purge'
            ) AS held GROUP BY held.group_id
        )
        """

    /// Joins to each group `g` the sessions that reach its sink, and the silent workers that the group waits for, the
    /// longest silent first. The group waits for workers that hold leases of it, and for all workers that reach its sink if
    /// all of these are silent.
    static let join: SQL = """
        LEFT JOIN crews ON crews.sink = g.sink
        LEFT JOIN holders ON holders.group_id = g.id
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(few.worker ORDER BY few.seen_at, few.id), '{}') AS silent_workers,
                coalesce(array_agg(few.seen_at ORDER BY few.seen_at, few.id), '{}') AS silent_since,
                coalesce(array_agg(few.expires_at ORDER BY few.seen_at, few.id), '{}') AS silent_until
            FROM (
                SELECT s.* FROM silent s
                WHERE crews.all_silent AND NOT s.draining AND g.sink = ANY (s.sinks || s.parked) OR s.id = ANY (holders.sessions)
                ORDER BY s.seen_at, s.id LIMIT \(GroupSituation.most)
            ) AS few
        ) AS silence
        """

    /// The workers of a row with `join`.
    static func all(_ row: PostgresRow) throws -> [SilentWorker] {
        let names: [String] = try row.decode("silent_workers")
        let since: [PostgresTimestamp] = try row.decode("silent_since")
        let until: [PostgresTimestamp] = try row.decode("silent_until")
        return names.indices.map { index in
            SilentWorker(
                name: names[index], seenAt: Timestamp(since[index]),
                endsAt: Timestamp(until[index]))
        }
    }
}
