/// The invariants that hold at every commit (`docs/invariants.md`), as one query over a database of Muster: each row
/// describes a violation, in the column `broken`.
///
/// It has no binds, so that `psql` can run it as well as a program that has a connection of its own. Tests run all of it,
/// `muster fsck` the part that costs no more than a pass over the tables.
public enum InvariantQuery {
    /// The violations in the rows of groups, tasks, sources, chunks and leases: in any database, at any time.
    public static let state = """
        WITH part AS MATERIALIZED (
            SELECT task_id, version, kind, first, last, resume AS durable, false AS is_done, false AS is_leased, status, source
            -- A trial may outlive its task.
            FROM ready_chunks WHERE kind NOT IN ('purge', 'trial')
            UNION ALL
            SELECT task_id, version, kind, first, last, durable, false, true, 'leased', source FROM leases
            WHERE kind NOT IN ('purge', 'trial')
            UNION ALL
            SELECT task_id, version, 'fetch', first, last, last, true, false, 'done', NULL FROM done_chunks
        ), laid AS MATERIALIZED (
            SELECT p.*, lag(last) OVER w AS previous, row_number() OVER w AS place
            FROM part p WHERE kind = 'fetch' WINDOW w AS (PARTITION BY task_id, version ORDER BY first, last)
        ), tiled AS MATERIALIZED (
            SELECT task_id, version, count(*) AS pieces, max(last) AS size, bool_or(last IS NULL) AS is_endless,
                bool_and(first = CASE WHEN place = 1 THEN 0 ELSE previous END) IS TRUE AS is_gapless,
                count(*) FILTER (WHERE NOT is_done) AS live, count(*) FILTER (WHERE is_leased) AS leased,
                coalesce(sum(last - first) FILTER (WHERE is_done), 0) AS done_bytes,
                coalesce(sum(durable - first) FILTER (WHERE NOT is_done), 0) AS part_bytes
            FROM laid GROUP BY task_id, version
        ), counted AS MATERIALIZED (
            SELECT g.id AS group_id,
                count(*) FILTER (WHERE t.state = 'queued') AS queued,
                count(*) FILTER (WHERE t.state = 'paused') AS paused,
                count(*) FILTER (WHERE t.state = 'finalizing') AS finalizing,
                count(*) FILTER (WHERE t.state = 'succeeded') AS succeeded,
                count(*) FILTER (WHERE t.state = 'failed') AS failed,
                count(*) FILTER (WHERE t.state = 'cancelled') AS cancelled,
                coalesce(sum(t.bytes_done + coalesce(i.part_bytes, 0)), 0) AS bytes_done,
                coalesce(sum(t.size) FILTER (WHERE t.state <> 'cancelled'), 0) AS bytes_total,
                count(*) FILTER (WHERE t.id IS NOT NULL AND t.size IS NULL AND t.state NOT IN ('failed', 'cancelled'))
                    AS unknown_tasks
            FROM groups g LEFT JOIN tasks t ON t.group_id = g.id
            LEFT JOIN tiled i ON i.task_id = t.id AND i.version = t.version
            GROUP BY g.id
        )
        SELECT 'I2: chunk ' || c.id || ' is ready and leased' AS broken FROM ready_chunks c JOIN leases l ON l.chunk_id = c.id
        UNION ALL
        SELECT 'adr/0025: task ' || t.id || ' is of no group' FROM tasks t
        WHERE NOT EXISTS (SELECT 1 FROM groups g WHERE g.id = t.group_id)
        UNION ALL
        SELECT 'adr/0025: a source of task ' || s.task_id || ' is of no task, or of no origin' FROM sources s
        WHERE NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = s.task_id)
            OR NOT EXISTS (SELECT 1 FROM origins o WHERE o.id = s.origin_id)
        UNION ALL
        SELECT 'I2: task ' || p.task_id || ' has a ' || p.kind || ' chunk of version ' || p.version || ', but is ' ||
            coalesce(t.state || ' of version ' || t.version, 'gone')
        FROM part p LEFT JOIN tasks t ON t.id = p.task_id
        WHERE t.id IS NULL OR t.version <> p.version OR t.state IN ('succeeded', 'cancelled')
        UNION ALL
        SELECT 'I3: task ' || t.id || ' is not tiled: ' || coalesce(i::text, 'no chunks')
        FROM tasks t LEFT JOIN tiled i ON i.task_id = t.id AND i.version = t.version
        WHERE t.state NOT IN ('succeeded', 'cancelled') AND NOT coalesce(CASE
            WHEN t.planned AND t.size IS NOT NULL THEN i.is_gapless AND i.size = t.size AND NOT i.is_endless
            ELSE i.is_gapless AND i.pieces = 1 AND i.live = 1 END, false)
        UNION ALL
        SELECT 'I3: task ' || t.id || ' has ' || coalesce(i.live, 0) || ' chunks left, but says ' || t.chunks_left
        FROM tasks t LEFT JOIN tiled i ON i.task_id = t.id AND i.version = t.version
        WHERE t.state NOT IN ('succeeded', 'cancelled') AND t.chunks_left <> coalesce(i.live, 0)
        UNION ALL
        SELECT 'I4: task ' || task_id || ' has a durable offset outside of its chunk' FROM part
        WHERE durable < first OR durable > last
        UNION ALL
        SELECT 'I4: task ' || t.id || ' says ' || t.bytes_done || ' bytes are done' FROM tasks t
        LEFT JOIN tiled i ON i.task_id = t.id AND i.version = t.version
        WHERE t.bytes_done <> CASE t.state WHEN 'succeeded' THEN t.size WHEN 'cancelled' THEN 0
            ELSE coalesce(i.done_bytes, 0) END
        UNION ALL
        SELECT 'I2: task ' || t.id || ' is ' || t.state || ' and is fetched' FROM tasks t
        JOIN tiled i ON i.task_id = t.id AND i.version = t.version WHERE i.leased > 0 AND t.state <> 'queued'
        UNION ALL
        SELECT 'I13: task ' || t.id || ' is ' || t.state || ' and has a ' || p.kind || ' chunk that is ' || p.status
        FROM tasks t JOIN part p ON p.task_id = t.id
        WHERE t.state IN ('paused', 'failed') AND p.status NOT IN ('parked', 'done')
            OR t.state IN ('queued', 'finalizing') AND p.status = 'parked'
            OR p.kind = 'finalize' AND t.state NOT IN ('finalizing', 'failed')
            OR p.kind = 'fetch' AND NOT p.is_done AND t.state = 'finalizing'
            OR p.kind = 'resolve' AND t.state <> 'queued'
        UNION ALL
        SELECT 'row 22: a trial of group ' || c.group_id || ' is left over' FROM ready_chunks c
        WHERE c.kind = 'trial' AND NOT EXISTS (
            SELECT 1 FROM tasks t JOIN groups g ON g.id = t.group_id
            WHERE t.id = c.task_id AND g.id = c.group_id AND g.state IN ('open', 'sealed'))
        UNION ALL
        SELECT 'row 21: task ' || task_id || ' has ' || count(*) || ' questions' FROM part WHERE kind = 'resolve'
        GROUP BY task_id HAVING count(*) > 1
        UNION ALL
        SELECT 'row 30: task ' || t.id || ' mixes sources that nothing tells apart' FROM tasks t
        WHERE t.mixes AND (t.clean OR t.rung <> 'chunks' OR t.size IS NULL OR t.mirrors = 1
            OR t.expected_digests IS NULL AND t.stated_digests IS NULL AND t.etag NOT LIKE '"%')
        UNION ALL
        SELECT 'row 30: task ' || t.id || ' of source ' || t.source || ' is fetched from source ' || p.source
        FROM tasks t JOIN part p ON p.task_id = t.id AND p.kind = 'fetch' AND p.source <> t.source WHERE NOT t.mixes
        UNION ALL
        SELECT 'I14: task ' || t.id || ' is finalizing and has no chunk for it' FROM tasks t
        LEFT JOIN (SELECT task_id, count(*) AS n FROM part WHERE kind = 'finalize' GROUP BY 1) AS f ON f.task_id = t.id
        WHERE t.state = 'finalizing' AND coalesce(f.n, 0) <> 1
        UNION ALL
        SELECT 'I14: chunk ' || id || ' waits for nothing' FROM ready_chunks
        WHERE (status = 'waiting') <> (not_before IS NOT NULL OR status = 'waiting' AND awaits IS NOT NULL)
        UNION ALL
        SELECT 'I17: task ' || t.id || ' may put its file at ' || t.path || ', where ' || other.work
        FROM leases l JOIN tasks t ON t.id = l.task_id CROSS JOIN LATERAL (
            SELECT 'a purge of task ' || c.task_id || ' is to delete one' FROM ready_chunks c
            WHERE c.sink = t.sink AND c.remove_path = t.path
            UNION ALL
            SELECT 'a purge of task ' || d.task_id || ' deletes one' FROM leases d WHERE d.sink = t.sink AND d.remove_path = t.path
            UNION ALL
            SELECT 'session ' || h.session_id || ' may still put that of task ' || h.task_id FROM holdouts h
            WHERE h.sink = t.sink AND h.path = t.path
        ) AS other (work)
        -- A chunk of several puts nothing in place.
        WHERE l.kind = 'finalize' OR l.kind = 'fetch' AND (NOT t.planned OR l.first = 0 AND l.last IS NOT DISTINCT FROM t.size)
        UNION ALL
        SELECT 'I6: group ' || g.name || ' counts ' || concat_ws(' ', g.queued, g.paused, g.finalizing,
            g.succeeded, g.failed, g.cancelled, g.bytes_done, g.bytes_total, g.unknown_tasks) || ' instead of ' || c::text
        FROM groups g JOIN counted c ON c.group_id = g.id
        WHERE (g.queued, g.paused, g.finalizing, g.succeeded, g.failed, g.cancelled, g.bytes_done, g.bytes_total,
                g.unknown_tasks)
            IS DISTINCT FROM (c.queued, c.paused, c.finalizing, c.succeeded, c.failed, c.cancelled, c.bytes_done,
                c.bytes_total, c.unknown_tasks)
        UNION ALL
        SELECT 'I6: group ' || name || ' remains wrong' FROM groups WHERE remaining <> queued + paused + finalizing
        UNION ALL
        SELECT 'I7: group ' || name || ' is complete but ' || state FROM groups
        WHERE state = 'sealed' AND remaining = 0 AND NOT held AND desired NOT IN ('remove', 'remove_files')
        UNION ALL
        SELECT 'chains: group ' || g.name || ' may begin before ' || p.name FROM groups g
        JOIN group_prerequisites r ON r.group_id = g.id AND r.satisfied_at IS NULL JOIN groups p ON p.id = r.prerequisite_id
        WHERE NOT g.held

        """

    /// Leases whose session is gone. The sweep takes them back within a moment, unless data of their group are in the way.
    static let strays = """
        UNION ALL
        SELECT 'I14: chunk ' || l.chunk_id || ' is leased to session ' || l.session_id || ', which is over' FROM leases l
        WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = l.session_id)

        """

    /// All violations; more checks can be appended with `UNION ALL`. Besides `state`, the whole log is needed, which drops
    /// old events. The caps of groups are compared with the current leases: lowering a cap revokes no lease, so it shows here
    /// until enough leases have ended.
    public static let text =
        state + """
            UNION ALL
            SELECT 'I5: group ' || g.name || ' has ' || count(*) || ' leases' FROM groups g
            JOIN leases l ON l.group_id = g.id AND l.origin_id > 0 GROUP BY g.id HAVING count(DISTINCT (l.session_id, l.lane)) > g.max_connections
            UNION ALL (
                WITH said AS MATERIALIZED (
                    SELECT id, type FROM events UNION SELECT id, type FROM pending_events
                ), ending AS MATERIALIZED (
                    SELECT split_part(id, '-', 2)::bigint AS group_id, split_part(id, '-', 3)::integer AS generation, count(*) AS n
                    FROM said WHERE type IN ('dev.muster.group.succeeded.v1', 'dev.muster.group.failed.v1',
                        'dev.muster.group.cancelled.v1')
                    GROUP BY 1, 2
                )
                SELECT 'I7: group ' || g.name || ' is ' || g.state || ' in generation ' || g.generation || ', generation ' || past
                    || ' has ' || coalesce(e.n, 0) || ' endings'
                FROM groups g CROSS JOIN generate_series(1, g.generation) AS past
                LEFT JOIN ending e ON e.group_id = g.id AND e.generation = past
                WHERE coalesce(e.n, 0) <> CASE WHEN past = g.generation AND g.state IN ('open', 'sealed') THEN 0 ELSE 1 END
                UNION ALL
                SELECT 'I7: group ' || e.group_id || ' has an ending of generation ' || e.generation
                FROM ending e JOIN groups g ON g.id = e.group_id WHERE e.generation > g.generation
                UNION ALL
                SELECT 'I7: task ' || t.id || ' is ' || t.state || ' without an event' FROM tasks t
                WHERE t.state IN ('succeeded', 'failed', 'cancelled')
                    AND NOT EXISTS (SELECT 1 FROM said e WHERE starts_with(e.id, 'tsk-' || t.id || '-' || t.run || '-' || t.state))
                UNION ALL
                SELECT 'I9: ' || count(position) || ' positions up to ' || coalesce(max(position), 0) || ', log says ' || l.last_position
                FROM event_log l LEFT JOIN events e ON true
                GROUP BY l.last_position HAVING count(position) <> coalesce(max(position), 0)
                    OR coalesce(max(position), 0) <> l.last_position
            )

            """
}
