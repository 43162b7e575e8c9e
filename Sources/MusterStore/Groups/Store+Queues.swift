public import MusterCore
import MusterPostgres

extension Store {
    /// What groups with ready chunks wait for; groups without such chunks, and groups that may not run, are left out. It
    /// takes one query for any number of groups, and looks at the most urgent groups of the same sinks only
    /// (`UrgentGroups.considered`).
    public func queues(of groups: [GroupID]) async throws -> [GroupID: GroupQueue] {
        guard !groups.isEmpty else { return [:] }
        return try await query(queueRows(of: groups)).reduce(into: [:]) { queues, row in
            let id: GroupID = try row.decode("group_id")
            var queue =
                try queues[id]
                ?? GroupQueue(
                    origins: [], areWorkersBusy: row.decode("is_busy"), urgentForSlots: UrgentGroups(takers: row))
            queue.origins.append(
                GroupQueue.Origin(
                    key: try row.decode("key"), isFull: try row.decode("is_full"), urgent: try UrgentGroups(row)))
            queues[id] = queue
        }
    }

    /// A row for each group and each origin that is not paused and has ready chunks of the group.
    private func queueRows(of groups: [GroupID]) -> SQL {
        """
        WITH asked AS MATERIALIZED (
            SELECT g.id, g.name, g.sink, g.priority, g.max_connections, g.state IN ('open', 'sealed') AND group_may_run(g) AS may_run
            FROM groups g WHERE g.id = ANY (\(groups))
        ), considered AS MATERIALIZED (
            SELECT * FROM asked
            UNION ALL
            SELECT u.* FROM (SELECT sink, min(priority) AS priority FROM asked GROUP BY 1) AS a CROSS JOIN LATERAL (
                SELECT g.id, g.name, g.sink, g.priority, g.max_connections, group_may_run(g) AS may_run
                FROM groups g WHERE g.sink = a.sink AND g.state IN ('open', 'sealed') AND g.priority > a.priority
                    AND g.id <> ALL (\(groups))
                ORDER BY g.priority DESC, g.served, g.id LIMIT \(UrgentGroups.considered)) AS u
        ), ready AS MATERIALIZED (
            SELECT g.id, g.name, g.sink, g.priority, r.origin_id, coalesce(free_lanes_of(g.id, g.max_connections) > 0, true) AS may_grow
            FROM considered g CROSS JOIN LATERAL (SELECT * FROM ready_origins(g.id) LIMIT \(GroupSituation.most)) AS r (origin_id)
            WHERE g.may_run AND r.origin_id > 0
        ), held AS MATERIALIZED (
            -- A group at its cap takes only the connections that it has had.
            SELECT r.*, coalesce(l.lanes, 0) AS lanes
            FROM ready r LEFT JOIN (
                SELECT group_id, origin_id, count(DISTINCT (session_id, lane)) AS lanes FROM leases
                WHERE origin_id > 0 AND group_id IN (SELECT id FROM ready WHERE NOT may_grow) GROUP BY 1, 2
            ) AS l ON l.group_id = r.id AND l.origin_id = r.origin_id
        ), ranked AS MATERIALIZED (
            SELECT h.id, h.sink, h.origin_id, h.name, h.priority, rank() OVER urgency - 1 AS urgent,
                row_number() OVER (PARTITION BY h.sink, h.origin_id ORDER BY h.priority DESC, h.name) AS place,
                count(*) FILTER (WHERE h.may_grow) OVER urgency - count(*) FILTER (WHERE h.may_grow) OVER peers AS growing,
                sum(h.lanes) OVER urgency - sum(h.lanes) OVER peers AS lanes
            FROM held h WHERE h.may_grow OR h.lanes > 0 OR h.id IN (SELECT id FROM asked)
            WINDOW urgency AS (PARTITION BY h.sink, h.origin_id ORDER BY h.priority DESC),
                peers AS (PARTITION BY h.sink, h.origin_id, h.priority)
        ), foremost AS MATERIALIZED (
            SELECT sink, origin_id, array_agg(name ORDER BY place) AS names, array_agg(priority ORDER BY place) AS priorities
            FROM ranked WHERE place <= \(Int64(UrgentGroups.named)) GROUP BY 1, 2
        ), origin AS MATERIALIZED (
            SELECT o.id, o.key, n.lanes, n.lanes >= allowed_connections(o, \(policy.connectionsPerOrigin)) AS is_full
            FROM origins o CROSS JOIN LATERAL (SELECT count(*) AS lanes FROM lanes_to(o.id)) AS n
            WHERE o.id IN (SELECT origin_id FROM ready WHERE id IN (SELECT id FROM asked)) AND NOT is_resting(o)
        ), busy AS MATERIALIZED (
            SELECT a.sink, NOT EXISTS (
                SELECT 1 FROM sessions s WHERE a.sink = ANY (s.sinks) AND s.expires_at > statement_timestamp() AND NOT s.draining
                    AND a.sink <> ALL (s.parked) AND s.slots > (SELECT count(*) FROM leases l WHERE l.session_id = s.id)) AS is_busy
            FROM (SELECT DISTINCT sink FROM asked) AS a
        ), taker AS MATERIALIZED (
            -- Groups that take the slots that come free, whichever origins they ask.
            SELECT DISTINCT r.id, r.sink, r.name, r.priority
            FROM ready r JOIN busy b ON b.sink = r.sink AND b.is_busy JOIN origins o ON o.id = r.origin_id
            WHERE r.may_grow AND NOT is_resting(o)
                AND (SELECT count(*) FROM lanes_to(o.id)) < allowed_connections(o, \(policy.connectionsPerOrigin))
        )
        SELECT r.id AS group_id, o.key, o.is_full, b.is_busy, r.urgent, f.priorities[1] AS urgent_priority,
            r.urgent > 0 AND (r.growing > 0 OR o.is_full AND r.lanes >= o.lanes) AS is_behind,
            ARRAY (SELECT n.name FROM unnest(f.names, f.priorities) AS n (name, priority)
                WHERE n.priority > r.priority ORDER BY n.priority DESC, n.name) AS urgent_names,
            t.takers, t.taker_names, t.taker_priority
        FROM ranked r JOIN origin o ON o.id = r.origin_id JOIN busy b ON b.sink = r.sink
        JOIN foremost f ON f.sink = r.sink AND f.origin_id = r.origin_id
        CROSS JOIN LATERAL (
            SELECT count(*) AS takers, max(t.priority) AS taker_priority,
                coalesce((array_agg(t.name ORDER BY t.priority DESC, t.name))[:\(Int64(UrgentGroups.named))], '{}') AS taker_names
            FROM taker t WHERE t.sink = r.sink AND t.priority > r.priority
        ) AS t
        WHERE r.id IN (SELECT id FROM asked)
        ORDER BY r.id, o.key
        """
    }
}

extension UrgentGroups {
    /// The columns `is_behind`, `urgent`, `urgent_names` and `urgent_priority`; `nil` where `is_behind` is false.
    fileprivate init?(_ row: PostgresRow) throws {
        guard try row.decode("is_behind") else { return nil }
        self.init(
            names: try row.decode("urgent_names"), count: try row.decode("urgent"),
            priority: try row.decode("urgent_priority"))
    }

    /// The columns `takers`, `taker_names` and `taker_priority`; `nil` for none.
    fileprivate init?(takers row: PostgresRow) throws {
        let count: Int64 = try row.decode("takers")
        guard count > 0 else { return nil }
        self.init(
            names: try row.decode("taker_names"), count: count, priority: try row.decode("taker_priority"))
    }
}
