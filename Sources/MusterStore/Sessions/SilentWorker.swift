public import MusterCore
import MusterPostgres

/// A live worker that has not been heard of for longer than it should be.
public struct SilentWorker: Hashable, Sendable {
    /// Its name.
    public let name: String
    /// When it was heard of last.
    public let seenAt: Timestamp
    /// When its session ends, and its leases with it, if nothing is heard of it until then.
    public let endsAt: Timestamp

    /// Whether the worker of a session `s` was not heard of for longer than it should be. It syncs three times in the life of its session at the
    /// least, and every three seconds while bytes come: then two of its syncs are missed.
    static let isSilent: SQL = """
        (s.seen_at < statement_timestamp() - (s.expires_at - s.seen_at) / 3
            OR s.seen_at < statement_timestamp() - interval '6 s' AND EXISTS (
                SELECT 1 FROM leases b WHERE b.session_id = s.id AND b.progress_at > s.seen_at - interval '3 s'))
        """

    /// Whether there are workers that reach the sink of a group `g` and stay, and all of them are silent.
    private static let areAll: SQL = """
        (SELECT coalesce(bool_and(\(isSilent)), false) FROM sessions s
            WHERE g.sink = ANY (s.sinks) AND s.expires_at > statement_timestamp() AND NOT s.draining)
        """

    /// The silent workers that a group `g` waits for, the one that was heard of longest ago first: those that hold something of it, and all that
    /// reach its sink if none of these is heard of.
    static let columns: SQL = """
        \(areAll) AS all_silent,
        ARRAY (\(each("s.worker"))) AS silent_workers,
        ARRAY (\(each("s.seen_at"))) AS silent_since,
        ARRAY (\(each("s.expires_at"))) AS silent_until
        """

    /// One fact about each of them, in the same order. Leases are looked for where a worker is silent, and nowhere else.
    private static func each(_ fact: SQL) -> SQL {
        """
        SELECT \(fact) FROM sessions s
        WHERE s.expires_at > statement_timestamp() AND CASE WHEN \(isSilent) THEN
            g.sink = ANY (s.sinks) AND NOT s.draining AND \(areAll)
            OR EXISTS (SELECT 1 FROM leases l WHERE l.session_id = s.id AND l.group_id = g.id AND l.kind <> 'purge')
        END
        ORDER BY s.seen_at, s.id LIMIT \(GroupExplanationRecord.most)
        """
    }

    /// The workers of a row with `columns`.
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
