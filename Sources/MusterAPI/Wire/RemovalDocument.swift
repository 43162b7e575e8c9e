/// What is still to be done of a removal: finished files that were to be deleted, and are still there.
public struct RemovalDocument: Hashable, Sendable, Codable {
    /// The group's name, which may be that of another group by now.
    public var group: String
    /// Where the files are; absent when there are none left.
    public var sink: String?
    /// How many files are still there.
    public var files: Int64
    /// How many live workers can delete them.
    public var workersReaching: Int64
    /// What keeps files from being deleted; absent where nothing has, as far as workers have told.
    public var failure: Failure?
    /// Whether the group itself is still to be removed; absent otherwise.
    public var pending: Bool?
    /// What becomes of its finished files; only in the answer to the removal of a group with its files.
    public var fate: Fate?
    /// What became of those that were to be deleted; absent where no worker has told that yet, and from lists.
    public var outcome: Outcome?

    /// Files that could not be deleted when that was last tried. It is tried again.
    public struct Failure: Hashable, Sendable, Codable {
        /// How many.
        public var files: Int64
        /// Which one, and why not.
        public var detail: String

        /// A failure.
        public init(files: Int64, detail: String) {
            self.files = files
            self.detail = detail
        }
    }

    /// What became of files that were to be deleted, as far as workers have told. Removals under the name of one group that run at the same time are counted
    /// together, and what is counted is kept for as long as events are.
    public struct Outcome: Hashable, Sendable, Codable {
        /// How many were deleted.
        public var deleted: Int64
        /// How many stay, since others stand at their paths by now.
        public var changed: Int64
        /// How many were gone already.
        public var missing: Int64

        /// An outcome.
        public init(deleted: Int64, changed: Int64, missing: Int64) {
            self.deleted = deleted
            self.changed = changed
            self.missing = missing
        }
    }

    /// What becomes of the finished files of a group, or of some of its tasks, that are removed with them.
    public struct Fate: Hashable, Sendable, Codable {
        /// How many are to be deleted.
        public var toDelete: Int64
        /// How many stay, since they are the files of other groups too.
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

    /// What is still to be done.
    public init(group: String, sink: String?, files: Int64, workersReaching: Int64, pending: Bool? = nil) {
        self.group = group
        self.sink = sink
        self.files = files
        self.workersReaching = workersReaching
        self.pending = pending
    }
}
