import MusterCore
import MusterPostgres

/// Rounds over groups. No round waits for the lock of a group. A group whose own data are inconsistent, such as counts that
/// don't add up, does not hold up other groups (I19).
extension Store {
    /// Called after a round with the names of the groups that it could not process.
    public typealias StuckGroups = @Sendable (_ names: [String]) -> Void

    /// Fails tasks whose deadline has passed (row 33), in transactions of `limit` tasks. Returns their number. Some may be
    /// left after `rounds` transactions, so that the sweep has time for its other duties.
    public func failOverdue(
        limit: Int32 = 1_000, rounds: Int = 10, onStuck: StuckGroups = { _ in }
    ) async throws -> Int64 {
        var failed: Int64 = 0
        try await round(most: rounds, onStuck) { stuck in
            "SELECT count, stuck FROM fail_overdue(\(limit), \(stuck))"
        } goesOn: { row in
            let count: Int64 = try row.decode("count")
            failed += count
            if count > 0 { wake([.work, .events]) }
            return count == Int64(limit)
        }
        return failed
    }

    /// The result for groups whose deadline has passed.
    public struct ExpiredGroups: Sendable, Hashable {
        /// The number of these groups.
        public let groups: Int64
        /// The number of tasks that failed for it. There may be more if it equals `limit`.
        public let failedTasks: Int64
    }

    /// Carries out the deadline action of groups whose deadline has passed.
    public func expireGroups(limit: Int32 = 1_000, onStuck: StuckGroups = { _ in }) async throws -> ExpiredGroups {
        var groups: Int64 = 0
        var failed: Int64 = 0
        try await round(onStuck) { stuck in
            "SELECT expired_groups, failed_tasks, stuck FROM expire_groups(16, \(limit), \(stuck))"
        } goesOn: { row in
            groups += try row.decode("expired_groups", as: Int64.self)
            failed += try row.decode("failed_tasks", as: Int64.self)
            return false
        }
        if groups > 0 || failed > 0 { wake([.work, .events]) }
        return ExpiredGroups(groups: groups, failedTasks: failed)
    }

    /// Starts groups that wait for no other group any more. Returns their number.
    public func releaseGroups(limit: Int32 = 1_000, onStuck: StuckGroups = { _ in }) async throws -> Int64 {
        var released: Int64 = 0
        try await round(most: .max, onStuck) { stuck in
            "SELECT count, stuck FROM release_groups(\(limit), \(stuck))"
        } goesOn: { row in
            let count: Int64 = try row.decode("count")
            released += count
            if count > 0 { wake([.work, .events]) }
            // Empty groups complete when they start, which lets others start in turn.
            return count > 0
        }
        return released
    }

    /// Continues verbs on whole groups that no request drives any more. Returns the number of tasks that were changed;
    /// there may be more.
    @discardableResult
    public func sweepWishes(slices: Int = 4, onStuck: StuckGroups = { _ in }) async throws -> Int64 {
        var changed: Int64 = 0
        try await round(most: slices, onStuck) { stuck in
            "SELECT count, stuck FROM sweep_wishes(\(policy.verbSlice), \(stuck))"
        } goesOn: { row in
            guard let count = try row.decode("count", as: Int64?.self) else { return false }
            // A slice that found nothing left to move may have ended the group.
            wake([.work, .events])
            changed += count
            return true
        }
        return changed
    }

    /// The most groups with inconsistent data that one round skips.
    private static let stuckAtMost = 100

    /// Repeats a statement as long as it has more to do, `most` times at most. If groups are stuck, runs it again without
    /// them.
    private func round(
        most: Int = 1, _ onStuck: StuckGroups, _ statement: ([GroupID]) -> SQL,
        goesOn: (PostgresRow) throws -> Bool
    ) async throws {
        var stuck: [GroupID] = []
        var left = most
        while left > 0, stuck.count < Self.stuckAtMost {
            let row = try await query(statement(stuck))[0]
            let more: [GroupID] = try row.decode("stuck")
            stuck += more
            let isUnfinished = try goesOn(row)
            guard isUnfinished || !more.isEmpty else { break }
            if more.isEmpty { left -= 1 }
        }
        guard !stuck.isEmpty else { return onStuck([]) }
        let rows = try await query("SELECT name FROM groups WHERE id = ANY (\(stuck)) ORDER BY id")
        onStuck(try rows.map { try $0.decode("name", as: String.self) })
    }
}
