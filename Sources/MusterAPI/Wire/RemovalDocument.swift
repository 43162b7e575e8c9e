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
    /// Whether the group itself is still to be removed; absent otherwise.
    public var pending: Bool?

    /// What is still to be done.
    public init(group: String, sink: String?, files: Int64, workersReaching: Int64, pending: Bool? = nil) {
        self.group = group
        self.sink = sink
        self.files = files
        self.workersReaching = workersReaching
        self.pending = pending
    }
}
