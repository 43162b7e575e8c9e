import MusterCore
import MusterPostgres
import MusterStore

/// States of tasks, of their sources, and of uploads.
extension StoreFixture {
    /// Forgets the staged tasks of the lines before `line`: after a crash of the database an unlogged table holds only the lines that
    /// arrived afterwards.
    func loseStagedTasks(before line: Int64) async throws {
        try await run("DELETE FROM staged_tasks WHERE line < \(line)")
    }

    /// Adds an upload to the group in a transaction that is still open.
    func add(_ upload: Upload, to group: String, on connection: PostgresConnection) async throws {
        _ = try await connection.query(
            "SELECT added FROM groups, add_tasks(id, \(upload.id), \(upload.count), 100, false) WHERE name = \(group)")
    }

    /// Writes the tasks of an upload for the only group in a transaction that is still open.
    func place(_ upload: Upload, on connection: PostgresConnection) async throws {
        _ = try await connection.query(
            "SELECT add_origins(\(upload.id))::text, place_staged(g, \(upload.id), 100)::text FROM groups g")
    }

    /// Adds twenty thousand queued tasks of 90 bytes to the only group as plain rows, each with a ready chunk at each origin.
    func addManyTasks() async throws {
        try await run(
            """
            WITH made AS (
                INSERT INTO tasks (group_id, key, sink, path, size)
                SELECT g.id, 'x' || n, g.sink, 'x' || n, 90 FROM groups g, generate_series(1, 20000) AS n
                RETURNING id, group_id, sink
            )
            INSERT INTO ready_chunks (task_id, group_id, origin_id, sink, version, last)
            SELECT m.id, m.group_id, o.id, m.sink, 1, 90 FROM made m, origins o
            """)
        try await run("ANALYZE")
    }

    /// Queues a paused task, though its group is paused: a file that was being put in place then has to be fetched again.
    func queuePausedTask(_ key: String) async throws {
        try await run(
            """
            WITH t AS (UPDATE tasks SET state = 'queued' WHERE key = \(key) RETURNING id),
                c AS (UPDATE ready_chunks SET status = 'ready' FROM t WHERE task_id = t.id)
            UPDATE groups SET queued = queued + 1, paused = paused - 1
            """)
    }

    /// Makes a mirror of every task differ from the others in a content version.
    func setDiffering(source ordinal: Int32, in version: Int32 = 1) async throws {
        try await run("UPDATE sources SET differs_in = \(version) WHERE ordinal = \(ordinal)")
    }

    /// Makes the chunks that a claim deferred for a moment ready again.
    func endDeferrals(of tasks: [TaskID]) async throws {
        try await run(
            """
            UPDATE ready_chunks SET status = 'ready', not_before = NULL
            WHERE status = 'waiting' AND kind IN ('fetch', 'finalize') AND task_id = ANY (\(tasks))
            """)
    }

    /// Makes a lease, if it is still held, have brought nothing for ages.
    func stall(_ lease: GrantedLease) async throws {
        try await run("UPDATE leases SET progress_at = '-infinity' WHERE epoch = \(lease.name.epoch)")
    }
}
