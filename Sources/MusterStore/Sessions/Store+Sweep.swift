import MusterCore
import MusterPostgres

extension Store {
    /// What a sweep found.
    public struct Swept: Sendable, Hashable {
        /// Sessions that had expired.
        public let sessions: Int64
        /// Leases that were taken back.
        public let leases: Int64
        /// The groups whose leases can't be taken back because their own data are inconsistent; for example, their counts
        /// don't add up.
        public let stuck: [String]
    }

    /// Ends expired sessions and takes back their leases (I14).
    public func sweepSessions(limit: Int32 = 1_000) async throws -> Swept {
        try await sweep("SELECT sessions, leases, stuck FROM sweep_sessions(\(limit), \(policy.row))")
    }

    /// Takes back leases that made no progress for `stall`, whatever their session's heartbeats say.
    public func sweepStalled(stall: Duration, limit: Int32 = 1_000) async throws -> Swept {
        try await sweep(
            """
            SELECT 0::bigint AS sessions, leases, stuck
            FROM sweep_stalled(\(stall.milliseconds)::bigint * interval '1 ms', \(limit), \(policy.row))
            """)
    }

    private func sweep(_ statement: SQL) async throws -> Swept {
        let row = try await write(statement, waking: [])[0]
        let swept = Swept(
            sessions: try row.decode("sessions"), leases: try row.decode("leases"), stuck: try row.decode("stuck"))
        if swept.leases > 0 { wake([.work, .events]) }
        return swept
    }

    /// Takes back chunks that are much slower than others on the same task or origin (range contract, row 32), and moves
    /// them to another source that may serve them. Returns their number.
    ///
    /// - Parameter age: the minimum age of such a lease, and the minimum time that it would still need.
    public func sweepSlow(olderThan age: Duration = .seconds(30), limit: Int32 = 100) async throws -> Int64 {
        try await count(
            "SELECT sweep_slow(\(age.milliseconds)::bigint * interval '1 ms', \(limit), \(policy.row)) AS count",
            waking: [.work, .events])
    }

    /// Tries whether a plain GET is faster at origins that send files slowly (range contract, "The ladder"). Returns the
    /// number of origins that are tried.
    ///
    /// - Parameter age: the minimum age of a slow lease. Leases older than four times this are ignored.
    public func trySlowOrigins(after age: Duration = .seconds(5)) async throws -> Int64 {
        try await count(
            "SELECT try_slow_origins(\(age.milliseconds)::bigint * interval '1 ms') AS count", waking: .work)
    }

    /// Moves what waits for a moment if the database's clock has stepped back by more than two seconds (F11): sessions, backoffs,
    /// pauses of origins, deliveries.
    ///
    /// - Returns: the step; `nil` if there was none.
    public func followClock() async throws -> Duration? {
        let row = try await change("SELECT (extract(epoch FROM follow_clock()) * 1000)::bigint AS step")[0]
        let step = try row.decode("step", as: Int64?.self).map(Duration.milliseconds)
        if step != nil { wake([.work, .events]) }
        return step
    }

    /// Makes chunks leasable whose backoff is over. Returns their number.
    public func promoteDueChunks(limit: Int32 = 10_000) async throws -> Int64 {
        try await count("SELECT promote_due_chunks(\(limit)) AS count", waking: .work)
    }

    /// Takes back the leases of groups that may not run now. Returns their number. It does not wait for locks of groups.
    public func recallLeases(limit: Int32 = 1_000) async throws -> Int64 {
        try await count("SELECT recall_leases(\(limit), \(policy.row)) AS count", waking: [.work, .events])
    }

    /// Unfinished groups that don't run because their hours can't be read, and the reason.
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

    /// Releases deletions of leftovers that no session may still be writing (I13). Returns the number of deletions that
    /// became leasable.
    public func releasePurges(limit: Int32 = 1_000) async throws -> Int64 {
        try await count("SELECT release_purges(\(limit)) AS count", waking: .work)
    }

    /// Releases chunks that wait for the file of another task, if that task has ended or makes no progress. Returns their
    /// number.
    public func releaseRepeats(limit: Int32 = 1_000) async throws -> Int64 {
        try await count("SELECT release_repeats(\(limit)) AS count", waking: .work)
    }

    /// Deletes abandoned uploads: those whose last tasks were staged longer ago than `age`.
    public func sweepStagedTasks(olderThan age: Duration) async throws {
        _ = try await write(
            """
            DELETE FROM staged_tasks WHERE upload IN (
                SELECT upload FROM staged_tasks GROUP BY upload
                HAVING max(staged_at) < statement_timestamp() - \(age.milliseconds)::bigint * interval '1 ms')
            """, waking: [])
    }
}
