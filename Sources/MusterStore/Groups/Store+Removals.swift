import MusterCore
import MusterPostgres

/// A group whose finished files are still to be deleted because the group, or some of its tasks, were removed.
public struct RemovalRecord: Sendable, Hashable {
    /// The group's name. Another group may have that name by now.
    public let group: String
    /// The sink of the files.
    public let sink: String
    /// The number of files still to delete.
    public let files: Int64
    /// The number of live sessions that reach the sink.
    public let workersReaching: Int64
    /// The number of these files whose deletion failed when it was last tried.
    public let failed: Int64
    /// Why the deletion of one of them failed.
    public let failure: String?
}

/// What happens to the finished files of a group if they are deleted with it.
public struct RemovalFate: Sendable, Hashable {
    /// The number of files to be deleted.
    public let toDelete: Int64
    /// The number of files that stay, because another task has put its file at the path since, or may be about to do so.
    public let kept: Int64
    /// The group of one of these tasks.
    public let keptBy: String?

    /// The counts of files to delete and to keep.
    public init(toDelete: Int64, kept: Int64, keptBy: String?) {
        self.toDelete = toDelete
        self.kept = kept
        self.keptBy = keptBy
    }
}

/// The results of deletions, as far as workers have reported them.
public struct RemovalOutcome: Sendable, Hashable {
    /// The number of files that were deleted.
    public let deleted: Int64
    /// The number of files that stay, because other files are at their paths by now.
    public let changed: Int64
    /// The number of files that were missing already.
    public let missing: Int64

    /// The counts of deleted, changed and missing files.
    public init(deleted: Int64, changed: Int64, missing: Int64) {
        self.deleted = deleted
        self.changed = changed
        self.missing = missing
    }
}

extension Store {
    /// The most finished files that are counted before a removal.
    private static let mostCounted: Int64 = 10_000

    /// What would happen to the finished files of a group, or of some of its tasks, if they were deleted with it now; `nil`
    /// for more than 10,000 files, which take too long to count.
    public func removalFate(of group: String, keys: [String]? = nil) async throws -> RemovalFate? {
        let id = try await groupID(group, removing: keys == nil)
        let row = try await query(
            """
            SELECT count(*) AS files, count(*) FILTER (WHERE f.is_deleted) AS deleted, count(*) FILTER (WHERE NOT f.is_deleted) AS kept,
                min((SELECT min(g.name) FROM tasks o JOIN groups g ON g.id = o.group_id
                    WHERE o.sink = (f.t).sink AND o.path = (f.t).path AND o.id <> (f.t).id AND o.group_id <> (f.t).group_id
                        AND o.state NOT IN ('failed', 'cancelled')))
                    FILTER (WHERE NOT f.is_deleted) AS kept_by
            FROM (
                SELECT t, takes_file_along(t) AS is_deleted
                FROM tasks t WHERE t.group_id = \(id) AND t.state = 'succeeded'
                    AND (\(keys)::text[] IS NULL OR t.key = ANY (\(keys))) LIMIT \(Self.mostCounted + 1)
            ) AS f
            """)[0]
        guard try row.decode("files", as: Int64.self) <= Self.mostCounted else { return nil }
        return RemovalFate(
            toDelete: try row.decode("deleted"), kept: try row.decode("kept"), keptBy: try row.decode("kept_by"))
    }

    /// The files that are still to be deleted of a group; `nil` if there are none.
    public func removal(of group: String) async throws -> RemovalRecord? {
        try await removals(group, after: nil, limit: 1).first
    }

    /// A page of the groups with files still to be deleted, by name.
    public func removals(after: String?, limit: Int32) async throws -> [RemovalRecord] {
        try await removals(nil, after: after, limit: limit)
    }

    /// Whether a group of this name exists and is being removed as a whole.
    public func isRemoving(_ group: String) async throws -> Bool {
        let rows = try await query(
            "SELECT g.id FROM groups g WHERE g.name = \(group) AND (is_removing(g) OR wish_rank(wished_of(g)) = 2)")
        return !rows.isEmpty
    }

    /// Begins a removal with files under the name of a group: deletes the results of earlier removals of that name, unless
    /// some of their files are still to be deleted.
    public func beginRemoval(of group: String) async throws {
        _ = try await write("SELECT begin_removal(\(group))::text", waking: [])
    }

    /// The results for the files removed under the name of a group; `nil` if no worker has reported any.
    public func removalOutcome(of group: String) async throws -> RemovalOutcome? {
        try await query("SELECT deleted, changed, missing FROM removed_files WHERE group_name = \(group)").first.map {
            RemovalOutcome(
                deleted: try $0.decode("deleted"), changed: try $0.decode("changed"), missing: try $0.decode("missing"))
        }
    }

    /// Deletes the results of removals that are older than `age`.
    public func dropRemovalOutcomes(olderThan age: Duration) async throws {
        _ = try await write(
            "DELETE FROM removed_files WHERE at < statement_timestamp() - \(age.milliseconds)::bigint * interval '1 ms'",
            waking: [])
    }

    private func removals(_ group: String?, after: String?, limit: Int32) async throws -> [RemovalRecord] {
        try await query(
            "SELECT name, sink, files, workers_reaching, failed, failure FROM removals(\(group), \(after), \(limit))"
        ).map { row in
            RemovalRecord(
                group: try row.decode("name"), sink: try row.decode("sink"), files: try row.decode("files"),
                workersReaching: try row.decode("workers_reaching"), failed: try row.decode("failed"),
                failure: try row.decode("failure"))
        }
    }
}
