public import MusterCore

/// The body of `PATCH /v1/groups/{name}`: absent fields stay, `null` removes a setting or restores its default.
public struct GroupPatch: Hashable, Sendable, Codable {
    /// Higher is served first.
    public var priority: Int32?
    /// The group's share among groups of the same priority.
    public var weight: Int32?
    /// The limits of what it may use, and when.
    public var limits: GroupLimitsPatch
    /// How long it may take from now on, such as `2h`; counted by the database's clock (I11).
    public var deadline: Change<String>
    /// What happens when the deadline passes.
    public var onDeadline: DeadlineAction?
    /// All groups that it waits for; an empty list means none.
    public var after: [GroupPrerequisite]?
    /// How the sources of its tasks are asked from the next lease on; replaces all earlier options.
    public var fetch: Change<FetchOptions>
    /// The resolver that provides fresh URLs from now on.
    public var resolver: Change<Resolver>
    /// The caller's own data; replaces the earlier data.
    public var metadata: Change<JSONValue>

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case priority, weight, limits, deadline, onDeadline, after, fetch, resolver, metadata
    }

    /// A change; a field that isn't named stays.
    public init(
        priority: Int32? = nil, weight: Int32? = nil, limits: GroupLimitsPatch = GroupLimitsPatch(),
        deadline: Change<String> = .keep, onDeadline: DeadlineAction? = nil, after: [GroupPrerequisite]? = nil,
        fetch: Change<FetchOptions> = .keep, resolver: Change<Resolver> = .keep,
        metadata: Change<JSONValue> = .keep
    ) {
        self.priority = priority
        self.weight = weight
        self.limits = limits
        self.deadline = deadline
        self.onDeadline = onDeadline
        self.after = after
        self.fetch = fetch
        self.resolver = resolver
        self.metadata = metadata
    }

    /// Reads a change and refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        priority = try container.patch(integer: Int32.self, forKey: .priority).orDefault(0)
        weight = try container.patch(integer: Int32.self, forKey: .weight).orDefault(1)
        limits = try container.patch(GroupLimitsPatch.self, forKey: .limits).orDefault(.cleared) ?? GroupLimitsPatch()
        deadline = try container.patch(String.self, forKey: .deadline)
        onDeadline = try container.patch(DeadlineAction.self, forKey: .onDeadline).orDefault(.fail)
        after = try container.patch([GroupPrerequisite].self, forKey: .after).orDefault([])
        fetch = try container.patch(FetchOptions.self, forKey: .fetch)
        resolver = try container.patch(Resolver.self, forKey: .resolver)
        metadata = try container.patch(JSONValue.self, forKey: .metadata)
    }

    /// Writes only what changes.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(priority, forKey: .priority)
        try container.encodeIfPresent(weight, forKey: .weight)
        if limits != GroupLimitsPatch() { try container.encode(limits, forKey: .limits) }
        try container.encode(deadline, forKey: .deadline)
        try container.encodeIfPresent(onDeadline, forKey: .onDeadline)
        try container.encodeIfPresent(after, forKey: .after)
        try container.encode(fetch, forKey: .fetch)
        try container.encode(resolver, forKey: .resolver)
        try container.encode(metadata, forKey: .metadata)
    }

    /// Throws if a value is impossible. The database checks whether the other groups and the time zones exist.
    ///
    /// - Parameter name: the group, which can't wait for itself.
    public func check(of name: String) throws(InputRefusal) {
        try GroupRequest.check(priority: priority, weight: weight)
        do {
            try limits.check()
        } catch {
            throw error.within("/limits")
        }
        if let deadline = deadline.value { try GroupRequest.check(deadline: deadline) }
        if let after { try GroupPrerequisite.check(after, of: name) }
        try GroupRequest.check(fetch: fetch.value, resolver: resolver.value, metadata: metadata.value)
    }
}

extension GroupPrerequisite {
    /// Throws if the groups that `name` is to wait for are impossible, with the pointer `/after/…`.
    static func check(_ all: [GroupPrerequisite], of name: String) throws(InputRefusal) {
        guard all.count <= Limits.prerequisites else {
            throw InputRefusal(pointer: "/after", reason: "at most \(Limits.prerequisites) groups")
        }
        var seen: Set<String> = []
        for (index, prerequisite) in all.enumerated() {
            let pointer = "/after/\(index)/group"
            guard NameRule.accepts(prerequisite.group) else {
                throw InputRefusal(pointer: pointer, reason: NameRule.explanation)
            }
            guard prerequisite.group != name else {
                throw InputRefusal(pointer: pointer, reason: "a group can't wait for itself")
            }
            guard seen.insert(prerequisite.group).inserted else {
                throw InputRefusal(pointer: pointer, reason: "is named twice")
            }
        }
    }
}

/// A group that another group waits for, as it is read back.
public struct PrerequisiteDocument: Hashable, Sendable, Codable {
    /// Its name.
    public var group: String
    /// How that group has to end.
    public var on: PrerequisiteCondition
    /// Whether the condition was met. It stays met, whatever happens to that group later.
    public var satisfied: Bool

    /// A prerequisite.
    public init(group: String, on: PrerequisiteCondition, satisfied: Bool) {
        self.group = group
        self.on = on
        self.satisfied = satisfied
    }
}
