public import MusterCore

/// `GET /v1/groups/{name}/tasks/{key}/explanation`: why a task is not done, what was tried, and what happens next.
public struct ExplanationDocument: Hashable, Sendable, Codable {
    /// Why a task or a group does not go on, or what is being done for it.
    public enum Reason: String, Hashable, Sendable, Codable, CaseIterable {
        /// Somebody told it, or its group, to wait.
        case paused
        /// Its group waits for other groups.
        case prerequisites
        /// Its group may run only in a part of the day, which is not now.
        case windowClosed
        /// A try failed, and the next one is not due yet.
        case backoff
        /// Another task fetches the same.
        case sameFile
        /// Nothing is leased on its origins before a moment.
        case originPaused
        /// Its origins have as many connections as they may have.
        case originFull
        /// Its group has as many connections as it may have.
        case groupFull
        /// Its group, its origin or the fleet has a cap on bytes per second, and uses all of it.
        case rateLimited
        /// No live worker reaches the sink.
        case noWorker
        /// The sink is in trouble wherever it is reached.
        case sinkParked
        /// It could be leased, and other work is leased before it.
        case workersBusy
        /// A fresh URL is being asked for.
        case resolver
        /// Workers are fetching it.
        case fetching
        /// A worker verifies it and puts it in place.
        case finalizing
        /// The group can still be given tasks, and ends only when somebody seals it.
        case unsealed
    }

    /// One thing that keeps the task from going on, or that is being done for it.
    public struct Wait: Hashable, Sendable, Codable {
        /// Which one.
        public var reason: Reason
        /// The same in a sentence.
        public var detail: String
        /// Since when, if that is known.
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

    /// One source, and how it did.
    public struct Source: Hashable, Sendable, Codable {
        /// Its URL, as the task was added with it.
        public var url: String
        /// Scheme, host and port.
        public var origin: String
        /// `usable`, `failed` (given up), or `differs` (its content is another one than the rest of this version's).
        public var state: String
        /// Failures of it, of which the newest are among the attempts.
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
        /// Since when.
        public var since: Timestamp
        /// When the worker was heard of last, if that is longer ago than it should be.
        public var silentSince: Timestamp?
        /// When its lease ends if nothing is heard of it until then; absent unless `silentSince` is there.
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

    /// One try that did not succeed, or that changed what happens; the newest comes last.
    public struct Attempt: Hashable, Sendable, Codable {
        /// When, by the database's clock.
        public var at: Timestamp
        /// The worker.
        public var worker: String?
        /// The URL of the source, as the task was added with it.
        public var source: String?
        /// The failure's kind.
        public var kind: FailureKind
        /// The status of the answer, if there was one.
        public var status: Int?
        /// What was seen, in words.
        public var detail: String
        /// The origin's own name for the request.
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

    /// Chunks of the current content version by what they are.
    public struct Chunks: Hashable, Sendable, Codable {
        /// On storage.
        public var done: Int64
        /// Held by a worker.
        public var leased: Int64
        /// Could be leased now.
        public var ready: Int64
        /// Put off until a moment.
        public var waiting: Int64
        /// Out of reach until somebody resumes or retries.
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
    /// One sentence: what happens next, and when; absent when nothing will.
    public var next: String?
    /// What keeps it from going on, the most important first.
    public var waits: [Wait]
    /// Its chunks.
    public var chunks: Chunks
    /// Who works on it.
    public var work: [Work]
    /// Its sources.
    public var sources: [Source]
    /// What was tried.
    public var attempts: [Attempt]
    /// Whether it has succeeded, and nothing tells whether it is a page in the place of the file; absent otherwise.
    public var doubtful: Bool?
    /// When it fails if it is not done by then.
    public var deadlineAt: Timestamp?
    /// When all of this was so.
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
