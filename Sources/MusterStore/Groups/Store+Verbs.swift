import MusterCore
import MusterPostgres

/// What can be asked of a group or of some of its tasks.
public enum TaskVerb: String, Sendable, CaseIterable {
    /// Stop fetching, and keep the bytes.
    case pause
    /// Go on.
    case resume
    /// End the tasks, and delete what is unfinished (I13).
    case cancel
    /// Queue failed tasks again, with the bytes that they have.
    case retry
}

/// Verbs on whole groups are many short transactions (`adr/0015`). The first one writes the wish, so that nothing is
/// granted any more that the wish forbids. Every transaction moves `Policy.verbSlice` tasks. Verbs on keys are one
/// transaction.
extension Store {
    /// How long an addition, or a retry of a whole group, may take. Each is one transaction whatever the number of its tasks:
    /// it is refused as a whole if a destination is taken, and opens one generation.
    static let longLimit = Duration.seconds(600)

    /// The number of times in a row that a begun verb may find the group locked, for a second each, before it is left to
    /// the sweep.
    private static let lockTimeouts = 10

    /// Applies a verb to a group, or to the tasks with these keys. Keys that don't exist are refused.
    ///
    /// - Returns: the group, with the number of tasks that were changed. If the caller goes away in the middle of a large
    ///   group, the sweep completes a pause or a cancel. A resume has to be repeated, and so has a cancel, for the bytes
    ///   that failed tasks kept.
    public func apply(_ verb: TaskVerb, to name: String, keys: [String]?) async throws -> GroupRecord {
        let id = try await groupID(name)
        if let keys { try await checkKeys(keys, of: id) }
        let changed: Int64
        switch verb {
        case .retry: changed = try await retry(id, keys: keys)
        case .pause, .resume, .cancel:
            if let keys {
                changed = try await count(
                    "SELECT apply_verb(\(id), \(verb.rawValue), \(keys)) AS count", waking: [.work, .events])
            } else {
                changed = try await drive(verb.rawValue, id)
            }
            if verb == .cancel, try await !isLocked(id) { try await dropFailed(id, keys) }
        }
        var group = try await group(name)
        group.changedTasks = changed
        return group
    }

    /// Removes a group that no group waits for, or the tasks with these keys. Returns the number of tasks that were
    /// removed.
    ///
    /// If the caller goes away in the middle of a large group, the sweep completes the removal. The name is free after
    /// that.
    @discardableResult
    public func remove(_ name: String, keys: [String]?, deletingFiles: Bool) async throws -> Int64 {
        let id = try await groupID(name, removing: keys == nil)
        if let keys { try await checkKeys(keys, of: id) }
        let verb = deletingFiles ? "remove_files" : "remove"
        do {
            guard let keys else { return try await drive(verb, id) }
            return try await count(
                "SELECT apply_verb(\(id), \(verb), \(keys)) AS count", waking: [.work, .events])
        } catch let error as PostgresError where error.constraint == "group_prerequisites_in_use" {
            throw Refusal.groupInUse(name, by: try await dependent(of: id) ?? "")
        }
    }

    /// Completes the cancel of a group, if one is under way: the next step needs a group that has ended.
    func finishCancel(of group: GroupID) async throws {
        _ = try await drive("cancel", group, from: Slice(place: 1, last: 0))
    }

    /// Where the next slice of a verb begins.
    private struct Slice {
        /// The place of a state in `verb_states`, from 1; 0 for the first slice, which writes the wish.
        var place: Int32
        /// The last task in that state that was processed.
        var last: Int64
    }

    /// Moves slice after slice until nothing is left, or until the wish changes. Each slice has a deadline; all together
    /// have none.
    private func drive(
        _ verb: String, _ group: GroupID, from start: Slice = Slice(place: 0, last: 0)
    ) async throws -> Int64 {
        var next = start
        var changed: Int64 = 0
        var timeouts = 0
        while true {
            let row: PostgresRow
            do {
                row = try await write(
                    """
                    SELECT changed, place, last, is_done
                    FROM verb_slice(\(group), \(verb), \(next.place), \(next.last), \(policy.verbSlice))
                    """, waking: [.work, .events])[0]
            } catch let error as PostgresError where error.sqlState == .lockNotAvailable {
                // Another transaction locks the group for long, such as an addition of many tasks. The sweep carries out
                // the wish as soon as the group is free. A verb that has begun already may as well go on here.
                timeouts += 1
                try Task.checkCancellation()
                if next.place > 0, timeouts < Self.lockTimeouts { continue }
                _ = try await change("SELECT keep_wish(\(group), \(verb))::text")
                return changed
            }
            timeouts = 0
            changed += try row.decode("changed", as: Int64.self)
            if try row.decode("is_done") { return changed }
            next = Slice(place: try row.decode("place"), last: try row.decode("last"))
            try Task.checkCancellation()
        }
    }

    /// Deletes what failed tasks kept for a retry, in steps, since there may be many tasks.
    private func dropFailed(_ group: GroupID, _ keys: [String]?) async throws {
        let limit: Int32 = 1_000
        while true {
            let dropped = try await count(
                "SELECT drop_failed(\(group), \(keys), \(policy.firstChunk), \(limit)) AS count", waking: .work)
            guard dropped == Int64(limit) else { return }
        }
    }

    /// Whether another transaction has the group locked.
    private func isLocked(_ group: GroupID) async throws -> Bool {
        try await query("SELECT id FROM groups WHERE id = \(group) FOR NO KEY UPDATE SKIP LOCKED").isEmpty
    }

    private func retry(_ group: GroupID, keys: [String]?) async throws -> Int64 {
        do {
            while true {
                let rows = try await write(
                    "SELECT apply_verb(\(group), 'retry', \(keys)) AS count", waking: [.work, .events],
                    limit: Self.longLimit)
                if let count: Int64 = try rows[0].decode("count") { return count }
                try await finishCancel(of: group)
            }
        } catch let error as PostgresError where error.constraint == "tasks_destination_unique" {
            throw try await destinationTaken(group, keys: keys)
        }
    }

    /// The refusal of a retry, which names the live task that has the destination of a failed task.
    private func destinationTaken(_ group: GroupID, keys: [String]?) async throws -> Refusal {
        let rows = try await query(
            """
            SELECT t.path, g.name
            FROM tasks f
            JOIN tasks t ON t.sink = f.sink AND t.path = f.path AND holds_path(t.state)
            JOIN groups g ON g.id = t.group_id
            WHERE f.group_id = \(group) AND f.state = 'failed' AND (\(keys)::text[] IS NULL OR f.key = ANY (\(keys)))
            ORDER BY f.id LIMIT 1
            """)
        return .destinationTaken(
            try rows.first?.decode("path"), line: nil, by: try rows.first?.decode("name"))
    }

    private func checkKeys(_ keys: [String], of group: GroupID) async throws {
        let missing = try await query(
            """
            SELECT wanted.key FROM unnest(\(keys)) AS wanted (key)
            WHERE NOT EXISTS (SELECT 1 FROM tasks t WHERE t.group_id = \(group) AND t.key = wanted.key) LIMIT 1
            """)
        if let key = try missing.first?.decode("key", as: String.self) { throw Refusal.noSuchTask(key) }
    }
}
