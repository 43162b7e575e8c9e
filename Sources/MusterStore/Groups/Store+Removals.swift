import MusterPostgres

/// A group whose finished files are still to be deleted since it, or some of its tasks, were removed.
public struct RemovalRecord: Sendable, Hashable {
    /// The group's name, which may be that of another group by now.
    public let group: String
    /// Where the files are.
    public let sink: String
    /// How many there are still.
    public let files: Int64
    /// Live sessions that reach the sink.
    public let workersReaching: Int64
}

extension Store {
    /// What is still to be deleted of a group; `nil` when nothing is.
    public func removal(of group: String) async throws -> RemovalRecord? {
        try await removals(group, after: nil, limit: 1).first
    }

    /// A page of what is still to be deleted, by the names of groups.
    public func removals(after: String?, limit: Int32) async throws -> [RemovalRecord] {
        try await removals(nil, after: after, limit: limit)
    }

    /// Whether a group is there that is to be removed as a whole.
    public func isRemoving(_ group: String) async throws -> Bool {
        let rows = try await query(
            "SELECT g.id FROM groups g WHERE g.name = \(group) AND (is_removing(g) OR wish_rank(wished_of(g)) = 2)")
        return !rows.isEmpty
    }

    private func removals(_ group: String?, after: String?, limit: Int32) async throws -> [RemovalRecord] {
        try await query("SELECT name, sink, files, workers_reaching FROM removals(\(group), \(after), \(limit))").map {
            row in
            RemovalRecord(
                group: try row.decode("name"), sink: try row.decode("sink"), files: try row.decode("files"),
                workersReaching: try row.decode("workers_reaching"))
        }
    }
}
