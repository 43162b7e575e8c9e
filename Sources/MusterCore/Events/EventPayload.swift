/// The facts of an event, by its type.
///
/// It is read from the fields `type` and `data` of a CloudEvent. Unknown types, missing facts and unknown facts are refused: facts in
/// another form get another type (`docs/events.md`).
public enum EventPayload: Hashable, Sendable {
    /// A generation of a group is complete: `groupSucceeded`, `groupFailed` or `groupCancelled`, as its state says.
    case groupEnded(GroupEnd)
    /// A group was removed.
    case groupRemoved(GroupRemoval)
    /// A group has passed its deadline, and goes on.
    case groupOverdue(GroupDelay)
    /// A file stands at its path.
    case taskSucceeded(TaskSuccess)
    /// A task was given up.
    case taskFailed(TaskGivenUp)
    /// A task was cancelled.
    case taskCancelled(TaskCancel)
    /// A task starts over.
    case taskChanged(TaskRestart)

    /// The group that the event is about.
    public var group: String {
        switch self {
        case .groupEnded(let facts): facts.group
        case .groupRemoved(let facts): facts.group
        case .groupOverdue(let facts): facts.group
        case .taskSucceeded(let facts): facts.group
        case .taskFailed(let facts): facts.group
        case .taskCancelled(let facts): facts.group
        case .taskChanged(let facts): facts.group
        }
    }

    /// The key of the task that the event is about; `nil` when it is about a group.
    public var key: String? {
        switch self {
        case .groupEnded, .groupRemoved, .groupOverdue: nil
        case .taskSucceeded(let facts): facts.key
        case .taskFailed(let facts): facts.key
        case .taskCancelled(let facts): facts.key
        case .taskChanged(let facts): facts.key
        }
    }
}

extension EventPayload: Decodable {
    private enum CodingKeys: CodingKey {
        case type, data
    }

    /// Reads the facts of a CloudEvent.
    public init(from decoder: any Decoder) throws {
        let event = try decoder.container(keyedBy: CodingKeys.self)
        switch try event.decode(EventType.self, forKey: .type) {
        case .groupSucceeded: self = .groupEnded(try Self.end(.succeeded, event))
        case .groupFailed: self = .groupEnded(try Self.end(.failed, event))
        case .groupCancelled: self = .groupEnded(try Self.end(.cancelled, event))
        case .groupRemoved: self = .groupRemoved(try event.decode(GroupRemoval.self, forKey: .data))
        case .groupOverdue: self = .groupOverdue(try event.decode(GroupDelay.self, forKey: .data))
        case .taskSucceeded: self = .taskSucceeded(try event.decode(TaskSuccess.self, forKey: .data))
        case .taskFailed: self = .taskFailed(try event.decode(TaskGivenUp.self, forKey: .data))
        case .taskCancelled: self = .taskCancelled(try event.decode(TaskCancel.self, forKey: .data))
        case .taskChanged: self = .taskChanged(try event.decode(TaskRestart.self, forKey: .data))
        }
    }

    private static func end(_ state: GroupState, _ event: KeyedDecodingContainer<CodingKeys>) throws -> GroupEnd {
        let end = try event.decode(GroupEnd.self, forKey: .data)
        guard end.state == state else {
            throw DecodingError.dataCorruptedError(
                forKey: .data, in: event, debugDescription: "the state is not that of the type")
        }
        return end
    }
}
