public import MusterCore
import MusterPostgres

extension Store {
    /// A group, and why it is not done. It takes a few queries that cost the same whatever the size of the group. No query
    /// walks the group's tasks: states are counted in the group's row, chunks by index and up to a limit.
    public func explanation(of name: String) async throws -> (group: GroupRecord, situation: GroupSituation) {
        let group = try await group(name)
        guard var situation = try await situations(of: [group.id])[group.id] else { throw Refusal.noSuchGroup(name) }
        if group.isHeld { situation.lost = try await lostPrerequisites(of: group.id) }
        if group.tasks[.failed] ?? 0 > 0 { situation.failures = try await failures(of: group.id) }
        if group.tasks[.succeeded] ?? 0 > 0 { situation.doubtful = try await doubtful(in: group.id) }
        if !group.state.isTerminal {
            situation.roomless = try await roomless(in: group.id)
            situation.retried = try await retried(in: group.id)
            if situation.origins.contains(where: { $0.readyChunks > 0 }) {
                let queue = try await queues(of: [group.id])[group.id]
                situation.urgent = queue?.urgent ?? [:]
                situation.urgentForSlots = queue?.urgentForSlots
            }
        }
        return (group, situation)
    }

    /// The first failed tasks of a group.
    private func failures(of group: GroupID) async throws -> [GroupSituation.Failure] {
        try await query(
            """
            SELECT key, failure_kind, failure_detail, failure_status FROM tasks WHERE group_id = \(group) AND state = 'failed'
            ORDER BY id LIMIT \(GroupSituation.namedFailures)
            """
        ).map(GroupSituation.Failure.init)
    }

    /// The succeeded tasks of a group whose content may be a page in the place of the file, where nothing tells.
    private func doubtful(in group: GroupID) async throws -> DoubtfulFiles? {
        let rows = try await query(
            """
            SELECT t.key, count(*) OVER () AS tasks
            FROM (SELECT DISTINCT a.task_id FROM attempts a WHERE coalesce(a.kind = 'httpStatus(200)', false)) AS p
                JOIN tasks t ON t.id = p.task_id
            WHERE t.group_id = \(group) AND \(TaskRecord.isDoubtful)
            ORDER BY t.id LIMIT \(GroupSituation.namedFailures)
            """)
        return try rows.first.map {
            DoubtfulFiles(tasks: try $0.decode("tasks"), keys: try rows.map { try $0.decode("key") })
        }
    }

    /// The groups at the ends of a chain that block the chain: they have ended, but not in the way that the groups waiting
    /// for them require.
    private func lostPrerequisites(of group: GroupID) async throws -> [PrerequisiteRecord] {
        try await query(
            "SELECT name, condition, state FROM lost_prerequisites(\(group), \(GroupSituation.most))"
        ).map {
            PrerequisiteRecord(
                group: try $0.decode("name"), on: try $0.decode("condition"), state: try $0.decode("state"))
        }
    }

    /// The situations of several groups, with as many queries as for one group. Groups that were removed meanwhile are left
    /// out.
    public func situations(of groups: [GroupID]) async throws -> [GroupID: GroupSituation] {
        let rows = try await query(Self.facts(of: groups))
        let origins = try await origins(of: groups)
        let stragglers = try await stragglers(of: groups)
        return try rows.reduce(into: [:]) { situations, row in
            let id: GroupID = try row.decode("group_id")
            var situation = GroupSituation(at: Timestamp(try row.decode("moment")))
            situation.leases = GroupSituation.Leases(
                connections: try row.decode("connections"), finalizing: try row.decode("finalizing"),
                asking: try row.decode("asking"))
            situation.putOff = GroupSituation.PutOff(
                fetching: try row.decode("put_off_fetching"), finalizing: try row.decode("put_off_finalizing"),
                asking: try row.decode("put_off_asking"), awaiting: try row.decode("awaiting"),
                awaited: try AwaitedTask(row), dueAt: try row.moment("due_at"))
            situation.origins = origins[id] ?? []
            situation.workers = try WorkerCounts(row)
            situation.fleet = try policy.fleetRate.map {
                GroupSituation.Fleet(bytesPerSecondLimit: $0, bytesPerSecond: try row.decode("fleet_rate"))
            }
            situation.stragglers = stragglers[id] ?? []
            situations[id] = situation
        }
    }

    /// The leases and the put-off chunks of each group, and the sessions that could work on it, in one row.
    private static func facts(of groups: [GroupID]) -> SQL {
        """
        SELECT g.id AS group_id, statement_timestamp() AS moment, l.connections, l.finalizing, l.asking,
            c.put_off_fetching, c.put_off_finalizing, c.put_off_asking, c.awaiting, c.due_at, ag.name AS awaited_group, at.key AS awaited_key,
            w.reaching, w.leaving, w.free_slots,
            (SELECT coalesce(sum(bytes_per_second(s.rate_bytes, s.rate_at, s.opened_at)), 0)::bigint
                FROM sessions s WHERE s.expires_at > statement_timestamp()) AS fleet_rate
        FROM groups g, LATERAL (
            SELECT count(DISTINCT (session_id, lane)) FILTER (WHERE lane > 0) AS connections,
                count(*) FILTER (WHERE kind = 'finalize') AS finalizing,
                count(*) FILTER (WHERE kind = 'resolve') AS asking
            FROM (SELECT * FROM leases WHERE group_id = g.id LIMIT 1000) AS few
        ) AS l, LATERAL (
            SELECT count(*) FILTER (WHERE kind = 'fetch' AND awaits IS NULL) AS put_off_fetching,
                count(*) FILTER (WHERE awaits IS NOT NULL) AS awaiting, min(awaits) AS awaits,
                count(*) FILTER (WHERE kind = 'finalize') AS put_off_finalizing,
                count(*) FILTER (WHERE kind = 'resolve') AS put_off_asking, min(not_before) AS due_at
            FROM (
                SELECT kind, not_before, awaits FROM ready_chunks WHERE group_id = g.id AND is_waiting(status)
                ORDER BY not_before LIMIT \(GroupSituation.most + 1)
            ) AS first
        ) AS c LEFT JOIN tasks at ON at.id = c.awaits LEFT JOIN groups ag ON ag.id = at.group_id, LATERAL (
            SELECT count(*) AS reaching, count(*) FILTER (WHERE s.draining) AS leaving,
                coalesce(sum(greatest(0, s.slots - (SELECT count(*) FROM leases l WHERE l.session_id = s.id)))
                    FILTER (WHERE NOT s.draining AND g.sink <> ALL (s.parked)), 0)::bigint AS free_slots
            FROM sessions s WHERE g.sink = ANY (s.sinks || s.parked) AND s.expires_at > statement_timestamp()
        ) AS w
        WHERE g.id = ANY (\(groups))
        """
    }

    /// The origins on which each group has leases, or could get them.
    private func origins(of groups: [GroupID]) async throws -> [GroupID: [GroupSituation.Origin]] {
        try await query(
            """
            SELECT g.id AS group_id, x.*
            FROM unnest(\(groups)) AS g (id) CROSS JOIN LATERAL (
                WITH held AS MATERIALIZED (
                    SELECT l.origin_id, count(*) AS leases, count(DISTINCT (l.session_id, l.lane)) AS connections,
                        coalesce(sum(l.last - l.durable), 0)::bigint AS bytes_left,
                        -- A task that is not planned yet has one chunk, and the rest of it comes from where that comes from. The end
                        -- of the chunk says nothing where the size is unknown.
                        sum(CASE WHEN t.planned THEN l.last ELSE t.size END - l.durable)::bigint AS bytes_of_tasks,
                        sum((l.durable - l.resume) * 1000 / greatest(100, busy_ms(l.granted_at)))::bigint AS speed
                    FROM (SELECT * FROM leases WHERE group_id = g.id AND kind = 'fetch' LIMIT 1000) AS l
                    JOIN tasks t ON t.id = l.task_id GROUP BY 1
                ), concerned AS MATERIALIZED (
                    SELECT origin_id FROM held
                    UNION (SELECT origin_id FROM ready_origins(g.id) AS r (origin_id) WHERE origin_id > 0
                        LIMIT \(GroupSituation.most))
                )
                SELECT \(OriginRecord.columns(cap: policy.connectionsPerOrigin, group: "g.id")), coalesce(h.connections, 0) AS own_connections,
                    coalesce(h.bytes_left, 0) AS own_left, coalesce(h.speed, 0) AS own_speed, r.chunks AS own_ready,
                    CASE WHEN r.chunks <= \(GroupSituation.most) AND (SELECT sum(leases) < 1000 FROM held) IS NOT FALSE
                        THEN coalesce(h.bytes_of_tasks + r.bytes, h.bytes_of_tasks, r.bytes) END AS own_left_in_all,
                    row_number() OVER (ORDER BY h.speed NULLS FIRST, o.key) AS place
                FROM concerned n JOIN origins o ON o.id = n.origin_id LEFT JOIN held h ON h.origin_id = o.id
                CROSS JOIN \(OriginRecord.leases)
                CROSS JOIN LATERAL (
                    SELECT count(*) AS chunks,
                        sum(CASE WHEN t.planned THEN few.last ELSE t.size END - few.resume)::bigint AS bytes
                    FROM (
                        SELECT c.task_id, c.last, c.resume FROM ready_chunks c
                        WHERE c.group_id = g.id AND c.origin_id = o.id AND c.status = 'ready'
                        -- By the index: without an order the planner may walk the table, which is everybody's.
                        ORDER BY c.rank, c.id
                        LIMIT \(GroupSituation.most + 1)) AS few
                    JOIN tasks t ON t.id = few.task_id
                ) AS r
                ORDER BY place LIMIT \(GroupSituation.most)
            ) AS x
            ORDER BY g.id, x.place
            """
        ).reduce(into: [:]) { origins, row in
            origins[try row.decode("group_id"), default: []].append(
                GroupSituation.Origin(
                    origin: try OriginRecord(row), connections: try row.decode("own_connections"),
                    bytesPerSecond: try row.decode("own_speed"), bytesLeft: try row.decode("own_left"),
                    readyChunks: try row.decode("own_ready"), bytesLeftInAll: try row.decode("own_left_in_all")))
        }
    }

    /// The leases of each group that will end last. Those with an unknown number of bytes left come first, then those that
    /// need the longest time for what is left.
    private func stragglers(of groups: [GroupID]) async throws -> [GroupID: [GroupSituation.Straggler]] {
        try await query(
            """
            SELECT g.id AS group_id, x.*
            FROM unnest(\(groups)) AS g (id) CROSS JOIN LATERAL (
                SELECT t.key, l.kind, coalesce(o.key, '') AS origin, s.worker,
                    -- The end of a first lease says nothing of the file.
                    CASE WHEN l.kind = 'fetch' AND t.size IS NOT NULL THEN l.last - l.durable END AS bytes_left, l.speed,
                    l.granted_at,
                    row_number() OVER (ORDER BY
                        CASE WHEN l.kind = 'fetch' THEN (l.last - l.durable)::double precision / greatest(l.speed, 1) ELSE 0 END
                        DESC NULLS FIRST, l.granted_at) AS place
                FROM (
                    SELECT few.*, (durable - resume) * 1000 / greatest(100, busy_ms(granted_at)) AS speed
                    FROM (SELECT * FROM leases WHERE group_id = g.id AND kind IN ('fetch', 'finalize') LIMIT 1000) AS few
                ) AS l
                JOIN tasks t ON t.id = l.task_id
                LEFT JOIN origins o ON o.id = l.origin_id
                LEFT JOIN sessions s ON s.id = l.session_id
                ORDER BY place LIMIT 3
            ) AS x
            ORDER BY g.id, x.place
            """
        ).reduce(into: [:]) { stragglers, row in
            stragglers[try row.decode("group_id"), default: []].append(
                GroupSituation.Straggler(
                    key: try row.decode("key"), kind: try row.decode("kind"),
                    origin: try row.decode("origin"), worker: try row.decode("worker"),
                    bytesLeft: try row.decode("bytes_left"), bytesPerSecond: try row.decode("speed"),
                    grantedAt: Timestamp(try row.decode("granted_at"))))
        }
    }
}
