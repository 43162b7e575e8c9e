import MusterPostgres
import MusterStore

/// Facts about the whole database, and about groups in it.
extension StoreFixture {
    /// The number of rows of a table.
    func count(of table: String) async throws -> Int64 { try await value("SELECT count(*) FROM \(identifier: table)") }

    /// The number of rows that were read from tables so far, through an index or not. Each connection counts its own reads when it is
    /// asked, so that a test of costs has a single connection.
    func rowsRead(from tables: String...) async throws -> Int64 {
        try await run("SELECT pg_stat_force_next_flush()")
        return try await value(
            """
            SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables
            WHERE relname = ANY (\(tables)::text[])
            """)
    }

    /// The number of statements that wait for a lock.
    func lockWaiters() async throws -> Int64 {
        try await value(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
    }

    /// The groups with leases, by name; a group with several leases occurs several times.
    func leasedGroups() async throws -> [String] {
        try await values("SELECT g.name FROM leases l JOIN groups g ON g.id = l.group_id ORDER BY 1")
    }

    /// The group of this name; `nil` if there is none.
    func group(_ name: String) async throws -> GroupRecord? {
        do { return try await store.group(name) } catch Store.Refusal.noSuchGroup { return nil }
    }

    /// Whether the sweep finds no verb to apply or to finish; if it finds one, it applies the next slice.
    func isSwept() async throws -> Bool { try await value("SELECT (sweep_wishes(3, '{}')).count IS NULL") }

    /// Fails if the database has lost rows, as the start of a private database does.
    func checkRows() async throws { try await run("SELECT check_rows()") }
}
