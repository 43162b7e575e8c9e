public import MusterCore

/// The caps of a group.
public struct GroupLimits: Hashable, Sendable, Codable {
    /// The most leases, and so connections, that the group may hold in the whole fleet.
    public var maxConnections: Int32?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case maxConnections
    }

    /// Caps; absent ones don't limit.
    public init(maxConnections: Int32? = nil) {
        self.maxConnections = maxConnections
    }

    /// Reads caps and refuses unknown ones.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        maxConnections = try container.integerIfPresent(Int32.self, forKey: .maxConnections)
    }

    /// Throws when a cap is impossible.
    func check() throws(InputRefusal) {
        if let maxConnections, !(1...100_000).contains(maxConnections) {
            throw InputRefusal(pointer: "/limits/maxConnections", reason: "must be within 1...100000")
        }
    }
}

/// The body of `POST /v1/groups`.
public struct GroupRequest: Hashable, Sendable, Codable {
    /// The group's name: 1 to 200 characters of `A-Z a-z 0-9 . _ -`.
    public var name: String
    /// Where its files end up; `default` when absent.
    public var sink: String?
    /// Whether no task will be added any more.
    public var sealed: Bool?
    /// Higher is served first.
    public var priority: Int32?
    /// Share within the priority.
    public var weight: Int32?
    /// Caps.
    public var limits: GroupLimits?
    /// The caller's own data.
    public var metadata: JSONValue?
    /// Tasks to begin with.
    public var tasks: [TaskRequest]?
    /// How the sources of its tasks are asked, unless a task says otherwise. Never read back.
    public var fetch: FetchOptions?
    /// What shall be done where there is a choice.
    public var policy: TransferPolicy?
    /// Who knows fresh URLs. Its headers are never read back.
    public var resolver: Resolver?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case name, sink, sealed, priority, weight, limits, metadata, tasks, fetch, policy, resolver
    }

    /// A group to create.
    public init(
        name: String, sink: String? = nil, sealed: Bool? = nil, priority: Int32? = nil, weight: Int32? = nil,
        limits: GroupLimits? = nil, metadata: JSONValue? = nil, tasks: [TaskRequest]? = nil, fetch: FetchOptions? = nil,
        policy: TransferPolicy? = nil, resolver: Resolver? = nil
    ) {
        self.name = name
        self.sink = sink
        self.sealed = sealed
        self.priority = priority
        self.weight = weight
        self.limits = limits
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
        metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        tasks = try container.decodeIfPresent([TaskRequest].self, forKey: .tasks)
        fetch = try container.decodeIfPresent(FetchOptions.self, forKey: .fetch)
        policy = try container.decodeIfPresent(TransferPolicy.self, forKey: .policy)
        resolver = try container.decodeIfPresent(Resolver.self, forKey: .resolver)
    }

    /// Throws what is wrong with the group itself; its tasks are checked one by one where they are stored.
    public func check() throws(InputRefusal) {
        guard NameRule.accepts(name) else { throw InputRefusal(pointer: "/name", reason: NameRule.explanation) }
        if let sink, !NameRule.accepts(sink) { throw InputRefusal(pointer: "/sink", reason: NameRule.explanation) }
        if let priority, !Limits.priority.contains(priority) {
            throw InputRefusal(pointer: "/priority", reason: "must be within \(Limits.priority)")
        }
        if let weight, !Limits.weight.contains(weight) {
            throw InputRefusal(pointer: "/weight", reason: "must be within \(Limits.weight)")
        }
        try limits?.check()
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
}

/// A group as the API shows it.
public struct GroupDocument: Hashable, Sendable, Codable {
    /// Tasks by state.
    public struct TaskCounts: Hashable, Sendable, Codable {
        /// All tasks that count.
        public var total: Int64
        /// Waiting for a worker.
        public var queued: Int64
        /// Being fetched.
        public var active: Int64
        /// Told to wait.
        public var paused: Int64
        /// Being verified and put in place.
        public var finalizing: Int64
        /// There.
        public var succeeded: Int64
        /// Given up.
        public var failed: Int64
        /// Cancelled; not part of `total`.
        public var cancelled: Int64

        /// Counts.
        public init(
            total: Int64, queued: Int64, active: Int64, paused: Int64, finalizing: Int64, succeeded: Int64,
            failed: Int64,
            cancelled: Int64
        ) {
            self.total = total
            self.queued = queued
            self.active = active
            self.paused = paused
            self.finalizing = finalizing
            self.succeeded = succeeded
            self.failed = failed
            self.cancelled = cancelled
        }
    }

    /// Progress in bytes.
    public struct Bytes: Hashable, Sendable, Codable {
        /// Bytes that are durable.
        public var done: Int64
        /// The sum of the sizes that are known.
        public var total: Int64
        /// Tasks whose size isn't known yet.
        public var unknownTasks: Int64

        /// Progress.
        public init(done: Int64, total: Int64, unknownTasks: Int64) {
            self.done = done
            self.total = total
            self.unknownTasks = unknownTasks
        }
    }

    /// The group's name.
    public var name: String
    /// What is observed of it.
    public var state: GroupState
    /// How often it was completed and reopened, counted from 1.
    public var generation: Int32
    /// Whether no task may be added any more.
    public var sealed: Bool
    /// Where its files end up.
    public var sink: String
    /// Higher is served first.
    public var priority: Int32
    /// Share within the priority.
    public var weight: Int32
    /// Caps.
    public var limits: GroupLimits
    /// The caller's own data.
    public var metadata: JSONValue?
    /// Tasks by state.
    public var tasks: TaskCounts
    /// Progress in bytes.
    public var bytes: Bytes
    /// Bytes per second lately; 0 when nothing comes.
    public var bytesPerSecond: Int64
    /// Seconds that the known rest takes at this speed; `null` when that can't be said.
    public var etaSeconds: Int64?
    /// When it was created.
    public var createdAt: Timestamp
    /// When this generation became terminal.
    public var finishedAt: Timestamp?
    /// What keeps it from going on, in words: no worker reaches the sink, the sink is full, and the like.
    public var notes: [String]
    /// What it wants where there is a choice, if it said so.
    public var policy: TransferPolicy?
    /// Who knows fresh URLs of its tasks.
    public var resolver: ResolverDocument?
    /// Which options for asking the sources it has, by name alone: their values may be secrets.
    public var fetchOptions: [String]?

    /// A group's document.
    public init(
        name: String, state: GroupState, generation: Int32, sealed: Bool, sink: String, priority: Int32, weight: Int32,
        limits: GroupLimits, metadata: JSONValue?, tasks: TaskCounts, bytes: Bytes, bytesPerSecond: Int64,
        etaSeconds: Int64?, createdAt: Timestamp, finishedAt: Timestamp?, notes: [String],
        policy: TransferPolicy? = nil, resolver: ResolverDocument? = nil, fetchOptions: [String]? = nil
    ) {
        self.name = name
        self.state = state
        self.generation = generation
        self.sealed = sealed
        self.sink = sink
        self.priority = priority
        self.weight = weight
        self.limits = limits
        self.metadata = metadata
        self.tasks = tasks
        self.bytes = bytes
        self.bytesPerSecond = bytesPerSecond
        self.etaSeconds = etaSeconds
        self.createdAt = createdAt
        self.finishedAt = finishedAt
        self.notes = notes
        self.policy = policy
        self.resolver = resolver
        self.fetchOptions = fetchOptions
    }

    /// Writes every field of the contract, absent ones as `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(state, forKey: .state)
        try container.encode(generation, forKey: .generation)
        try container.encode(sealed, forKey: .sealed)
        try container.encode(sink, forKey: .sink)
        try container.encode(priority, forKey: .priority)
        try container.encode(weight, forKey: .weight)
        try container.encode(limits, forKey: .limits)
        try container.encodeIfPresent(metadata, forKey: .metadata)
        try container.encode(tasks, forKey: .tasks)
        try container.encode(bytes, forKey: .bytes)
        try container.encode(bytesPerSecond, forKey: .bytesPerSecond)
        try container.encode(etaSeconds, forKey: .etaSeconds)
        try container.encode(createdAt, forKey: .createdAt)
        try container.encode(finishedAt, forKey: .finishedAt)
        try container.encode(notes, forKey: .notes)
        try container.encodeIfPresent(policy, forKey: .policy)
        try container.encodeIfPresent(resolver, forKey: .resolver)
        try container.encodeIfPresent(fetchOptions, forKey: .fetchOptions)
    }
}

/// The body of a verb on a group: `{keys?[]}` narrows it to some tasks.
public struct VerbRequest: Hashable, Sendable, Codable {
    /// The keys of the tasks that are meant; all of the group when absent.
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
