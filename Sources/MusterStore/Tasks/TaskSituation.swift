public import MusterCore

/// What keeps a task from being done, or lets it go on. The reader interprets it.
public struct TaskSituation: Sendable {
    /// A question to the group's resolver (range contract, row 21).
    public enum Question: Sendable, Hashable {
        /// A worker will be told to ask; if the resolver did not answer before, not earlier than the time.
        case due(Timestamp?)
        /// A worker is asking.
        case asked(worker: String, since: Timestamp)
    }

    /// Whether the task's content may be a page in the place of the file, and nothing tells (`TaskRecord.isDoubtful`).
    public var isDoubtful = false
    /// Its chunks.
    public var chunks: ChunkCounts
    /// When the first of its waiting chunks is due.
    public var dueAt: Timestamp?
    /// The task whose file its chunk waits for, since both files are the same.
    public var awaited: AwaitedTask?
    /// The connections to origins that its group has now.
    public var groupConnections: Int64
    /// The sessions that reach its sink.
    public var workers: WorkerCounts
    /// The open question to the resolver, if there is one.
    public var question: Question?
    /// What workers do for it, under its present leases.
    public var work: [TaskWork]
    /// How many of its chunks are to give their tails to other workers, since their holders are slow.
    public var shrinking = 0
    /// Its sources, by ordinal.
    public var sources: [TaskSource]
    /// The origins of the sources that chunks are ready to be fetched from.
    public var origins: [OriginRecord]
    /// The more urgent groups by the keys of the origins that they keep to themselves (`GroupQueue`).
    public var urgent: [String: UrgentGroups] = [:]
    /// The more urgent groups that take every slot that comes free (`GroupQueue`).
    public var urgentForSlots: UrgentGroups?
    /// What was tried, the newest last.
    public var attempts: [TaskAttempt]
    /// The time of these facts, by the database's clock.
    public var at: Timestamp
}

/// A task of any group whose file another task waits for.
public struct AwaitedTask: Sendable, Hashable {
    /// The name of its group.
    public let group: String
    /// Its key.
    public let key: String
}

/// The live sessions that reach a sink.
public struct WorkerCounts: Sendable, Hashable {
    /// The number of these sessions.
    public let reaching: Int64
    /// Sessions that are leaving.
    public let draining: Int64
    /// Slots without a lease, of sessions that are not leaving and whose sink is in order.
    public let freeSlots: Int64
}
