import MusterAPI
import MusterCore
import MusterStore

extension GroupCreation {
    /// Converts a checked request to the store's type.
    init(_ wish: GroupRequest) throws {
        var policy = wish.policy
        policy?.reuse = nil
        self.init(
            name: wish.name, sink: wish.sink ?? defaultSinkName, priority: wish.priority ?? 0, weight: wish.weight ?? 1,
            maxConnections: wish.limits?.maxConnections, metadata: try StoredJSON.text(wish.metadata),
            isSealed: wish.sealed ?? false, options: try StoredJSON.text(wish.fetch),
            policy: try StoredJSON.text(policy), resolver: try StoredJSON.text(wish.resolver),
            bytesPerSecond: wish.limits?.bytesPerSecond, window: wish.limits?.between.map(GroupWindow.init),
            timetable: try StoredJSON.text(wish.limits?.timetable.flatMap { $0.isEmpty ? nil : $0 }),
            deadline: try wish.deadline.map { try Duration(deadline: $0) },
            deadlineAction: wish.onDeadline ?? .fail,
            prerequisites: (wish.after ?? []).map { GroupPrerequisite(group: $0.group, on: $0.on) },
            reuses: wish.policy?.reuse ?? true)
    }
}

extension GroupChange {
    /// Converts a checked patch to the store's type.
    init(_ patch: GroupPatch) throws {
        let timetable: Change<String> =
            switch patch.limits.timetable {
            case .keep: .keep
            case .clear: .clear
            case .set(let entries): entries.isEmpty ? .clear : .set(try StoredJSON.text(entries) ?? "[]")
            }
        self.init(
            priority: patch.priority, weight: patch.weight, maxConnections: Change(patch.limits.maxConnections) { $0 },
            bytesPerSecond: Change(patch.limits.bytesPerSecond) { $0 },
            window: Change(patch.limits.between) { GroupWindow($0) }, timetable: timetable,
            deadline: try Change(patch.deadline) { try Duration(deadline: $0) },
            deadlineAction: patch.onDeadline,
            prerequisites: patch.after?.map { GroupPrerequisite(group: $0.group, on: $0.on) },
            options: try Change(json: patch.fetch), resolver: try Change(json: patch.resolver),
            metadata: try Change(json: patch.metadata))
    }
}

extension GroupWindow {
    /// Converts a window to the store's type.
    fileprivate init(_ window: TimeWindow) {
        self.init(from: window.from, to: window.to, timeZone: window.timeZone)
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

extension Change<String> {
    /// Converts a patch of a field that is stored as JSON.
    fileprivate init<Given: Encodable>(json field: PatchField<Given>) throws {
        switch field {
        case .keep: self = .keep
        case .clear: self = .clear
        case .set(let given): self = try StoredJSON.text(given).map { .set($0) } ?? .clear
        }
    }
}

extension Change {
    /// Converts a patch of a field; `value` converts the new value to the store's type.
    fileprivate init<Given>(_ field: PatchField<Given>, _ value: (Given) throws -> Value) rethrows {
        switch field {
        case .keep: self = .keep
        case .clear: self = .clear
        case .set(let given): self = .set(try value(given))
        }
    }
}
