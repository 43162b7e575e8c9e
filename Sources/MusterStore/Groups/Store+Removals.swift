import MusterCore
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
    /// How many of them could not be deleted when that was last tried.
    public let failed: Int64
    /// Why one of these could not.
    public let failure: String?
}

/// What becomes of the finished files of a group if they are deleted with it.
public struct RemovalFate: Sendable, Hashable {
    /// How many are to be deleted.
    public let toDelete: Int64
    /// How many stay, since another task has put its file, or may be about to put it, at the path since.
    public let kept: Int64
    /// The group of one of these tasks.
    public let keptBy: String?

    /// A fate.
    public init(toDelete: Int64, kept: Int64, keptBy: String?) {
        self.toDelete = toDelete
        self.kept = kept
        self.keptBy = keptBy
    }
}

/// What became of files that were to be deleted, as far as workers have told.
public struct RemovalOutcome: Sendable, Hashable {
    /// How many were deleted.
    public let deleted: Int64
    /// How many stay, since others stand at their paths by now.
    public let changed: Int64
    /// How many were gone already.
    public let missing: Int64

    /// An outcome.
    public init(deleted: Int64, changed: Int64, missing: Int64) {
        self.deleted = deleted
        self.changed = changed
        self.missing = missing
    }
}

extension Store {
    /// So many finished files are counted at the most before a removal.
    private static let mostCounted: Int64 = 10_000

    /// What would become of the finished files of a group, or of some of its tasks, if they were deleted with it now; `nil` for more than 10,000,
    /// which take too long to count.
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

    /// A removal with files begins under the name of a group: what became of those of earlier ones is forgotten, unless some are left.
    public func beginRemoval(of group: String) async throws {
        _ = try await write("SELECT begin_removal(\(group))::text", waking: .nobody)
    }

    /// What became of the files that were removed under the name of a group; `nil` where nobody has told.
    public func removalOutcome(of group: String) async throws -> RemovalOutcome? {
        try await query("SELECT deleted, changed, missing FROM removed_files WHERE group_name = \(group)").first.map {
            RemovalOutcome(
                deleted: try $0.decode("deleted"), changed: try $0.decode("changed"), missing: try $0.decode("missing"))
        }
    }

    /// Forgets what became of files that were removed longer ago than `age`.
    public func dropRemovalOutcomes(olderThan age: Duration) async throws {
        _ = try await write(
            "DELETE FROM removed_files WHERE at < statement_timestamp() - \(age.milliseconds)::bigint * interval '1 ms'",
            waking: .nobody)
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
