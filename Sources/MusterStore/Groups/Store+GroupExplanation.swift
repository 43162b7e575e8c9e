import MusterCore
import MusterPostgres

extension Store {
    /// Why a group is not done. It takes a few queries that cost the same whatever the size of the group. No query walks
    /// the group's tasks: states are counted in the group's row, chunks by index and up to a limit.
    public func explanation(of name: String) async throws -> GroupExplanationRecord {
        guard var record = try await explanations(of: [try await group(name)]).first else {
            throw Refusal.noSuchGroup(name)
        }
        if record.group.isHeld { record.lost = try await lostPrerequisites(of: record.group.id) }
        if record.group.tasks[.failed] ?? 0 > 0 { record.failures = try await failures(of: record.group.id) }
        if record.group.tasks[.succeeded] ?? 0 > 0 { record.doubtful = try await doubtful(in: record.group.id) }
        if !record.group.state.isTerminal {
            record.roomless = try await roomless(in: record.group.id)
            record.retried = try await retried(in: record.group.id)
        }
        return record
    }

    /// The first failed tasks of a group.
    private func failures(of group: GroupID) async throws -> [GroupExplanationRecord.Failure] {
        try await query(
            """
            SELECT key, failure_kind, failure_detail, failure_status FROM tasks WHERE group_id = \(group) AND state = 'failed'
            ORDER BY id LIMIT \(GroupExplanationRecord.namedFailures)
            """
        ).map(GroupExplanationRecord.Failure.init)
    }

    /// The succeeded tasks of a group whose content may be a page in the place of the file, where nothing tells.
    private func doubtful(in group: GroupID) async throws -> GroupExplanationRecord.Doubtful {
        let rows = try await query(
            """
            SELECT t.key, count(*) OVER () AS tasks
            FROM (SELECT DISTINCT a.task_id FROM attempts a WHERE coalesce(a.kind = 'httpStatus(200)', false)) AS p
                JOIN tasks t ON t.id = p.task_id
            WHERE t.group_id = \(group) AND \(TaskRecord.isDoubtful)
            ORDER BY t.id LIMIT \(GroupExplanationRecord.namedFailures)
            """)
        return GroupExplanationRecord.Doubtful(
            tasks: try rows.first?.decode("tasks") ?? 0, keys: try rows.map { try $0.decode("key") })
    }

    /// The groups at the ends of a chain that block the chain: they have ended, but not in the way that the groups waiting
    /// for them require.
    private func lostPrerequisites(of group: GroupID) async throws -> [PrerequisiteRecord] {
        try await query(
            "SELECT name, condition, state FROM lost_prerequisites(\(group), \(GroupExplanationRecord.most))"
        ).map {
            PrerequisiteRecord(
                group: try $0.decode("name"), on: try $0.decode("condition"), isSatisfied: false,
                state: try $0.decode("state"))
        }
    }

    /// The same for several groups, with as many queries as for one group. Groups that were removed meanwhile are left out.
    public func explanations(of groups: [GroupRecord]) async throws -> [GroupExplanationRecord] {
        let ids = groups.map(\.id)
        let facts = try await query(Self.facts(of: ids)).reduce(into: [GroupID: PostgresRow]()) {
            $0[try $1.decode("group_id")] = $1
        }
        let origins = try await origins(of: ids)
        let stragglers = try await stragglers(of: ids)
        return try groups.compactMap { group in
            try facts[group.id].map { facts in
                try record(group, facts, origins: origins[group.id] ?? [], stragglers: stragglers[group.id] ?? [])
            }
        }
    }

    private func record(
        _ group: GroupRecord, _ facts: PostgresRow, origins: [GroupExplanationRecord.Origin],
        stragglers: [GroupExplanationRecord.Straggler]
    ) throws -> GroupExplanationRecord {
        GroupExplanationRecord(
            group: group,
            leases: GroupExplanationRecord.Leases(
                connections: try facts.decode("connections"), finalizing: try facts.decode("finalizing"),
                asking: try facts.decode("asking"), bytesLeft: try facts.decode("bytes_left"),
                bytesPerSecond: try facts.decode("rate")),
            putOff: GroupExplanationRecord.PutOff(
                fetching: try facts.decode("put_off_fetching"), finalizing: try facts.decode("put_off_finalizing"),
                asking: try facts.decode("put_off_asking"), awaiting: try facts.decode("awaiting"),
                awaited: try ExplanationRecord.Chunks.Awaited(facts),
                dueAt: try facts.decode("due_at", as: PostgresTimestamp?.self).map(Timestamp.init)),
            origins: origins, readyToFinalize: try facts.decode("ready_to_finalize"),
            workers: ExplanationRecord.Workers(
                reaching: try facts.decode("reaching"), draining: try facts.decode("leaving"),
                freeSlots: try facts.decode("free_slots")),
            fleet: try policy.fleetRate.map {
                GroupExplanationRecord.Fleet(bytesPerSecondLimit: $0, bytesPerSecond: try facts.decode("fleet_rate"))
            },
            stragglers: stragglers, at: Timestamp(try facts.decode("moment")))
    }

    /// The leases and the put-off chunks of each group, and the sessions that could work on it, in one row.
    private static func facts(of groups: [GroupID]) -> SQL {
        """
        SELECT g.id AS group_id, statement_timestamp() AS moment, l.connections, l.finalizing, l.asking, l.bytes_left, l.rate,
            c.put_off_fetching, c.put_off_finalizing, c.put_off_asking, c.awaiting, c.due_at, ag.name AS awaited_group, at.key AS awaited_key, f.ready_to_finalize,
            w.reaching, w.leaving, w.free_slots,
            (SELECT coalesce(sum(bytes_per_second(s.rate_bytes, s.rate_at, s.opened_at)), 0)::bigint
                FROM sessions s WHERE s.expires_at > statement_timestamp()) AS fleet_rate
        FROM groups g, LATERAL (
            SELECT count(DISTINCT (session_id, lane)) FILTER (WHERE lane > 0) AS connections,
                count(*) FILTER (WHERE kind = 'finalize') AS finalizing,
                count(*) FILTER (WHERE kind = 'resolve') AS asking,
                coalesce(sum(last - durable) FILTER (WHERE kind = 'fetch'), 0)::bigint AS bytes_left,
                coalesce(sum((durable - resume) * 1000 / greatest(100, busy_ms(granted_at)))
                    FILTER (WHERE kind = 'fetch'), 0)::bigint AS rate
            FROM (SELECT * FROM leases WHERE group_id = g.id LIMIT 1000) AS few
        ) AS l, LATERAL (
            SELECT count(*) FILTER (WHERE kind = 'fetch' AND awaits IS NULL) AS put_off_fetching,
                count(*) FILTER (WHERE awaits IS NOT NULL) AS awaiting, min(awaits) AS awaits,
                count(*) FILTER (WHERE kind = 'finalize') AS put_off_finalizing,
                count(*) FILTER (WHERE kind = 'resolve') AS put_off_asking, min(not_before) AS due_at
            FROM (
                SELECT kind, not_before, awaits FROM ready_chunks WHERE group_id = g.id AND is_waiting(status)
                ORDER BY not_before LIMIT \(GroupExplanationRecord.most + 1)
            ) AS first
        ) AS c LEFT JOIN tasks at ON at.id = c.awaits LEFT JOIN groups ag ON ag.id = at.group_id, LATERAL (
            SELECT count(*) AS ready_to_finalize FROM (
                SELECT 1 FROM ready_chunks WHERE group_id = g.id AND origin_id = 0 AND status = 'ready' AND kind = 'finalize'
                ORDER BY rank, id LIMIT \(GroupExplanationRecord.most + 1)
            ) AS files
        ) AS f, LATERAL (
            SELECT count(*) AS reaching, count(*) FILTER (WHERE s.draining) AS leaving,
                coalesce(sum(greatest(0, s.slots - (SELECT count(*) FROM leases l WHERE l.session_id = s.id)))
                    FILTER (WHERE NOT s.draining AND g.sink <> ALL (s.parked)), 0)::bigint AS free_slots
            FROM sessions s WHERE g.sink = ANY (s.sinks) AND s.expires_at > statement_timestamp()
        ) AS w
        WHERE g.id = ANY (\(groups))
        """
    }

    /// The origins on which each group has leases, or could get them.
    private func origins(of groups: [GroupID]) async throws -> [GroupID: [GroupExplanationRecord.Origin]] {
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
                        LIMIT \(GroupExplanationRecord.most))
                )
                SELECT \(OriginRecord.columns(cap: policy.connectionsPerOrigin)), coalesce(h.connections, 0) AS own_connections,
                    coalesce(h.bytes_left, 0) AS own_left, coalesce(h.speed, 0) AS own_speed, r.chunks AS own_ready,
                    CASE WHEN r.chunks <= \(GroupExplanationRecord.most) AND (SELECT sum(leases) < 1000 FROM held) IS NOT FALSE
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
                        LIMIT \(GroupExplanationRecord.most + 1)) AS few
                    JOIN tasks t ON t.id = few.task_id
                ) AS r
                ORDER BY place LIMIT \(GroupExplanationRecord.most)
            ) AS x
            ORDER BY g.id, x.place
            """
        ).reduce(into: [:]) { origins, row in
            origins[try row.decode("group_id"), default: []].append(
                GroupExplanationRecord.Origin(
                    origin: try OriginRecord(row), connections: try row.decode("own_connections"),
                    bytesPerSecond: try row.decode("own_speed"), bytesLeft: try row.decode("own_left"),
                    readyChunks: try row.decode("own_ready"), bytesLeftInAll: try row.decode("own_left_in_all")))
        }
    }

    /// The leases of each group that will end last. Those with an unknown number of bytes left come first, then those that
    /// need the longest time for what is left.
    private func stragglers(of groups: [GroupID]) async throws -> [GroupID: [GroupExplanationRecord.Straggler]] {
        try await query(
            """
            SELECT g.id AS group_id, x.*
            FROM unnest(\(groups)) AS g (id) CROSS JOIN LATERAL (
                SELECT t.key, l.kind, o.key AS origin, s.worker,
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
                GroupExplanationRecord.Straggler(
                    key: try row.decode("key"), kind: try row.decode("kind"),
                    origin: try row.decode("origin"), worker: try row.decode("worker"),
                    bytesLeft: try row.decode("bytes_left"), bytesPerSecond: try row.decode("speed"),
                    grantedAt: Timestamp(try row.decode("granted_at"))))
        }
    }
}
