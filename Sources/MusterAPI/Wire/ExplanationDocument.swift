public import MusterCore

/// `GET /v1/groups/{name}/tasks/{key}/explanation`: why a task is not done, what was tried, and what happens next.
public struct ExplanationDocument: Hashable, Sendable, Codable {
    /// Why a task or a group does not continue, or what is being done for it.
    public enum Reason: String, Hashable, Sendable, Codable, CaseIterable {
        /// The task or its group was paused by a request.
        case paused
        /// Its group waits for other groups.
        case prerequisites
        /// Its group may run only in a part of the day, and not now.
        case windowClosed
        /// A try failed, and the next one is not due yet.
        case backoff
        /// Another task fetches the same file.
        case sameFile
        /// Nothing is leased on its origins until a later time.
        case originPaused
        /// Its origins have as many connections as they are allowed.
        case originFull
        /// Its group has as many connections as it is allowed.
        case groupFull
        /// Its group, its origin or the fleet has a cap on bytes per second, and all of it is used.
        case rateLimited
        /// No live worker reaches the sink.
        case noWorker
        /// The sink has a fault at every worker that reaches it.
        case sinkParked
        /// It could be leased, but other work is leased first.
        case workersBusy
        /// The resolver is being asked for a fresh URL.
        case resolver
        /// Workers are fetching it.
        case fetching
        /// A worker verifies the file and puts it in place.
        case finalizing
        /// Tasks can still be added to the group; it ends only after it is sealed.
        case unsealed
    }

    /// One reason why the task does not continue, or one thing that is being done for it.
    public struct Wait: Hashable, Sendable, Codable {
        /// The reason.
        public var reason: Reason
        /// The reason in a sentence.
        public var detail: String
        /// When it began, if that is known.
        public var since: Timestamp?
        /// When it ends by itself, if it does.
        public var until: Timestamp?

        /// A wait.
        public init(reason: Reason, detail: String, since: Timestamp? = nil, until: Timestamp? = nil) {
            self.reason = reason
            self.detail = detail
            self.since = since
            self.until = until
        }
    }

    /// The task itself.
    public var task: TaskDocument
    /// The group.
    public var group: String
    /// One sentence: what the task waits for, or how it ended.
    public var summary: String
    /// One sentence: what happens next, and when; absent when nothing will happen.
    public var next: String?
    /// Why it does not continue, the most important reason first.
    public var waits: [Wait]
    /// Its chunks of the current content version.
    public var chunks: ChunkCounts
    /// The chunks that workers are working on.
    public var work: [TaskWork] = []
    /// Its sources.
    public var sources: [TaskSource] = []
    /// What was tried, the newest last.
    public var attempts: [TaskAttempt] = []
    /// Whether it has succeeded although nothing shows that its file is not a page in place of the file; absent otherwise.
    public var doubtful: Bool?
    /// The time at which the task fails if it is not done.
    public var deadlineAt: Timestamp?
    /// The time for which all of this is stated.
    public var at: Timestamp?

    /// An explanation without the details.
    public init(task: TaskDocument, group: String, summary: String, waits: [Wait], chunks: ChunkCounts) {
        self.task = task
        self.group = group
        self.summary = summary
        self.waits = waits
        self.chunks = chunks
    }
}
