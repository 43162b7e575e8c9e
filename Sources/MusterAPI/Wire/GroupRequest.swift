public import MusterCore

/// The body of `POST /v1/groups`.
public struct GroupRequest: Hashable, Sendable, Codable {
    /// The group's name: 1 to 200 characters of `A-Z a-z 0-9 . _ -`.
    public var name: String
    /// The sink of its files; `default` when absent.
    public var sink: String?
    /// Whether no more tasks will be added.
    public var sealed: Bool?
    /// Higher is served first.
    public var priority: Int32?
    /// The group's share among groups of the same priority.
    public var weight: Int32?
    /// The limits of what it may use, and when.
    public var limits: GroupLimits?
    /// How long it may take after it is created, such as `2h`; counted by the database's clock (I11).
    public var deadline: String?
    /// What happens when the deadline passes; `fail` when absent.
    public var onDeadline: DeadlineAction?
    /// All groups that it waits for.
    public var after: [GroupPrerequisite]?
    /// The caller's own data.
    public var metadata: JSONValue?
    /// The first tasks.
    public var tasks: [TaskRequest]?
    /// How the sources of its tasks are asked, except where a task's own options say otherwise. Never read back.
    public var fetch: FetchOptions?
    /// Settings for cases in which origins and files leave a choice.
    public var policy: TransferPolicy?
    /// The resolver that provides fresh URLs. Its headers are never read back.
    public var resolver: Resolver?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case name, sink, sealed, priority, weight, limits, deadline, onDeadline, after, metadata, tasks, fetch, policy
        case resolver
    }

    /// A group to create.
    public init(
        name: String, sink: String? = nil, sealed: Bool? = nil, priority: Int32? = nil, weight: Int32? = nil,
        limits: GroupLimits? = nil, metadata: JSONValue? = nil, tasks: [TaskRequest]? = nil, fetch: FetchOptions? = nil,
        policy: TransferPolicy? = nil, resolver: Resolver? = nil, deadline: String? = nil,
        onDeadline: DeadlineAction? = nil, after: [GroupPrerequisite]? = nil
    ) {
        self.name = name
        self.sink = sink
        self.sealed = sealed
        self.priority = priority
        self.weight = weight
        self.limits = limits
        self.deadline = deadline
        self.onDeadline = onDeadline
        self.after = after
        self.metadata = metadata
        self.tasks = tasks
        self.fetch = fetch
        self.policy = policy
        self.resolver = resolver
    }

    /// Reads a group and refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        name = try container.decode(String.self, forKey: .name)
        sink = try container.decodeIfPresent(String.self, forKey: .sink)
        sealed = try container.decodeIfPresent(Bool.self, forKey: .sealed)
        priority = try container.integerIfPresent(Int32.self, forKey: .priority)
        weight = try container.integerIfPresent(Int32.self, forKey: .weight)
        limits = try container.decodeIfPresent(GroupLimits.self, forKey: .limits)
        deadline = try container.decodeIfPresent(String.self, forKey: .deadline)
        onDeadline = try container.decodeIfPresent(DeadlineAction.self, forKey: .onDeadline)
        after = try container.decodeIfPresent([GroupPrerequisite].self, forKey: .after)
        metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        tasks = try container.decodeIfPresent([TaskRequest].self, forKey: .tasks)
        fetch = try container.decodeIfPresent(FetchOptions.self, forKey: .fetch)
        policy = try container.decodeIfPresent(TransferPolicy.self, forKey: .policy)
        resolver = try container.decodeIfPresent(Resolver.self, forKey: .resolver)
    }

    /// Throws if the group itself is invalid; each task is checked where it is stored.
    public func check() throws(InputRefusal) {
        guard NameRule.accepts(name) else { throw InputRefusal(pointer: "/name", reason: NameRule.explanation) }
        if let sink, !NameRule.accepts(sink) { throw InputRefusal(pointer: "/sink", reason: NameRule.explanation) }
        try Self.check(priority: priority, weight: weight)
        do {
            try limits?.check()
        } catch {
            throw error.within("/limits")
        }
        if let deadline { try Self.check(deadline: deadline) }
        if let after { try GroupPrerequisite.check(after, of: name) }
        try Self.check(fetch: fetch, resolver: resolver, metadata: metadata)
    }

    static func check(fetch: FetchOptions?, resolver: Resolver?, metadata: JSONValue?) throws(InputRefusal) {
        if let metadata { try MetadataRule.check(metadata) }
        do {
            try fetch?.check()
        } catch {
            throw error.within("/fetch")
        }
        if let names = fetch?.headers?.keys { try HeaderNames.check(names, at: "/fetch/headers") }
        do {
            try resolver?.check()
        } catch {
            throw error.within("/resolver")
        }
        if let names = resolver?.headers?.keys { try HeaderNames.check(names, at: "/resolver/headers") }
    }

    static func check(priority: Int32?, weight: Int32?) throws(InputRefusal) {
        if let priority, !Limits.priority.contains(priority) {
            throw InputRefusal(pointer: "/priority", reason: "must be within \(Limits.priority)")
        }
        if let weight, !Limits.weight.contains(weight) {
            throw InputRefusal(pointer: "/weight", reason: "must be within \(Limits.weight)")
        }
    }

    static func check(deadline text: String) throws(InputRefusal) {
        guard Self.duration(deadline: text) != nil else {
            throw InputRefusal(pointer: "/deadline", reason: "must be a duration such as 30m or 2h, from 1s to 3650d")
        }
    }

    /// How long a group may take; `nil` if the text is not a permitted duration.
    public static func duration(deadline text: String) -> Duration? {
        DurationNotation.parse(text).flatMap { Limits.groupDeadline.contains($0) ? $0 : nil }
    }
}

/// The body of a verb on a group: `{keys?[]}` narrows it to some tasks.
public struct VerbRequest: Hashable, Sendable, Codable {
    /// The keys of the tasks; all tasks of the group when absent.
    public var keys: [String]?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case keys
    }

    /// A verb on the group, or on some of its tasks.
    public init(keys: [String]? = nil) {
        self.keys = keys
    }

    /// Reads the body and refuses unknown fields and too many keys.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        keys = try container.decodeIfPresent([String].self, forKey: .keys)
        guard keys?.count ?? 0 <= Limits.keysPerRequest else {
            throw DecodingError.dataCorruptedError(
                forKey: .keys, in: container, debugDescription: "at most \(Limits.keysPerRequest) keys")
        }
    }
}
