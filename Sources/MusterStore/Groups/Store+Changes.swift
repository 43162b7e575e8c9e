import MusterCore
import MusterPostgres

extension Store {
    /// Changes a group's settings, all or none of them. Settings that are not given stay.
    ///
    /// A deadline counts from now, whatever the former deadline was. A group that has finished gets its deadline when it is
    /// reopened.
    public func change(_ name: String, _ change: GroupChange) async throws -> GroupRecord {
        try await checkZones(of: change.window.value, timetable: change.timetable.value)
        let id = try await groupID(name)
        // Work may become leasable after a larger limit, an open window or the loss of a prerequisite. The last may also
        // complete an empty group.
        try await transaction(waking: [.work, .events]) { connection in
            // This comes first, since it locks several groups, in order.
            if let prerequisites = change.prerequisites {
                try await Self.setPrerequisites(prerequisites, of: id, named: name, on: connection)
            }
            let cap = change.maxConnections
            let rate = change.bytesPerSecond
            let window = change.window
            let timetable = change.timetable
            let deadline = change.deadline
            let limit = deadline.value?.milliseconds
            let options = change.options
            let resolver = change.resolver
            let metadata = change.metadata
            _ = try await connection.query(
                """
                UPDATE groups
                SET priority = coalesce(\(change.priority), priority), weight = coalesce(\(change.weight), weight),
                    max_connections = CASE WHEN \(cap.isSet) THEN \(cap.value) ELSE max_connections END,
                    bytes_per_second = CASE WHEN \(rate.isSet) THEN \(rate.value) ELSE bytes_per_second END,
                    window_from = CASE WHEN \(window.isSet) THEN \(window.value?.from)::text::time ELSE window_from END,
                    window_to = CASE WHEN \(window.isSet) THEN \(window.value?.to)::text::time ELSE window_to END,
                    window_zone = CASE WHEN \(window.isSet) THEN \(window.value?.timeZone) ELSE window_zone END,
                    timetable = CASE WHEN \(timetable.isSet) THEN \(timetable.value.map { PostgresJSON($0) })
                        ELSE timetable END,
                    time_limit = CASE WHEN \(deadline.isSet) THEN \(limit)::bigint * interval '1 ms' ELSE time_limit END,
                    deadline_at = CASE WHEN \(deadline.isSet) AND state IN ('open', 'sealed')
                        THEN statement_timestamp() + \(limit)::bigint * interval '1 ms' ELSE deadline_at END,
                    -- Whether its time is over is asked again when it gets another one.
                    overdue = overdue AND (NOT \(deadline.isSet) OR state NOT IN ('open', 'sealed')),
                    deadline_action = coalesce(\(change.deadlineAction?.rawValue), deadline_action),
                    -- Whether codings are taken off is part of what the files are, and stays.
                    fetch_options = CASE WHEN \(options.isSet)
                        THEN nullif(coalesce(\(options.value.map { PostgresJSON($0) })::jsonb, '{}') - 'decode'
                            || CASE WHEN fetch_options ? 'decode' THEN jsonb_build_object('decode', fetch_options -> 'decode')
                                ELSE '{}' END, '{}')
                        ELSE fetch_options END,
                    asked_anew_at = CASE WHEN \(options.isSet || resolver.isSet) THEN statement_timestamp() ELSE asked_anew_at END,
                    resolver = CASE WHEN \(resolver.isSet) THEN \(resolver.value.map { PostgresJSON($0) }) ELSE resolver END,
                    metadata = CASE WHEN \(metadata.isSet) THEN \(metadata.value.map { PostgresJSON($0) }) ELSE metadata END
                WHERE id = \(id)
                """)
        }
        return try await group(name)
    }

    /// Opens a group for further tasks. A sealed group stays in its generation; a finished group begins the next one; an
    /// open group stays open.
    public func reopen(_ name: String) async throws -> GroupRecord {
        let id = try await groupID(name)
        while try await !write("SELECT reopen_group(\(id)) AS done", waking: [.work, .events])[0]
            .decode("done", as: Bool.self)
        {
            try await finishCancel(of: id)
        }
        return try await group(name)
    }

    /// Sets the groups that a group waits for; they replace the present ones.
    static func setPrerequisites(
        _ prerequisites: [GroupPrerequisite], of group: GroupID, named name: String, on connection: PostgresConnection
    ) async throws {
        let row = try await connection.query(
            """
            SELECT outcome, subjects FROM set_prerequisites(\(group), \(prerequisites.map(\.group)),
                \(prerequisites.map(\.on.rawValue)))
            """)[0]
        switch try row.decode("outcome", as: PrerequisiteOutcome.self) {
        case .set: break
        case .removed: throw Refusal.noSuchGroup(name)
        case .unknown: throw Refusal.noSuchPrerequisite(try row.decode("subjects", as: [String].self)[0])
        case .late: throw Refusal.prerequisitesTooLate(name)
        case .cycle: throw Refusal.prerequisiteCycle(try row.decode("subjects"))
        }
    }

    /// The outcomes of `set_prerequisites`; with any but `set`, nothing was changed.
    private enum PrerequisiteOutcome: String, PostgresText {
        case set, removed, unknown, late, cycle
    }

    /// The name of a group that still waits for this one; `nil` if there is none.
    func dependent(of group: GroupID) async throws -> String? {
        try await query(
            """
            SELECT d.name FROM group_prerequisites r JOIN groups d ON d.id = r.group_id
            WHERE r.prerequisite_id = \(group) AND r.satisfied_at IS NULL ORDER BY d.name LIMIT 1
            """
        ).first?.decode("name")
    }

    /// Refuses names of time zones that PostgreSQL doesn't know: every later query with such a name would fail.
    func checkZones(of window: TimeWindow?, timetable: String?) async throws {
        guard window != nil || timetable != nil else { return }
        let unknown = try await query(
            """
            SELECT z.pointer, z.zone FROM (
                SELECT '/limits/between/timeZone' AS pointer, \(window?.timeZone)::text AS zone
                UNION ALL
                SELECT '/limits/timetable/' || (e.n - 1) || '/timeZone', e.entry ->> 'timeZone'
                FROM jsonb_array_elements(\(timetable.map { PostgresJSON($0) })::jsonb) WITH ORDINALITY AS e (entry, n)
            ) AS z
            WHERE z.zone NOT IN (SELECT name FROM pg_timezone_names) ORDER BY z.pointer LIMIT 1
            """)
        if let row = unknown.first {
            throw Refusal.unknownTimeZone(try row.decode("zone"), pointer: try row.decode("pointer"))
        }
    }
}
