/// A source of a task, and its record so far.
public struct TaskSource: Hashable, Sendable, Codable {
    /// What may be fetched from a source for the task's content version.
    public enum State: String, Hashable, Sendable, Codable {
        /// Any chunk.
        case usable
        /// No chunk: the source was given up.
        case failed
        /// No chunk of this version: the source has other content (range contract, row 30).
        case differs
    }

    /// The URL that was given for the task. A resolver's URL is never shown: it is as good as a key.
    public var url: String
    /// Scheme, host and port that it is fetched from now, after any answer of the resolver.
    public var origin: String
    /// What may be fetched from it.
    public var state: State
    /// Its failures; the newest of them are among the attempts.
    public var failures: Int32
    /// Bytes that came from it.
    public var bytes: Int64
    /// Bytes per second and connection, if there are several sources and it was used.
    public var bytesPerSecond: Int64?
    /// When the resolver last gave a fresh URL for it.
    public var resolvedAt: Timestamp?

    /// A source.
    public init(
        url: String, origin: String, state: State, failures: Int32, bytes: Int64, bytesPerSecond: Int64?,
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

/// A chunk of a task that is being worked on.
public struct TaskWork: Hashable, Sendable, Codable {
    /// The worker.
    public var worker: String
    /// What it does.
    public var kind: LeaseKind
    /// The chunk's first byte.
    public var start: Int64
    /// The byte after its last, when known.
    public var end: Int64?
    /// How far it is durable.
    public var durable: Int64
    /// The URL of its source, when it fetches or asks the resolver about the source.
    public var source: String?
    /// When the work began.
    public var since: Timestamp
    /// When the coordinator last heard from the worker, if that is longer ago than expected.
    public var silentSince: Timestamp?
    /// When its lease ends if the worker stays silent; `nil` unless `silentSince` is set.
    public var endsAt: Timestamp?

    /// Work.
    public init(
        worker: String, kind: LeaseKind, start: Int64, end: Int64?, durable: Int64, source: String?, since: Timestamp,
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

/// A try that did not succeed, or that changed what happens next.
public struct TaskAttempt: Hashable, Sendable, Codable {
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

/// The chunks of a task's content version, counted by state; all 0 once the task has succeeded or was cancelled.
public struct ChunkCounts: Hashable, Sendable, Codable {
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

/// Finished files of a group that may be pages in place of the files: the origin answered with different content each time, stated nothing
/// that tells versions apart, and no size or digest was given.
public struct DoubtfulFiles: Hashable, Sendable, Codable {
    /// The number of such files.
    public var tasks: Int64
    /// The keys of the first of these tasks.
    public var keys: [String]

    /// Such files.
    public init(tasks: Int64, keys: [String]) {
        self.tasks = tasks
        self.keys = keys
    }
}
