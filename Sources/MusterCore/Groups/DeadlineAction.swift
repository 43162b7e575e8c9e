/// What happens when a group's deadline passes before the group is finished.
public enum DeadlineAction: String, Sendable, Hashable, Codable, CaseIterable {
    /// Whatever of it is not finished fails, and the group ends with that.
    case `fail`
    /// It goes on, and says so: it is shown as overdue, and an event tells it once per generation.
    case `continue`
}
