/// What is left to do for a removal: the finished files that were to be deleted and still exist.
public struct RemovalDocument: Hashable, Sendable, Codable {
    /// The group's name, which another group may have by now.
    public var group: String
    /// The sink of the files; absent when none are left.
    public var sink: String?
    /// How many files are still there.
    public var files: Int64
    /// How many live workers can delete them.
    public var workersReaching: Int64
    /// Why files could not be deleted; absent if no worker has reported a failure.
    public var failure: Failure?
    /// Whether the group itself is still to be removed; absent otherwise.
    public var pending: Bool?
    /// What happens to its finished files; only in the answer to the removal of a group with its files.
    public var fate: Fate?
    /// What happened to the files that were to be deleted; absent before a worker has reported that, and in lists.
    public var outcome: Outcome?

    /// Files that could not be deleted at the last try. The deletion is tried again.
    public struct Failure: Hashable, Sendable, Codable {
        /// The number of these files.
        public var files: Int64
        /// One of these files, and the reason.
        public var detail: String

        /// A failure.
        public init(files: Int64, detail: String) {
            self.files = files
            self.detail = detail
        }
    }

    /// What happened to files that were to be deleted, as far as workers have reported. Concurrent removals of groups with the same name
    /// are counted together. The counts are kept for as long as events are.
    public struct Outcome: Hashable, Sendable, Codable {
        /// How many files were deleted.
        public var deleted: Int64
        /// How many files stay, since other files stand at their paths by now.
        public var changed: Int64
        /// How many files were missing already.
        public var missing: Int64

        /// An outcome.
        public init(deleted: Int64, changed: Int64, missing: Int64) {
            self.deleted = deleted
            self.changed = changed
            self.missing = missing
        }
    }

    /// What happens to the finished files of a group, or of some of its tasks, that are removed with their files.
    public struct Fate: Hashable, Sendable, Codable {
        /// How many files are to be deleted.
        public var toDelete: Int64
        /// How many files stay, since they belong to other groups too.
        public var kept: Int64
        /// One of these groups.
        public var keptBy: String?

        /// A fate.
        public init(toDelete: Int64, kept: Int64, keptBy: String?) {
            self.toDelete = toDelete
            self.kept = kept
            self.keptBy = keptBy
        }
    }

    /// The rest of a removal.
    public init(group: String, sink: String?, files: Int64, workersReaching: Int64, pending: Bool? = nil) {
        self.group = group
        self.sink = sink
        self.files = files
        self.workersReaching = workersReaching
        self.pending = pending
    }
}
