import MusterPostgres
import MusterStore

/// What groups may use, and what they have used. Without a name, it is set for all groups.
extension StoreFixture {
    /// Sets the byte budget, in bytes per second.
    func limitGroups(_ group: String? = nil, to bytesPerSecond: Int64) async throws {
        try await set("groups", "bytes_per_second", to: bytesPerSecond, of: group)
    }

    /// Sets how many lanes each group may have.
    func capGroups(at lanes: Int32) async throws { try await set("groups", "max_connections", to: lanes) }

    /// Records the speed of a group's connections, in bytes per second: that of leases of a thousand seconds.
    func setLeaseSpeed(_ bytesPerSecond: Int64 = 100) async throws {
        try await run("UPDATE groups SET lease_bytes = 1000 * \(bytesPerSecond), lease_ms = 1000000")
    }

    /// Makes the group share with others of its priority, after so many bytes.
    func joinSharing(_ group: String, served bytes: Int64) async throws {
        try await run("UPDATE groups SET served = \(bytes), shares_at = priority WHERE name = \(group)")
    }

    /// Charges the groups so many bytes more for each of their leases.
    func charge(_ bytes: Int64) async throws {
        try await run("UPDATE leases SET charged = charged + \(bytes)")
        try await run(
            """
            UPDATE groups g SET served = served + \(bytes) * (SELECT count(*) FROM leases l WHERE l.group_id = g.id)
            """)
    }

    /// Lets no time pass between two syncs, however slow the test is: no use is measured, and no share expires.
    func stopBudgetClock() async throws {
        try await run(
            """
            CREATE FUNCTION stop_clock() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                NEW.used_at := statement_timestamp() + interval '1 h';
                RETURN NEW;
            END $$
            """)
        try await run(
            """
            CREATE TRIGGER stopped_clock BEFORE INSERT OR UPDATE ON budget_shares FOR EACH ROW EXECUTE FUNCTION stop_clock()
            """)
    }

    /// Undoes `stopBudgetClock`.
    func startBudgetClock() async throws { try await run("DROP TRIGGER stopped_clock ON budget_shares") }

    /// The sum of a budget's shares as they count.
    func total(_ budget: String) async throws -> Int64 {
        try await value("SELECT coalesce(sum(share), 0)::bigint FROM budget_shares WHERE budget = \(budget)")
    }
}
