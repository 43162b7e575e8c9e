import MusterCore
import MusterPostgres

extension Store {
    /// Why a task is not done. It takes a few cheap queries, whatever the size of the task's group.
    public func explanation(of key: String, in group: String) async throws -> ExplanationRecord {
        let id = try await groupID(group)
        guard let row = try await query(facts(of: key, in: id)).first else { throw Refusal.noSuchTask(key) }
        let task = try TaskRecord(row)
        return ExplanationRecord(
            task: task, isDoubtful: try row.decode("is_doubtful"), deadlineAt: task.deadlineAt,
            chunks: ExplanationRecord.Chunks(
                done: try row.decode("chunks_done"), leased: try row.decode("chunks_leased"),
                ready: try row.decode("chunks_ready"), waiting: try row.decode("chunks_waiting"),
                parked: try row.decode("chunks_parked"), dueAt: try Self.moment("due_at", of: row),
                awaited: try .init(row)),
            group: ExplanationRecord.Group(
                state: try row.decode("group_state"),
                isPaused: try row.decode("group_desired") == "pause", maxConnections: try row.decode("group_cap"),
                leases: try row.decode("group_leases")),
            workers: ExplanationRecord.Workers(
                reaching: try row.decode("reaching"), draining: try row.decode("leaving"),
                freeSlots: try row.decode("free_slots")),
            question: try Self.question(row), leases: try await leases(of: task.id),
            sources: try await sources(of: task.id), attempts: try await attempts(of: task.id),
            at: Timestamp(try row.decode("moment")))
    }

    /// The task with the counts around it, in one row.
    private func facts(of key: String, in group: GroupID) -> SQL {
        """
        SELECT \(taskColumns), \(TaskRecord.isDoubtful) AS is_doubtful, statement_timestamp() AS moment, g.state AS group_state,
            g.desired AS group_desired, g.max_connections AS group_cap,
            (SELECT count(*) FROM lanes_of(g.id)) AS group_leases,
            (SELECT count(*) FROM done_chunks d WHERE d.task_id = t.id AND d.version = t.version) AS chunks_done,
            (SELECT count(*) FROM leases l WHERE l.task_id = t.id AND l.kind IN ('fetch', 'finalize')) AS chunks_leased,
            EXISTS (SELECT 1 FROM leases l WHERE l.task_id = t.id AND l.kind = 'resolve') AS is_asking,
            c.chunks_ready, c.chunks_waiting, c.chunks_parked, c.due_at, q.status AS question, q.not_before AS question_at,
            w.reaching, w.leaving, w.free_slots, a.awaited_group, a.awaited_key
        FROM tasks t
        JOIN groups g ON g.id = t.group_id
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE c.status = 'ready') AS chunks_ready,
                count(*) FILTER (WHERE c.status = 'waiting') AS chunks_waiting,
                count(*) FILTER (WHERE c.status = 'parked') AS chunks_parked, min(c.not_before) AS due_at
            FROM ready_chunks c WHERE c.task_id = t.id AND c.kind IN ('fetch', 'finalize')
        ) AS c
        LEFT JOIN ready_chunks q ON q.task_id = t.id AND q.kind = 'resolve'
        LEFT JOIN LATERAL (
            SELECT ag.name AS awaited_group, at.key AS awaited_key
            FROM ready_chunks c JOIN tasks at ON at.id = c.awaits JOIN groups ag ON ag.id = at.group_id
            WHERE c.task_id = t.id AND c.status = 'waiting' LIMIT 1
        ) AS a ON true
        CROSS JOIN LATERAL (
            SELECT count(*) AS reaching, count(*) FILTER (WHERE s.draining) AS leaving,
                coalesce(sum(greatest(0, s.slots - (SELECT count(*) FROM leases l WHERE l.session_id = s.id)))
                    FILTER (WHERE NOT s.draining AND t.sink <> ALL (s.parked)), 0)::bigint AS free_slots
            FROM sessions s WHERE t.sink = ANY (s.sinks) AND s.expires_at > statement_timestamp()
        ) AS w
        WHERE t.group_id = \(group) AND t.key = \(key)
        """
    }

    private static func question(_ row: PostgresRow) throws -> ExplanationRecord.Question? {
        if try row.decode("is_asking") { return .leased }
        guard try row.decode("question", as: String?.self) != nil else { return nil }
        return try moment("question_at", of: row).map { .waiting(until: $0) } ?? .ready
    }

    private func leases(of task: TaskID) async throws -> [ExplanationRecord.Lease] {
        try await query(
            """
            SELECT s.worker, l.kind, l.first, l.last, l.durable, o.url, l.granted_at,
                coalesce(l.shrink_to < l.last, false) AS is_asked,
                CASE WHEN \(SilentWorker.isSilent) THEN s.seen_at END AS seen, s.expires_at
            FROM leases l
            LEFT JOIN sessions s ON s.id = l.session_id
            LEFT JOIN sources o ON o.task_id = l.task_id AND o.ordinal = l.source
                AND l.kind IN ('fetch', 'resolve')
            WHERE l.task_id = \(task) AND l.kind <> 'purge' ORDER BY l.first, l.chunk_id LIMIT 1000
            """
        ).map { row in
            ExplanationRecord.Lease(
                worker: try row.decode("worker"), kind: try row.decode("kind"),
                start: try row.decode("first"), end: try row.decode("last"), durable: try row.decode("durable"),
                source: try row.decode("url"), grantedAt: Timestamp(try row.decode("granted_at")),
                isAskedToShrink: try row.decode("is_asked"),
                silentSince: try Self.moment("seen", of: row), endsAt: try Self.moment("expires_at", of: row))
        }
    }

    private func sources(of task: TaskID) async throws -> [ExplanationRecord.Source] {
        try await query(
            """
            SELECT s.ordinal, s.url, s.dead, s.differs_in IS NOT DISTINCT FROM t.version AS differs, s.failed, s.bytes,
                (s.bytes * 1000 / nullif(s.busy_ms, 0))::bigint AS speed, s.resolved_at,
                (SELECT count(*) FROM ready_chunks c
                    WHERE c.task_id = t.id AND c.kind = 'fetch' AND c.status = 'ready' AND c.source = s.ordinal) AS ready,
                \(OriginRecord.columns(cap: policy.connectionsPerOrigin))
            FROM sources s
            JOIN tasks t ON t.id = s.task_id
            JOIN origins o ON o.id = coalesce(s.fresh_origin_id, s.origin_id)
            CROSS JOIN \(OriginRecord.leases)
            WHERE s.task_id = \(task) ORDER BY s.ordinal
            """
        ).map { row in
            ExplanationRecord.Source(
                ordinal: try row.decode("ordinal"), url: try row.decode("url"), origin: try OriginRecord(row),
                state: try row.decode("dead") ? .failed : try row.decode("differs") ? .differs : .usable,
                failures: try row.decode("failed"), bytes: try row.decode("bytes"),
                bytesPerSecond: try row.decode("speed"), resolvedAt: try Self.moment("resolved_at", of: row),
                readyChunks: try row.decode("ready"))
        }
    }

    private func attempts(of task: TaskID) async throws -> [ExplanationRecord.Attempt] {
        try await query(
            """
            SELECT a.at, a.worker, s.url, a.kind, a.status, a.detail, a.request_id, a.address, a.byte, a.outcome
            FROM attempts a LEFT JOIN sources s ON s.task_id = a.task_id AND s.ordinal = a.source
            WHERE a.task_id = \(task) ORDER BY a.serial
            """
        ).map { row in
            ExplanationRecord.Attempt(
                at: Timestamp(try row.decode("at")), worker: try row.decode("worker"), source: try row.decode("url"),
                kind: try row.decode("kind"), status: try row.decode("status"), detail: try row.decode("detail"),
                requestID: try row.decode("request_id"), address: try row.decode("address"),
                offset: try row.decode("byte"), outcome: try row.decode("outcome"))
        }
    }

    /// Reads a time that may be NULL.
    private static func moment(_ column: String, of row: PostgresRow) throws -> Timestamp? {
        try row.decode(column, as: PostgresTimestamp?.self).map(Timestamp.init)
    }
}

extension ExplanationRecord.Chunks.Awaited {
    /// The task that the columns `awaited_group` and `awaited_key` name; `nil` if they are NULL.
    init?(_ row: PostgresRow) throws {
        guard let group = try row.decode("awaited_group", as: String?.self),
            let key = try row.decode("awaited_key", as: String?.self)
        else { return nil }
        self.init(group: group, key: key)
    }
}
