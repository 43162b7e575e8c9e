public import MusterCore
import MusterPostgres

extension Store {
    /// The columns that are read of the tasks `t`.
    var taskColumns: SQL { TaskRecord.columns(policy) }

    /// One task.
    public func task(_ key: String, of group: String) async throws -> TaskRecord {
        let id = try await groupID(group)
        let rows = try await query(
            "SELECT \(taskColumns) FROM tasks t WHERE t.group_id = \(id) AND t.key = \(key)")
        guard let row = rows.first else { throw Refusal.noSuchTask(key) }
        return try TaskRecord(row)
    }

    /// A page of a group's tasks, in the order in which they were added; it begins after the task `after`.
    public func tasks(of group: String, state: TaskState?, after: TaskID?, limit: Int32) async throws -> [TaskRecord] {
        let id = try await groupID(group)
        let start = after ?? TaskID(0)
        // Each state has its own statement, since each has its own index to scan.
        let condition: SQL =
            switch state {
            case nil: "t.group_id = \(id)"
            case .active:
                "t.id IN (SELECT l.task_id FROM leases l WHERE l.group_id = \(id) AND l.kind = 'fetch') AND t.state = 'queued'"
            case .queued: "t.group_id = \(id) AND t.state = 'queued' AND shown_state(t) = 'queued'"
            case .paused?, .finalizing?, .succeeded?, .failed?, .cancelled?:
                "t.group_id = \(id) AND t.state = \(state?.rawValue)"
            }
        return try await query(
            "SELECT \(taskColumns) FROM tasks t WHERE \(condition) AND t.id > \(start) ORDER BY t.id LIMIT \(limit)"
        ).map(TaskRecord.init)
    }
}
