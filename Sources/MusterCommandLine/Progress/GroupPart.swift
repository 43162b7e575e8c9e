import MusterAPI

/// Some tasks of a group whose other tasks are paused or have ended: computes the group's numbers for these tasks alone.
struct GroupPart: Sendable {
    /// The group before any of these tasks was resumed.
    let before: GroupDocument
    /// The tasks, as they were then.
    let tasks: [TaskDocument]
    /// The name of another group whose numbers are added, if there is one.
    var beside: String?

    /// The group as it is now, with the numbers of these tasks and those of the other group.
    func numbers(of group: GroupDocument, beside other: GroupDocument?) -> GroupDocument {
        let part = numbers(of: group)
        guard var sum = other else { return part }
        sum.state = part.state
        sum.tasks.total += part.tasks.total
        sum.tasks.queued += part.tasks.queued
        sum.tasks.active += part.tasks.active
        sum.tasks.finalizing += part.tasks.finalizing
        sum.tasks.succeeded += part.tasks.succeeded
        sum.tasks.failed += part.tasks.failed
        sum.tasks.cancelled += part.tasks.cancelled
        sum.bytes.done += part.bytes.done
        sum.bytes.total += part.bytes.total
        sum.bytes.unknownTasks += part.bytes.unknownTasks
        sum.bytesPerSecond += part.bytesPerSecond
        sum.etaSeconds = nil
        if part.trouble != nil { sum.trouble = (sum.trouble ?? []) + (part.trouble ?? []) }
        return sum
    }

    /// The group as it is now, with the numbers of these tasks alone.
    private func numbers(of group: GroupDocument) -> GroupDocument {
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
