import MusterCore
import MusterPostgres
import MusterStore

/// States of tasks' contents, of their chunks and leases, and of their sources.
extension StoreFixture {
    /// Forgets all trials of origins that are not leased.
    func dropTrials() async throws { try await run("DELETE FROM ready_chunks WHERE kind = 'trial'") }

    /// Makes leases that bring all of a file indivisible.
    func dropTiles() async throws { try await run("UPDATE leases SET tile = NULL") }

    /// Makes a lease's chunk empty.
    func empty(_ lease: GrantedLease) async throws {
        try await run(
            "UPDATE leases SET last = first, resume = first, durable = first WHERE chunk_id = \(lease.name.chunk)")
    }

    /// Makes all leases have brought nothing since they were granted.
    func forgetProgress() async throws {
        try await run("UPDATE leases SET durable = resume, progress_at = granted_at")
    }

    /// Makes the lease's last progress have come so long after its grant.
    func setProgress(of lease: GrantedLease, after duration: Duration) async throws {
        try await run("UPDATE leases SET granted_at = progress_at - \(duration) WHERE chunk_id = \(lease.name.chunk)")
    }

    /// Moves a lease, or all leases, to a source, as a claim that pulls chunks does.
    func moveLeases(to source: Int32, only lease: GrantedLease? = nil) async throws {
        try await run(
            """
            UPDATE leases l SET source = s.ordinal, origin_id = s.origin_id FROM sources s
            WHERE coalesce(l.chunk_id = \(lease?.name.chunk), true) AND s.task_id = l.task_id AND s.ordinal = \(source)
            """)
    }

    /// Gives the leases on purges to a session that does not exist.
    func orphanPurges() async throws { try await run("UPDATE leases SET session_id = 0 WHERE kind = 'purge'") }

    /// Sets how often the chunk at an offset failed, and how often it was taken from its holder.
    func setChunk(at first: Int64, attempts: Int32 = 0, moves: Int16 = 0) async throws {
        try await run("UPDATE ready_chunks SET attempts = \(attempts), moves = \(moves) WHERE first = \(first)")
    }

    /// Lets a resolver be asked about a source of every task, later.
    func askResolver(about source: Int32) async throws {
        try await run("UPDATE groups SET resolver = '{}'")
        try await run(
            """
            INSERT INTO ready_chunks (kind, task_id, group_id, origin_id, source, sink, version, last, status, not_before)
            SELECT 'resolve', id, group_id, 0, \(source), sink, version, 0, 'waiting', 'infinity' FROM tasks
            """)
    }

    /// Limits the time of tasks, except that with a key, and how much of it is left.
    func limitTime(to limit: Duration, left: Duration, except key: String? = nil) async throws {
        try await run(
            """
            UPDATE tasks SET time_limit = \(limit), deadline_at = statement_timestamp() + \(left)
            WHERE key IS DISTINCT FROM \(key)
            """)
    }

    /// Gives up a source of every task.
    func giveUp(source ordinal: Int32) async throws {
        try await run("UPDATE sources SET dead = true WHERE ordinal = \(ordinal)")
    }

    /// Records what every task's source has brought so far.
    func setBrought(by ordinal: Int32, bytes: Int64, in time: Duration) async throws {
        try await run(
            """
            UPDATE sources SET bytes = \(bytes), busy_ms = 1000 * extract(epoch FROM \(time)) WHERE ordinal = \(ordinal)
            """)
    }
}
