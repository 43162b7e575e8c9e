/// What happens when a group's deadline passes before the group is finished.
public enum DeadlineAction: String, Sendable, Hashable, Codable, CaseIterable {
    /// The unfinished tasks of the group fail, and the group ends with that.
    case `fail`
    /// The group goes on. It is shown as overdue, and an event reports it once per generation.
    case `continue`
}
