public import MusterCore
import MusterPostgres

extension Store {
    /// Creates a group with its first tasks, all or nothing; seals it if wished.
    ///
    /// - Parameter upload: tasks staged before, or `nil` for none.
    /// - Returns: the group.
    public func createGroup(_ creation: GroupCreation, upload: Upload?) async throws -> GroupRecord {
        try await checkZones(of: creation.window, timetable: creation.timetable)
        let limit = creation.deadline?.milliseconds
        let upload = if let upload { try await complete(upload) } else { nil as Upload? }
        let name = try await once(waking: [.work, .events]) { connection in
            let rows = try await connection.query(
                """
                INSERT INTO groups (name, sink, priority, weight, max_connections, metadata, fetch_options,
                    policy, resolver, bytes_per_second, window_from, window_to, window_zone, timetable, time_limit,
                    deadline_at, deadline_action, reuses)
                VALUES (\(creation.name), \(creation.sink), \(creation.priority), \(creation.weight),
                    \(creation.maxConnections), \(creation.metadata.map { PostgresJSON($0) }),
                    \(creation.options.map { PostgresJSON($0) }), \(creation.policy.map { PostgresJSON($0) }),
                    \(creation.resolver.map { PostgresJSON($0) }), \(creation.bytesPerSecond),
                    \(creation.window?.from)::text::time, \(creation.window?.to)::text::time,
                    \(creation.window?.timeZone), \(creation.timetable.map { PostgresJSON($0) }),
                    \(limit)::bigint * interval '1 ms', statement_timestamp() + \(limit)::bigint * interval '1 ms',
                    \(creation.deadlineAction.rawValue), \(creation.reuses))
                ON CONFLICT (name) DO NOTHING RETURNING id
                """)
            guard let id = try rows.first?.decode("id", as: GroupID.self) else {
                throw Refusal.groupExists(creation.name)
            }
            if !creation.prerequisites.isEmpty {
                try await Self.setPrerequisites(creation.prerequisites, of: id, named: creation.name, on: connection)
            }
            if let upload {
                _ = try await Self.add(
                    upload, to: id, reopening: false, firstChunk: policy.firstChunk, on: connection)
            }
            if creation.isSealed { _ = try await connection.query("SELECT seal_group(\(id))::text") }
            return creation.name
        }
        return try await group(name)
    }

    /// One group.
    public func group(_ name: String) async throws -> GroupRecord {
        let rows = try await query(GroupRecord.query(where: "g.name = \(name)"))
        guard let row = rows.first else { throw Refusal.noSuchGroup(name) }
        return try GroupRecord(row)
    }

    /// A page of groups, by name.
    public func groups(state: GroupState?, after: String?, limit: Int32) async throws -> [GroupRecord] {
        try await query(
            GroupRecord.query(
                where: """
                    g.id IN (SELECT p.id FROM groups p
                        WHERE (\(state?.rawValue)::text IS NULL OR p.state = \(state?.rawValue))
                            AND (\(after)::text IS NULL OR p.name > \(after)) ORDER BY p.name LIMIT \(limit))
                    """)
        ).map(GroupRecord.init)
    }

    /// Seals a group.
    public func seal(_ name: String) async throws -> GroupRecord {
        let id = try await groupID(name)
        _ = try await write("SELECT seal_group(\(id))::text", waking: .events)
        return try await group(name)
    }

    /// A group's identity. A group that is being removed is visible to its removal only.
    func groupID(_ name: String, removing: Bool = false) async throws -> GroupID {
        let rows = try await query(
            "SELECT g.id FROM groups g WHERE g.name = \(name) AND (\(removing) OR NOT is_removing(g))")
        guard let row = rows.first else { throw Refusal.noSuchGroup(name) }
        return try row.decode("id")
    }
}
