import MusterCore
import MusterPostgres

extension Store {
    /// A task, and why it is not done. It takes a few cheap queries, whatever the size of the task's group.
    public func explanation(
        of key: String, in group: String
    ) async throws -> (task: TaskRecord, situation: TaskSituation) {
        let id = try await groupID(group)
        guard let row = try await query(facts(of: key, in: id)).first else { throw Refusal.noSuchTask(key) }
        let task = try TaskRecord(row)
        let at = Timestamp(try row.decode("moment"))
        let leases = try await leases(of: task.id)
        let (sources, origins) = try await self.sources(of: task)
        let queue = try await queues(of: origins.isEmpty ? [] : [id])[id]
        let work = try leases.map { try TaskWork($0) }
        let situation = TaskSituation(
            isDoubtful: try row.decode("is_doubtful"),
            chunks: ChunkCounts(
                done: try row.decode("chunks_done"), leased: try row.decode("chunks_leased"),
                ready: try row.decode("chunks_ready"), waiting: try row.decode("chunks_waiting"),
                parked: try row.decode("chunks_parked")),
            dueAt: try row.moment("due_at"), awaited: try AwaitedTask(row),
            groupConnections: try row.decode("group_connections"), workers: try WorkerCounts(row),
            question: try Self.question(row, work: work, at: at), work: work,
            shrinking: try leases.count { try $0.decode("is_asked") }, sources: sources, origins: origins,
            urgent: queue?.urgent ?? [:], urgentForSlots: queue?.urgentForSlots,
            attempts: try await attempts(of: task.id), at: at)
        return (task, situation)
    }

    /// The task with the counts around it, in one row.
    private func facts(of key: String, in group: GroupID) -> SQL {
        """
        SELECT \(taskColumns), \(TaskRecord.isDoubtful) AS is_doubtful, statement_timestamp() AS moment,
            (SELECT count(*) FROM lanes_of(g.id)) AS group_connections,
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
            FROM sessions s WHERE t.sink = ANY (s.sinks || s.parked) AND s.expires_at > statement_timestamp()
        ) AS w
        WHERE t.group_id = \(group) AND t.key = \(key)
        """
    }

    private static func question(
        _ row: PostgresRow, work: [TaskWork], at: Timestamp
    ) throws -> TaskSituation.Question? {
        if try row.decode("is_asking") {
            let asking = work.first { $0.kind == .resolve }
            return .asked(worker: asking?.worker ?? TaskWork.lost, since: asking?.since ?? at)
        }
        guard try row.decode("question", as: String?.self) != nil else { return nil }
        return .due(try row.moment("question_at"))
    }

    private func leases(of task: TaskID) async throws -> PostgresRows {
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
        )
    }

    /// The sources by ordinal, and the origins of those that chunks are ready to be fetched from.
    private func sources(of task: TaskRecord) async throws -> ([TaskSource], [OriginRecord]) {
        var sources: [TaskSource] = []
        var origins: [OriginRecord] = []
        let rows = try await query(
            """
            SELECT s.url, s.dead, s.differs_in IS NOT DISTINCT FROM t.version AS differs, s.failed, s.bytes,
                (s.bytes * 1000 / nullif(s.busy_ms, 0))::bigint AS speed, s.resolved_at,
                EXISTS (SELECT 1 FROM ready_chunks c
                    WHERE c.task_id = t.id AND c.kind = 'fetch' AND c.status = 'ready' AND c.source = s.ordinal) AS is_ready,
                \(OriginRecord.columns(cap: policy.connectionsPerOrigin, group: "t.group_id"))
            FROM sources s
            JOIN tasks t ON t.id = s.task_id
            JOIN origins o ON o.id = coalesce(s.fresh_origin_id, s.origin_id)
            CROSS JOIN \(OriginRecord.leases)
            WHERE s.task_id = \(task.id) ORDER BY s.ordinal
            """
        )
        for row in rows {
            let origin = try OriginRecord(row)
            sources.append(
                TaskSource(
                    url: try row.decode("url"), origin: origin.key,
                    state: try row.decode("dead") ? .failed : try row.decode("differs") ? .differs : .usable,
                    failures: try row.decode("failed"), bytes: try row.decode("bytes"),
                    bytesPerSecond: try row.decode("speed"), resolvedAt: try row.moment("resolved_at")))
            if try row.decode("is_ready"), !origins.contains(where: { $0.key == origin.key }) { origins.append(origin) }
        }
        // The bytes of each source are counted where there are several; a single source brought all bytes.
        if sources.count == 1, task.reusedFrom == nil { sources[0].bytes = task.bytesDone }
        return (sources, origins)
    }

    private func attempts(of task: TaskID) async throws -> [TaskAttempt] {
        try await query(
            """
            SELECT a.at, a.worker, s.url, a.kind, a.status, a.detail, a.request_id, a.address, a.byte, a.outcome
            FROM attempts a LEFT JOIN sources s ON s.task_id = a.task_id AND s.ordinal = a.source
            WHERE a.task_id = \(task) ORDER BY a.serial
            """
        ).map { row in
            TaskAttempt(
                at: Timestamp(try row.decode("at")), worker: try row.decode("worker"), source: try row.decode("url"),
                kind: try row.decode("kind"), status: try row.decode("status"), detail: try row.decode("detail"),
                requestID: try row.decode("request_id"), address: try row.decode("address"),
                offset: try row.decode("byte"), outcome: try row.decode("outcome"))
        }
    }
}

extension TaskWork {
    /// Stands for a worker whose session is over: its leases are about to be taken back.
    fileprivate static let lost = "(gone)"

    /// A lease.
    fileprivate init(_ row: PostgresRow) throws {
        let silentSince = try row.moment("seen")
        self.init(
            worker: try row.decode("worker", as: String?.self) ?? Self.lost, kind: try row.decode("kind"),
            start: try row.decode("first"), end: try row.decode("last"), durable: try row.decode("durable"),
            source: try row.decode("url"), since: Timestamp(try row.decode("granted_at")), silentSince: silentSince,
            endsAt: silentSince == nil ? nil : try row.moment("expires_at"))
    }
}

extension WorkerCounts {
    /// The columns `reaching`, `leaving` and `free_slots`.
    init(_ row: PostgresRow) throws {
        reaching = try row.decode("reaching")
        draining = try row.decode("leaving")
        freeSlots = try row.decode("free_slots")
    }
}

extension AwaitedTask {
    /// The task that the columns `awaited_group` and `awaited_key` name; `nil` if they are NULL.
    init?(_ row: PostgresRow) throws {
        guard let group = try row.decode("awaited_group", as: String?.self),
            let key = try row.decode("awaited_key", as: String?.self)
        else { return nil }
        self.init(group: group, key: key)
    }
}
