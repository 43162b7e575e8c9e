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

    /// A source of the task, and its record so far.
    public struct Source: Hashable, Sendable, Codable {
        /// The URL that was given for the task.
        public var url: String
        /// Scheme, host and port.
        public var origin: String
        /// `usable`, `failed` (given up), or `differs` (its content is not that of the rest of this version).
        public var state: String
        /// Its failures; the newest of them are among the attempts.
        public var failures: Int32
        /// Bytes that came from it, if there are several sources.
        public var bytes: Int64
        /// Bytes per second and connection, if there are several sources and it was used.
        public var bytesPerSecond: Int64?
        /// When the resolver last gave a fresh URL for it.
        public var resolvedAt: Timestamp?

        /// A source.
        public init(
            url: String, origin: String, state: String, failures: Int32, bytes: Int64, bytesPerSecond: Int64?,
            resolvedAt: Timestamp?
        ) {
            self.url = url
            self.origin = origin
            self.state = state
            self.failures = failures
            self.bytes = bytes
            self.bytesPerSecond = bytesPerSecond
            self.resolvedAt = resolvedAt
        }
    }

    /// A chunk that is being worked on.
    public struct Work: Hashable, Sendable, Codable {
        /// The worker.
        public var worker: String
        /// `fetch`, `finalize`, or `resolve`.
        public var kind: String
        /// Its first byte.
        public var start: Int64
        /// The byte after its last, when known.
        public var end: Int64?
        /// How far it is durable.
        public var durable: Int64
        /// The URL of its source, when it fetches.
        public var source: String?
        /// When the work began.
        public var since: Timestamp
        /// When the coordinator last heard from the worker, if that is longer ago than expected.
        public var silentSince: Timestamp?
        /// When its lease ends if the worker stays silent; absent unless `silentSince` is set.
        public var endsAt: Timestamp?

        /// Work.
        public init(
            worker: String, kind: String, start: Int64, end: Int64?, durable: Int64, source: String?, since: Timestamp,
            silentSince: Timestamp? = nil, endsAt: Timestamp? = nil
        ) {
            self.worker = worker
            self.kind = kind
            self.start = start
            self.end = end
            self.durable = durable
            self.source = source
            self.since = since
            self.silentSince = silentSince
            self.endsAt = endsAt
        }
    }

    /// A try that did not succeed, or that changed what happens next; the newest comes last.
    public struct Attempt: Hashable, Sendable, Codable {
        /// When, by the database's clock.
        public var at: Timestamp
        /// The worker.
        public var worker: String?
        /// The URL of the source, as it was given for the task.
        public var source: String?
        /// The failure's kind.
        public var kind: FailureKind
        /// The status of the answer, if there was one.
        public var status: Int?
        /// What was seen, in words.
        public var detail: String
        /// The origin's own identifier of the request.
        public var requestID: String?
        /// Numeric address of the peer.
        public var address: String?
        /// The byte that was asked for first.
        public var offset: Int64
        /// What followed.
        public var outcome: AttemptOutcome

        /// An attempt.
        public init(
            at: Timestamp, worker: String?, source: String?, kind: FailureKind, status: Int?, detail: String,
            requestID: String?, address: String?, offset: Int64, outcome: AttemptOutcome
        ) {
            self.at = at
            self.worker = worker
            self.source = source
            self.kind = kind
            self.status = status
            self.detail = detail
            self.requestID = requestID
            self.address = address
            self.offset = offset
            self.outcome = outcome
        }
    }

    /// Chunks of the current content version, counted by state.
    public struct Chunks: Hashable, Sendable, Codable {
        /// On storage.
        public var done: Int64
        /// Held by a worker.
        public var leased: Int64
        /// Could be leased now.
        public var ready: Int64
        /// Not available until a later time.
        public var waiting: Int64
        /// Not available until a request resumes or retries the task.
        public var parked: Int64

        /// Counts.
        public init(done: Int64, leased: Int64, ready: Int64, waiting: Int64, parked: Int64) {
            self.done = done
            self.leased = leased
            self.ready = ready
            self.waiting = waiting
            self.parked = parked
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
    /// Its chunks.
    public var chunks: Chunks
    /// The chunks that workers are working on.
    public var work: [Work]
    /// Its sources.
    public var sources: [Source]
    /// What was tried.
    public var attempts: [Attempt]
    /// Whether it has succeeded although nothing shows that its file is not a page in place of the file; absent otherwise.
    public var doubtful: Bool?
    /// The time at which the task fails if it is not done.
    public var deadlineAt: Timestamp?
    /// The time for which all of this is stated.
    public var at: Timestamp?

    /// An explanation.
    public init(
        task: TaskDocument, group: String, summary: String, next: String?, waits: [Wait], chunks: Chunks, work: [Work],
        sources: [Source], attempts: [Attempt], doubtful: Bool? = nil, deadlineAt: Timestamp? = nil,
        at: Timestamp? = nil
    ) {
        self.task = task
        self.group = group
        self.summary = summary
        self.next = next
        self.waits = waits
        self.chunks = chunks
        self.work = work
        self.sources = sources
        self.attempts = attempts
        self.doubtful = doubtful
        self.deadlineAt = deadlineAt
        self.at = at
    }
}
