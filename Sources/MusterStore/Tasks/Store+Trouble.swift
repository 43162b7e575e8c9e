public import MusterCore
import MusterPostgres

extension Store {
    /// Counts a group's tasks in trouble by the kind of their last failure, the most frequent kind first. Looks only at the
    /// tasks with the newest failures, `Limits.troubles` at most, so that the cost doesn't grow with the group.
    public func troubles(of group: GroupID) async throws -> [TaskTrouble] {
        try await query(
            """
            SELECT t.failure_kind, count(*) AS tasks FROM \(Self.failing(group)) AS t WHERE \(TaskRecord.isInTrouble)
            GROUP BY 1 ORDER BY 2 DESC, 1
            """
        ).map { TaskTrouble(kind: try $0.decode("failure_kind"), tasks: try $0.decode("tasks")) }
    }

    /// The tasks of a group that are in trouble, the latest failure first.
    public func tasksInTrouble(of name: String, limit: Int32) async throws -> [TaskRecord] {
        let id = try await groupID(name)
        return try await query(
            """
            SELECT \(taskColumns) FROM \(Self.failing(id)) AS t WHERE \(TaskRecord.isInTrouble)
            ORDER BY t.failure_at DESC, t.id LIMIT \(limit)
            """
        ).map(TaskRecord.init)
    }

    /// The tasks of a group whose last try found no room in the sink, and their number.
    func roomless(in group: GroupID) async throws -> GroupSituation.Roomless {
        let rows = try await query(
            """
            SELECT t.key, t.failure_kind, t.failure_status, t.failure_detail, count(*) OVER () AS tasks
            FROM \(Self.failing(group)) AS t WHERE \(TaskRecord.isInTrouble) AND t.failure_kind = \(FailureKind.noSpace.rawValue)
            ORDER BY t.id LIMIT \(GroupSituation.namedFailures)
            """)
        return GroupSituation.Roomless(
            tasks: try rows.first?.decode("tasks") ?? 0, first: try rows.map(GroupSituation.Failure.init))
    }

    /// The most frequent failure, with its origin, of a group's tasks in trouble.
    func retried(in group: GroupID) async throws -> GroupSituation.Retried? {
        try await query(
            """
            SELECT min(t.key) AS key, t.failure_kind, t.failure_status, max(t.failure_detail) AS failure_detail, o.key AS origin
            FROM \(Self.failing(group)) AS t
                JOIN sources s ON s.task_id = t.id AND s.ordinal = t.failure_source
                JOIN origins o ON o.id = coalesce(s.fresh_origin_id, s.origin_id)
            WHERE \(TaskRecord.isInTrouble)
            GROUP BY t.failure_kind, t.failure_status, o.key ORDER BY count(*) DESC, max(t.failure_at) DESC LIMIT 1
            """
        ).first.map {
            GroupSituation.Retried(
                failure: try GroupSituation.Failure($0), origin: try $0.decode("origin"))
        }
    }

    /// The unfinished tasks of a group that have ever failed; the `Limits.troubles` newest failures only.
    private static func failing(_ group: GroupID) -> SQL {
        """
        (SELECT * FROM tasks f
            WHERE f.group_id = \(group) AND f.failure_at IS NOT NULL AND f.state IN ('queued', 'finalizing')
            ORDER BY f.failure_at DESC LIMIT \(Limits.troubles))
        """
    }
}

extension GroupSituation.Failure {
    /// The failure of a task.
    init(_ row: PostgresRow) throws {
        self.init(
            key: try row.decode("key"), kind: try row.decode("failure_kind"), status: try row.decode("failure_status"),
            detail: try row.decode("failure_detail"))
    }
}
