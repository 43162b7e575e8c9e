public import MusterCore

/// A group as the API shows it.
public struct GroupDocument: Hashable, Sendable, Codable {
    /// Tasks by state.
    public struct TaskCounts: Hashable, Sendable, Codable {
        /// All tasks except the cancelled ones.
        public var total: Int64
        /// Waiting for a worker.
        public var queued: Int64
        /// Being fetched.
        public var active: Int64
        /// Paused by a request.
        public var paused: Int64
        /// Being verified and put in place.
        public var finalizing: Int64
        /// Their files are in place.
        public var succeeded: Int64
        /// Given up.
        public var failed: Int64
        /// Cancelled; not part of `total`.
        public var cancelled: Int64
        /// Whether no task is to be fetched or put in place, as long as the paused tasks stay paused.
        public var isAtRest: Bool { queued == 0 && active == 0 && finalizing == 0 }

        /// Counts.
        public init(
            total: Int64 = 0, queued: Int64 = 0, active: Int64 = 0, paused: Int64 = 0, finalizing: Int64 = 0,
            succeeded: Int64 = 0, failed: Int64 = 0, cancelled: Int64 = 0
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
        /// Tasks whose size isn't known yet, without those that failed.
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
    /// The state that is observed.
    public var state: GroupState
    /// The number of its current completion, counted from 1; each reopening increases it.
    public var generation: Int32 = 1
    /// Whether no more tasks may be added.
    public var sealed: Bool
    /// The sink of its files.
    public var sink: String
    /// Higher is served first.
    public var priority: Int32 = 0
    /// The group's share among groups of the same priority.
    public var weight: Int32 = 1
    /// The limits of what it may use, and when.
    public var limits = GroupLimits()
    /// The time by which it has to be finished.
    public var deadlineAt: Timestamp?
    /// What happens at its deadline; absent without one.
    public var onDeadline: DeadlineAction?
    /// Whether its deadline has passed and it still goes on.
    public var overdue: Bool?
    /// The groups that it waits for, or waited for; absent when there are none.
    public var after: [PrerequisiteDocument]?
    /// The caller's own data.
    public var metadata: JSONValue?
    /// Tasks by state.
    public var tasks = TaskCounts()
    /// Progress in bytes.
    public var bytes = Bytes(done: 0, total: 0, unknownTasks: 0)
    /// Recent bytes per second; 0 when nothing comes.
    public var bytesPerSecond: Int64 = 0
    /// Seconds that the known rest takes at this speed; `null` if that is unknown.
    public var etaSeconds: Int64?
    /// When it was created.
    public var createdAt: Timestamp
    /// When this generation became terminal.
    public var finishedAt: Timestamp?
    /// Why it does not continue, in words: no worker reaches the sink, the sink is full, and the like.
    public var notes: [String] = []
    /// Its transfer policy, if it was given one.
    public var policy: TransferPolicy?
    /// The resolver that provides fresh URLs for its tasks.
    public var resolver: ResolverDocument?
    /// The names of the fetch options that it has, without their values, which may be secrets.
    public var fetchOptions: [String]?
    /// Its tasks in trouble by kind, the most frequent one first, among its newest 1,000 failures; absent when there are none, and
    /// from lists of groups.
    public var trouble: [TaskTrouble]?
    /// The number of tasks that a verb changed, in the answer to that verb; absent from other answers.
    public var changedTasks: Int64?
    /// What happens to the finished files of tasks that are removed with their files; only in the answer to that request.
    public var fate: RemovalDocument.Fate?
    /// Whether the group is being removed as a whole, and only waits for its tasks to be removed.
    public var removing: Bool?

    /// A group without tasks.
    public init(name: String, state: GroupState, sink: String, createdAt: Timestamp) {
        self.name = name
        self.state = state
        sealed = state != .open
        self.sink = sink
        self.createdAt = createdAt
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
        try container.encode(deadlineAt, forKey: .deadlineAt)
        try container.encodeIfPresent(onDeadline, forKey: .onDeadline)
        try container.encodeIfPresent(overdue, forKey: .overdue)
        try container.encodeIfPresent(after, forKey: .after)
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
        try container.encodeIfPresent(trouble, forKey: .trouble)
        try container.encodeIfPresent(changedTasks, forKey: .changedTasks)
        try container.encodeIfPresent(fate, forKey: .fate)
        try container.encodeIfPresent(removing, forKey: .removing)
    }
}
