import MusterAPI

/// Some tasks of a group, where the others are paused or have ended: numbers of the group without what was there of those.
struct GroupPart: Sendable {
    /// The group before anything of these tasks was resumed.
    let before: GroupDocument
    /// The tasks, as they were then.
    let tasks: [TaskDocument]

    /// The group as it is now, with the numbers of these tasks alone.
    func numbers(of group: GroupDocument) -> GroupDocument {
        var part = group
        part.tasks.total = Int64(tasks.count)
        part.tasks.paused = 0
        part.tasks.succeeded -= before.tasks.succeeded
        part.tasks.failed -= before.tasks.failed
        part.tasks.cancelled -= before.tasks.cancelled
        let unknown = Int64(tasks.count { $0.bytes.total == nil })
        part.bytes.done = max(0, group.bytes.done - before.bytes.done + tasks.reduce(0) { $0 + $1.bytes.done })
        part.bytes.total = max(
            part.bytes.done, group.bytes.total - before.bytes.total + tasks.reduce(0) { $0 + ($1.bytes.total ?? 0) })
        part.bytes.unknownTasks = max(0, group.bytes.unknownTasks - before.bytes.unknownTasks + unknown)
        return part
    }
}
