/// The types of events: the closed list of what the durable log records (I9).
///
/// The SQL writes them; a test compares its texts with this list, both ways.
public enum EventType: String, Hashable, Sendable, Codable, CaseIterable {
    /// Every task of a group has succeeded (I7).
    case groupSucceeded = "dev.muster.group.succeeded.v1"
    /// Every task of a group has ended, and at least one has failed; or the group's deadline has passed (I7).
    case groupFailed = "dev.muster.group.failed.v1"
    /// A group was cancelled as a whole (I7).
    case groupCancelled = "dev.muster.group.cancelled.v1"
    /// A group was removed with all its tasks.
    case groupRemoved = "dev.muster.group.removed.v1"
    /// The deadline of a group has passed, and the group goes on; once per generation.
    case groupOverdue = "dev.muster.group.overdue.v1"
    /// A file stands at its path (I8).
    case taskSucceeded = "dev.muster.task.succeeded.v1"
    /// A task was given up.
    case taskFailed = "dev.muster.task.failed.v1"
    /// A task was cancelled.
    case taskCancelled = "dev.muster.task.cancelled.v1"
    /// A task starts over with its next content version.
    case taskChanged = "dev.muster.task.changed.v1"

    /// The state in which a group has ended, if events of this type report that; `nil` for other types.
    public var endOfGroup: GroupState? {
        switch self {
        case .groupSucceeded: .succeeded
        case .groupFailed: .failed
        case .groupCancelled: .cancelled
        case .groupRemoved, .groupOverdue, .taskSucceeded, .taskFailed, .taskCancelled, .taskChanged: nil
        }
    }

    /// The prefix of every type.
    public static let prefix = "dev.muster."

    /// The type as people type it: `group.succeeded`.
    public var short: String { Self.short(rawValue) }

    /// The short form of any type, also of types that are not listed here: without the common prefix and the version.
    public static func short(_ type: String) -> String {
        var short = Substring(type)
        if short.hasPrefix(prefix) { short = short.dropFirst(prefix.count) }
        if short.hasSuffix(".v1") { short = short.dropLast(3) }
        return String(short)
    }

    /// The type with this short form; `nil` when there is none.
    public init?(short: String) {
        self.init(rawValue: "\(Self.prefix)\(short).v1")
    }
}
