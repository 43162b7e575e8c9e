import MusterCore
import MusterPostgres

/// States of the database that no client can cause, and that only time can.
extension RunningCoordinator {
    /// Runs `body` with connections of its own to the database.
    func withDatabase(connections: Int = 1, _ body: (PostgresPool) async throws -> Void) async throws {
        let pool = PostgresPool(PostgresConfiguration(database), limits: .init(maximumConnections: connections))
        do {
            try await body(pool)
        } catch {
            await pool.shutdown()
            throw error
        }
        await pool.shutdown()
    }

    /// Makes the moments in a column earlier, as if so much more time had passed since then.
    func age(_ table: String, _ column: String, by duration: Duration) async throws {
        try await execute(
            "UPDATE \(identifier: table) SET \(identifier: column) = \(identifier: column) - \(duration)")
    }

    /// Stores a value, as PostgreSQL writes it, in a column of all rows, or of those with a name; nil stores NULL.
    func set(_ table: String, _ column: String, to value: String?, of name: String? = nil) async throws {
        let text = value.map { "'\($0)'" } ?? "NULL"
        let change = SQL(unsafeRaw: "UPDATE \(table) SET \(column) = \(text)")
        try await execute(name.map { change + " WHERE name = \($0)" } ?? change)
    }

    /// Takes the end from a lease, so that it does not bound the offsets that its holder may report.
    func unbind(chunk: ChunkID) async throws {
        try await execute("UPDATE leases SET last = NULL WHERE chunk_id = \(chunk.rawValue)")
    }

    /// Begins the cancel of a group of many tasks, as a coordinator that dies after its first transaction.
    func beginCancel(of group: String) async throws {
        try await execute(
            """
            SELECT v.changed FROM groups g CROSS JOIN verb_slice(g.id, 'cancel', 0, 0, 1) AS v WHERE g.name = \(group)
            """)
    }

    /// The rows of a group that another transaction can lock.
    enum Lock: CaseIterable, Sendable {
        case group, tasks, leases
    }

    /// Runs `body` while another transaction has rows of the group locked.
    func locking(_ group: String, _ lock: Lock = .group, _ body: @Sendable () async throws -> Void) async throws {
        try await withDatabase { pool in
            try await pool.withTransaction { connection in
                let rows: SQL =
                    switch lock {
                    case .group: "groups g WHERE g.name = \(group)"
                    case .tasks: "tasks g WHERE g.group_id = (SELECT id FROM groups WHERE name = \(group))"
                    case .leases: "leases g WHERE g.group_id = (SELECT id FROM groups WHERE name = \(group))"
                    }
                _ = try await connection.query("SELECT FROM \(rows) FOR NO KEY UPDATE OF g")
                try await body()
            }
        }
    }

    private func execute(_ statement: SQL) async throws {
        try await withDatabase { _ = try await $0.query(statement) }
    }
}
