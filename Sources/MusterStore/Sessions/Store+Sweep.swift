import MusterCore
import MusterPostgres

extension Store {
    /// What a sweep found.
    public struct Swept: Sendable, Hashable {
        /// Sessions that had expired.
        public let sessions: Int64
        /// Leases that were taken back.
        public let leases: Int64
    }

    /// Ends expired sessions and takes back what they held (I14).
    public func sweepSessions(limit: Int32 = 1_000) async throws -> Swept {
        let row = try await query(
            "SELECT sessions, leases FROM sweep_sessions(\(limit), \(policy.firstChunk), \(policy.deaths))")[0]
        return Swept(sessions: try row.decode("sessions"), leases: try row.decode("leases"))
    }

    /// Takes back leases that made no progress for `stall`, whatever their session's heartbeats say.
    public func sweepStalled(stall: Duration, limit: Int32 = 1_000) async throws -> Int64 {
        try await query(
            """
            SELECT sweep_stalled(\(stall.milliseconds)::bigint * interval '1 ms', \(limit), \(policy.firstChunk),
                \(policy.deaths)) AS count
            """)[0].decode("count")
    }

    /// Takes back chunks that are much slower than others on the same task or origin (range contract, row 32), and hands them to another
    /// source where that may serve them. Returns how many.
    ///
    /// - Parameter age: How old a lease must be, and how long it would need still.
    public func sweepSlow(olderThan age: Duration = .seconds(30), limit: Int32 = 100) async throws -> Int64 {
        try await query(
            """
            SELECT sweep_slow(\(age.milliseconds)::bigint * interval '1 ms', \(limit), \(policy.firstChunk), \(policy.deaths))
                AS count
            """)[0].decode("count")
    }

    /// Fails tasks whose deadline has passed (row 33), in transactions of `limit` tasks. Returns how many; some may be left after
    /// `rounds` transactions, so that a sweep has time for others.
    public func failOverdue(limit: Int32 = 1_000, rounds: Int = 10) async throws -> Int64 {
        var failed: Int64 = 0
        for _ in 0..<rounds {
            let count: Int64 = try await query("SELECT fail_overdue(\(limit)) AS count")[0].decode("count")
            failed += count
            guard count == Int64(limit) else { break }
        }
        return failed
    }

    /// Makes chunks leasable whose backoff is over. Returns how many.
    public func promoteDueChunks(limit: Int32 = 10_000) async throws -> Int64 {
        try await query("SELECT promote_due_chunks(\(limit)) AS count")[0].decode("count")
    }

    /// What was found of groups that had to do something else from some moment on.
    public struct SweptGroups: Sendable, Hashable {
        /// Groups that wait for no other group any more.
        public let released: Int64
        /// Groups whose deadline has passed.
        public let expired: Int64
        /// Tasks that failed by that. There may be more when it is `limit`.
        public let failedTasks: Int64
        /// Leases that were taken back since their group may not run now.
        public let recalled: Int64
    }

    /// Lets groups begin that wait for nobody any more, does what is to follow when a group's time is over, and takes back what
    /// groups fetch that may not run now. Three transactions, none of which waits for a lock of a group.
    public func sweepGroups(limit: Int32 = 1_000) async throws -> SweptGroups {
        let overdue = try await query("SELECT expired_groups, failed_tasks FROM expire_groups(16, \(limit))")[0]
        var released: Int64 = 0
        while true {
            // Empty groups complete by that, and let others begin in turn.
            let count: Int64 = try await query("SELECT release_groups(\(limit)) AS count")[0].decode("count")
            released += count
            guard count > 0 else { break }
        }
        let recalled: Int64 = try await query(
            "SELECT recall_leases(\(limit), \(policy.firstChunk), \(policy.deaths)) AS count")[0].decode("count")
        return SweptGroups(
            released: released, expired: try overdue.decode("expired_groups"),
            failedTasks: try overdue.decode("failed_tasks"), recalled: recalled)
    }

    /// Lets leftovers be deleted that nobody writes any more (I13). Returns how many deletions can be leased by that.
    public func releasePurges(limit: Int32 = 1_000) async throws -> Int64 {
        try await query("SELECT release_purges(\(limit)) AS count")[0].decode("count")
    }

    /// Lets chunks go that wait for the file of another task, where that has ended or does not get on. Returns how many.
    public func releaseRepeats(limit: Int32 = 1_000) async throws -> Int64 {
        try await query("SELECT release_repeats(\(limit)) AS count")[0].decode("count")
    }

    /// Deletes uploads whose last tasks were staged longer ago than `age`: nobody came back for them.
    public func sweepStagedTasks(olderThan age: Duration) async throws {
        _ = try await query(
            """
            DELETE FROM staged_tasks WHERE upload IN (
                SELECT upload FROM staged_tasks GROUP BY upload
                HAVING max(staged_at) < statement_timestamp() - \(age.milliseconds)::bigint * interval '1 ms')
            """)
    }
}
