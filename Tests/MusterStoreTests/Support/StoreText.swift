import MusterPostgres

/// The store's visible state as lines of text, to compare with the model's and for people to read.
enum StoreText {
    /// Groups, tasks, chunks and events, sorted; without ids, epochs and times.
    static func lines(_ fixture: StoreFixture) async throws -> [String] {
        try await fixture.values(sql, as: String.self).sorted()
    }

    private static let sql: SQL = """
        SELECT concat_ws(' ', 'group', name, state, desired, 'generation', generation,
            CASE WHEN NOT group_may_run(g) AND desired = 'run' THEN 'waits' END, CASE WHEN overdue THEN 'overdue' END,
            CASE WHEN held THEN 'held' END, 'counts', queued - active_tasks(g.id), active_tasks(g.id), paused,
            finalizing, succeeded, failed, cancelled, 'bytes', bytes_done, bytes_total, unknown_tasks)
        FROM groups g
        UNION ALL
        SELECT concat_ws(' ', 'after', g.name, p.name, r.condition, CASE WHEN r.satisfied_at IS NOT NULL THEN 'satisfied' END)
        FROM group_prerequisites r JOIN groups g ON g.id = r.group_id JOIN groups p ON p.id = r.prerequisite_id
        UNION ALL
        SELECT concat_ws(' ', 'holdouts', count(*)) FROM holdouts
        UNION ALL
        SELECT concat_ws(' ', 'task', g.name, t.key, shown_state(t), 'v', t.version, 'run', t.run, 'attempts', t.attempts,
            'restarts', t.restarts, 'size', coalesce(t.size::text, '?'), 'done', t.bytes_done,
            CASE WHEN t.planned THEN 'planned' END, 'by ' || t.rung,
            CASE WHEN t.fenced THEN 'fenced' END, CASE WHEN t.mixes THEN 'mixes' END, CASE WHEN t.clean THEN 'clean' END,
            CASE WHEN t.state = 'finalizing' AND t.desired = 'pause' THEN 'pausing' END,
            'of ' || t.source)
        FROM tasks t JOIN groups g ON g.id = t.group_id
        UNION ALL
        SELECT concat_ws(' ', 'chunk', g.name, t.key, c.kind, c.first, coalesce(c.last::text, '?'), 'at', c.resume, c.status,
            'source', c.source, 'attempts', c.attempts, 'deaths', c.deaths)
        FROM ready_chunks c JOIN tasks t ON t.id = c.task_id JOIN groups g ON g.id = t.group_id WHERE c.kind <> 'purge'
        UNION ALL
        SELECT concat_ws(' ', 'chunk', g.name, t.key, l.kind, l.first, coalesce(l.last::text, '?'), 'at', l.durable, 'leased',
            'source', l.source, 'attempts', l.attempts, 'deaths', l.deaths)
        FROM leases l JOIN tasks t ON t.id = l.task_id JOIN groups g ON g.id = t.group_id WHERE l.kind <> 'purge'
        UNION ALL
        SELECT concat_ws(' ', 'done', g.name, t.key, d.first, d.last)
        FROM done_chunks d JOIN tasks t ON t.id = d.task_id JOIN groups g ON g.id = t.group_id
        UNION ALL
        SELECT concat_ws(' ', 'purges', status, count(*)) FROM (
            SELECT status FROM ready_chunks WHERE kind = 'purge'
            UNION ALL SELECT 'leased' FROM leases WHERE kind = 'purge') AS purges GROUP BY status
        UNION ALL
        SELECT concat_ws(' ', 'source', g.name, t.key, s.ordinal, o.key, CASE WHEN s.dead THEN 'dead' END, 'by ' || s.rung,
            CASE WHEN s.differs_in = t.version THEN 'differs' END, 'failures', s.failures, 'refreshes', s.refreshes, 'bytes', s.bytes)
        FROM sources s JOIN tasks t ON t.id = s.task_id JOIN groups g ON g.id = t.group_id
        JOIN origins o ON o.id = coalesce(s.fresh_origin_id, s.origin_id)
        UNION ALL
        SELECT concat_ws(' ', 'origin', key, 'learned', learned) FROM origins WHERE learned IS NOT NULL
        UNION ALL
        SELECT concat_ws(' ', 'event', type, data ->> 'group', data ->> 'key', data ->> 'generation', data ->> 'contentVersion')
        FROM (
            -- The same fact is logged once, as it was first told (I9).
            SELECT DISTINCT ON (id) id, type, data
            FROM (SELECT id, type, data, 0 AS serial FROM events UNION ALL SELECT id, type, data, serial FROM pending_events) AS told
            ORDER BY id, serial
        ) AS said
        """
}
