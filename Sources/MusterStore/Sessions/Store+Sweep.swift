import MusterCore
import MusterPostgres

extension Store {
    /// What a sweep found.
    public struct Swept: Sendable, Hashable {
        /// Sessions that had expired.
        public let sessions: Int64
        /// Leases that were taken back.
        public let leases: Int64
        /// The groups whose leases can't be taken back, since their own data are in the way: their counts don't add up, say.
        public let stuck: [String]
    }

    /// Ends expired sessions and takes back what they held (I14).
    public func sweepSessions(limit: Int32 = 1_000) async throws -> Swept {
        try await sweep(
            "SELECT sessions, leases, stuck FROM sweep_sessions(\(limit), \(policy.firstChunk), \(policy.deaths))")
    }

    /// Takes back leases that made no progress for `stall`, whatever their session's heartbeats say.
    public func sweepStalled(stall: Duration, limit: Int32 = 1_000) async throws -> Swept {
        try await sweep(
            """
            SELECT 0::bigint AS sessions, leases, stuck
            FROM sweep_stalled(\(stall.milliseconds)::bigint * interval '1 ms', \(limit), \(policy.firstChunk), \(policy.deaths))
            """)
    }

    private func sweep(_ statement: SQL) async throws -> Swept {
        let row = try await write(statement, waking: .nobody)[0]
        let swept = Swept(
            sessions: try row.decode("sessions"), leases: try row.decode("leases"), stuck: try row.decode("stuck"))
        if swept.leases > 0 { wake([.work, .events]) }
        return swept
    }

    /// Takes back chunks that are much slower than others on the same task or origin (range contract, row 32), and hands them to another
    /// source where that may serve them. Returns how many.
    ///
    /// - Parameter age: How old a lease must be, and how long it would need still.
    public func sweepSlow(olderThan age: Duration = .seconds(30), limit: Int32 = 100) async throws -> Int64 {
        try await count(
            """
            SELECT sweep_slow(\(age.milliseconds)::bigint * interval '1 ms', \(limit), \(policy.firstChunk), \(policy.deaths))
                AS count
            """, waking: [.work, .events])
    }

    /// Tries origins that bring files slowly, whether a plain GET is faster (range contract, "The ladder"). Returns how many are tried.
    ///
    /// - Parameter age: How old such a lease is; it is found until it is four times as old.
    public func trySlowOrigins(after age: Duration = .seconds(5)) async throws -> Int64 {
        try await count(
            "SELECT try_slow_origins(\(age.milliseconds)::bigint * interval '1 ms') AS count", waking: .work)
    }

    /// Makes chunks leasable whose backoff is over. Returns how many.
    public func promoteDueChunks(limit: Int32 = 10_000) async throws -> Int64 {
        try await count("SELECT promote_due_chunks(\(limit)) AS count", waking: .work)
    }

    /// Takes back what groups fetch that may not run now. Returns how many leases. It waits for no lock of a group.
    public func recallLeases(limit: Int32 = 1_000) async throws -> Int64 {
        try await count(
            "SELECT recall_leases(\(limit), \(policy.firstChunk), \(policy.deaths)) AS count", waking: [.work, .events])
    }

    /// Unfinished groups whose hours can't be read, which don't run for that, and why.
    public func flawedHours(limit: Int32 = 100) async throws -> [(group: String, flaw: String)] {
        try await query(
            """
            SELECT g.name, hours_flaw(g) AS flaw FROM groups g
            WHERE g.state IN ('open', 'sealed') AND (g.window_from IS NOT NULL OR g.timetable IS NOT NULL)
                AND hours_flaw(g) IS NOT NULL
            ORDER BY g.id LIMIT \(limit)
            """
        ).map { (try $0.decode("name"), try $0.decode("flaw")) }
    }

    /// Lets leftovers be deleted that nobody writes any more (I13). Returns how many deletions can be leased by that.
    public func releasePurges(limit: Int32 = 1_000) async throws -> Int64 {
        try await count("SELECT release_purges(\(limit)) AS count", waking: .work)
    }

    /// Lets chunks go that wait for the file of another task, where that has ended or does not get on. Returns how many.
    public func releaseRepeats(limit: Int32 = 1_000) async throws -> Int64 {
        try await count("SELECT release_repeats(\(limit)) AS count", waking: .work)
    }

    /// Deletes uploads whose last tasks were staged longer ago than `age`: nobody came back for them.
    public func sweepStagedTasks(olderThan age: Duration) async throws {
        _ = try await write(
            """
            DELETE FROM staged_tasks WHERE upload IN (
                SELECT upload FROM staged_tasks GROUP BY upload
                HAVING max(staged_at) < statement_timestamp() - \(age.milliseconds)::bigint * interval '1 ms')
            """, waking: .nobody)
    }
}
