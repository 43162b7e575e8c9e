/// A generation of a group is complete.
public struct GroupEnd: Hashable, Sendable, Decodable {
    /// The name of the group.
    public let group: String
    /// The completion of the group that the event is about, from 1.
    public let generation: Int32
    /// How it ended.
    public let state: GroupState
    /// The sink of its files.
    public let sink: String
    /// The caller's data; `null` when there is none.
    public let metadata: JSONValue
    /// The counts of its tasks.
    public let tasks: GroupEndTasks
    /// The counts of its bytes.
    public let bytes: GroupEndBytes

    private enum CodingKeys: CodingKey, CaseIterable {
        case group, generation, state, sink, metadata, tasks, bytes
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        group = try facts.decode(String.self, forKey: .group)
        generation = try facts.decode(Int32.self, forKey: .generation)
        state = try facts.decode(GroupState.self, forKey: .state)
        sink = try facts.decode(String.self, forKey: .sink)
        metadata = try facts.decode(JSONValue.self, forKey: .metadata)
        tasks = try facts.decode(GroupEndTasks.self, forKey: .tasks)
        bytes = try facts.decode(GroupEndBytes.self, forKey: .bytes)
    }
}

/// The tasks of a group that is complete.
public struct GroupEndTasks: Hashable, Sendable, Decodable {
    /// All tasks but the cancelled ones.
    public let total: Int64
    /// Tasks whose file stands at its path.
    public let succeeded: Int64
    /// Tasks that were given up.
    public let failed: Int64
    /// Tasks that were cancelled.
    public let cancelled: Int64

    private enum CodingKeys: CodingKey, CaseIterable {
        case total, succeeded, failed, cancelled
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        total = try facts.decode(Int64.self, forKey: .total)
        succeeded = try facts.decode(Int64.self, forKey: .succeeded)
        failed = try facts.decode(Int64.self, forKey: .failed)
        cancelled = try facts.decode(Int64.self, forKey: .cancelled)
    }
}

/// The bytes of a group that is complete.
public struct GroupEndBytes: Hashable, Sendable, Decodable {
    /// Bytes that are durable.
    public let done: Int64
    /// The sum of the sizes that are known.
    public let total: Int64

    private enum CodingKeys: CodingKey, CaseIterable {
        case done, total
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        done = try facts.decode(Int64.self, forKey: .done)
        total = try facts.decode(Int64.self, forKey: .total)
    }
}

/// A group was removed.
public struct GroupRemoval: Hashable, Sendable, Decodable {
    /// The name of the group.
    public let group: String
    /// The completion of the group that the event is about, from 1.
    public let generation: Int32
    /// The state that was observed last.
    public let state: GroupState

    private enum CodingKeys: CodingKey, CaseIterable {
        case group, generation, state
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        group = try facts.decode(String.self, forKey: .group)
        generation = try facts.decode(Int32.self, forKey: .generation)
        state = try facts.decode(GroupState.self, forKey: .state)
    }
}

/// The deadline of a group has passed, and the group goes on.
public struct GroupDelay: Hashable, Sendable, Decodable {
    /// The name of the group.
    public let group: String
    /// The completion of the group that the event is about, from 1.
    public let generation: Int32
    /// The state that is observed.
    public let state: GroupState
    /// Its tasks that have not ended.
    public let remaining: Int64

    private enum CodingKeys: CodingKey, CaseIterable {
        case group, generation, state, remaining
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        group = try facts.decode(String.self, forKey: .group)
        generation = try facts.decode(Int32.self, forKey: .generation)
        state = try facts.decode(GroupState.self, forKey: .state)
        remaining = try facts.decode(Int64.self, forKey: .remaining)
    }
}
