import MusterAPI
import MusterCore
import MusterStore

extension GroupCreation {
    /// Converts a checked request to the store's type.
    init(_ wish: GroupRequest) throws {
        var policy = wish.policy
        policy?.reuse = nil
        self.init(name: wish.name, sink: wish.sink ?? defaultSinkName)
        if let priority = wish.priority { self.priority = priority }
        if let weight = wish.weight { self.weight = weight }
        maxConnections = wish.limits?.maxConnections
        metadata = try StoredJSON.text(wish.metadata)
        isSealed = wish.sealed ?? false
        options = try StoredJSON.text(wish.fetch)
        self.policy = try StoredJSON.text(policy)
        reuses = wish.policy?.reuse ?? true
        resolver = try StoredJSON.text(wish.resolver)
        bytesPerSecond = wish.limits?.bytesPerSecond
        window = wish.limits?.between
        timetable = try StoredJSON.text(wish.limits?.timetable.flatMap { $0.isEmpty ? nil : $0 })
        deadline = try wish.deadline.map { try Duration(deadline: $0) }
        if let action = wish.onDeadline { deadlineAction = action }
        prerequisites = wish.after ?? []
    }
}

extension GroupChange {
    /// Converts a checked patch to the store's type.
    init(_ patch: GroupPatch) throws {
        self.init(
            priority: patch.priority, weight: patch.weight, maxConnections: patch.limits.maxConnections,
            bytesPerSecond: patch.limits.bytesPerSecond, window: patch.limits.between,
            timetable: try patch.limits.timetable.map { try $0.isEmpty ? nil : StoredJSON.text($0) },
            deadline: try patch.deadline.map { try Duration(deadline: $0) },
            deadlineAction: patch.onDeadline,
            prerequisites: patch.after,
            options: try patch.fetch.map { try StoredJSON.text($0) },
            resolver: try patch.resolver.map { try StoredJSON.text($0) },
            metadata: try patch.metadata.map { try StoredJSON.text($0) })
    }
}

extension Duration {
    /// Reads a deadline as callers write it; throws if it is not a duration.
    fileprivate init(deadline text: String) throws(InputRefusal) {
        guard let duration = GroupRequest.duration(deadline: text) else {
            throw InputRefusal(pointer: "/deadline", reason: "is no duration")
        }
        self = duration
    }
}
