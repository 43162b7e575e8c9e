import MusterPostgres
import MusterStore

/// A column with the moment from which the store counts a time.
enum TimeColumn: String {
    case attempt = "attempts.at"
    case budgetUse = "budget_shares.used_at"
    case settlement = "deliveries.settled_at"
    case groupBytes = "groups.rate_at"
    case groupCreation = "groups.created_at"
    case grant = "leases.granted_at"
    case progress = "leases.progress_at"
    case shrinkRequest = "leases.shrink_asked_at"
    case comparison = "origins.compared_at"
    case doubt = "origins.doubted_at"
    case learning = "origins.learned_at"
    case limit = "origins.limited_at"
    case originBytes = "origins.rate_at"
    case refusal = "origins.refused_at"
    case firstRefusal = "origins.refused_since"
    case rest = "origins.not_before"
    case chunkWait = "ready_chunks.not_before"
    case expiry = "sessions.expires_at"
    case sync = "sessions.seen_at"
    case rotation = "subscriptions.previous_until"
    case addition = "tasks.created_at"
    case deadline = "tasks.deadline_at"

    var table: String { String(rawValue.prefix { $0 != "." }) }
    var name: String { String(rawValue.drop { $0 != "." }.dropFirst()) }
    /// The column that tells the rows apart: the session for shares of budgets, the chunk for leases.
    var key: String { ["attempts": "task_id", "budget_shares": "session_id", "leases": "chunk_id"][table] ?? "id" }
}

/// Passing time.
extension StoreFixture {
    /// Lets time pass since moments: in all rows, or in that with the key `row`. A negative duration makes the moments later.
    func age(_ columns: TimeColumn..., by duration: Duration, of row: Int64? = nil) async throws {
        for column in columns { try await set(column, to: "\(identifier: column.name) - \(duration)", of: row) }
    }

    /// Makes moments, where they have come, lie so long ago: in all rows, or in that with the key `row`.
    func set(_ columns: TimeColumn..., ago duration: Duration, of row: Int64? = nil) async throws {
        for column in columns { try await set(column, to: "statement_timestamp() - \(duration)", of: row) }
    }

    private func set(_ column: TimeColumn, to time: SQL, of row: Int64?) async throws {
        try await run(
            """
            UPDATE \(identifier: column.table) SET \(identifier: column.name) = \(time)
            WHERE \(identifier: column.name) IS NOT NULL AND coalesce(\(identifier: column.key) = \(row), true)
            """)
    }

    /// How many seconds ahead the latest of these moments is; negative if it has come.
    func secondsAhead(_ column: TimeColumn) async throws -> Double {
        try await value(
            """
            SELECT extract(epoch FROM max(\(identifier: column.name)) - statement_timestamp())::double precision
            FROM \(identifier: column.table)
            """)
    }

    /// Ends the waits of chunks, or of those of one kind, as time would.
    func passChunkWaits(of kind: String? = nil) async throws {
        try await run(
            """
            UPDATE ready_chunks SET not_before = '-infinity'
            WHERE status = 'waiting' AND coalesce(kind = \(kind), true)
            """)
        _ = try await store.promoteDueChunks()
    }

    /// Makes waiting chunks wait for an hour longer; with a kind, all chunks of that kind wait.
    func prolongChunkWaits(of kind: String? = nil) async throws {
        try await run(
            """
            UPDATE ready_chunks SET status = 'waiting',
                not_before = coalesce(not_before, statement_timestamp()) + interval '1 h'
            WHERE kind = \(kind) OR \(kind)::text IS NULL AND status = 'waiting'
            """)
    }
}
