import MusterCore
import MusterPostgres
import MusterStore

/// States of groups.
extension StoreFixture {
    /// Makes the group's window open or closed now, whatever the time of day.
    func setWindow(of group: String, isOpen: Bool) async throws {
        try await setWindow(of: group, from: .seconds(isOpen ? -7_200 : 7_200), to: .seconds(isOpen ? 7_200 : 14_400))
    }

    /// Sets the group's window to begin and end at times that are measured from now, in the local time of a zone.
    func setWindow(of group: String, from: Duration, to: Duration, zone: String = "UTC") async throws {
        try await run(
            """
            UPDATE groups SET window_zone = \(zone),
                window_from = (statement_timestamp() AT TIME ZONE \(zone))::time + \(from),
                window_to = (statement_timestamp() AT TIME ZONE \(zone))::time + \(to)
            WHERE name = \(group)
            """)
    }

    /// Stores a timetable, and the zone of a window from 00:00 to 00:01, whatever a request may set.
    func setHours(of group: String, timetable: String? = nil, zone: String? = nil) async throws {
        try await run(
            """
            UPDATE groups SET timetable = \(timetable)::text::jsonb, window_zone = \(zone)::text,
                window_from = CASE WHEN \(zone)::text IS NOT NULL THEN time '00:00' END,
                window_to = CASE WHEN \(zone)::text IS NOT NULL THEN time '00:01' END
            WHERE name = \(group)
            """)
    }

    /// Gives the group a deadline, which is over at once.
    func passDeadline(of group: String, _ action: DeadlineAction = .fail) async throws {
        _ = try await store.change(group, GroupChange(deadline: .set(.seconds(3_600)), deadlineAction: action))
        try await run("UPDATE groups SET deadline_at = '-infinity' WHERE name = \(group)")
    }

    /// Keeps the byte counters of groups and leases from decaying for an hour.
    func stopClocks() async throws {
        for column in [TimeColumn.groupBytes, .progress] { try await set(column, ago: .seconds(-3_600)) }
    }

    /// Stores a verb on the whole group for the sweep, as a request to a locked group does.
    func wish(_ verb: TaskVerb, for group: String) async throws {
        try await run("SELECT keep_wish(id, \(verb.rawValue))::text FROM groups WHERE name = \(group)")
    }

    /// Applies one slice of a verb to the group `g`: the first slice, as a request does that dies after it, or a later one.
    func slice(_ verb: String, isFirst: Bool = true) async throws -> (isDone: Bool, changed: Int64) {
        let place: Int32 = isFirst ? 0 : 1
        let row = try await pool.query(
            "SELECT is_done, changed FROM groups g, verb_slice(g.id, \(verb), \(place), 0, 3) WHERE g.name = 'g'")[0]
        return (isDone: try row.decode("is_done"), changed: try row.decode("changed"))
    }

    /// Applies a verb, or `seal`, to the only group in a transaction that is still open.
    func apply(_ verb: String, on connection: PostgresConnection) async throws {
        let call: SQL = verb == "seal" ? "seal_group(id)" : "apply_verb(id, \(verb), NULL)"
        _ = try await connection.query("SELECT \(call)::text FROM groups")
    }

    /// Runs a test while another transaction holds the lock of the group's row, the one that the store's own transactions take.
    func locking(_ group: String = "g", _ body: @Sendable () async throws -> Void) async throws {
        try await pool.withTransaction { connection in
            _ = try await connection.query("SELECT id FROM groups WHERE name = \(group) FOR NO KEY UPDATE")
            try await body()
        }
    }
}
