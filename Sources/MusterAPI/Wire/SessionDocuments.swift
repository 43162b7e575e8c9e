public import MusterCore

/// The body of `POST /v1/sessions`: one incarnation of a worker introduces itself.
public struct SessionRequest: Hashable, Sendable, Codable {
    /// The worker's name; a restarted worker comes with the same name and gets a new session.
    public var name: String
    /// The sinks that it reaches.
    public var sinks: [String]
    /// How many transfers it runs at once.
    public var slots: Int
    /// The version of its program.
    public var version: String
    /// Labels of its operator's choosing.
    public var labels: [String: String]

    /// An introduction.
    public init(name: String, sinks: [String], slots: Int, version: String, labels: [String: String] = [:]) {
        self.name = name
        self.sinks = sinks
        self.slots = slots
        self.version = version
        self.labels = labels
    }
}

/// The answer: the session, and how long it lives without a sync.
public struct SessionDocument: Hashable, Sendable, Codable {
    /// The session.
    public var id: SessionID
    /// Its time to live, in milliseconds.
    public var ttlMilliseconds: Int64

    /// An answer.
    public init(id: SessionID, ttlMilliseconds: Int64) {
        self.id = id
        self.ttlMilliseconds = ttlMilliseconds
    }
}

/// What a worker says about one lease.
public struct Report: Hashable, Sendable, Codable {
    /// The kinds of reports.
    public enum Kind: String, Sendable, Codable, CaseIterable {
        /// The durable prefix grew, or something was learned.
        case progress
        /// The chunk is durable to its end; with `finished`, the whole task is in place.
        case done
        /// It can't go on; `failure` says why.
        case failed
        /// Given back untouched, or as far as it is durable.
        case released
        /// Ranges don't work: start over as one stream (`http.md` row 1).
        case restart
    }

    /// What the first response told of a task (`http.md`).
    public struct Learned: Hashable, Sendable, Codable {
        /// Size and validators.
        public var representation: Representation
        /// Whether the rest may be fetched by ranges.
        public var splittable: Bool
        /// Where the content came from, after redirects.
        public var effectiveURL: String?
        /// Which of the task's sources answered.
        public var source: Int32

        /// What was learned.
        public init(representation: Representation, splittable: Bool, effectiveURL: String?, source: Int32) {
            self.representation = representation
            self.splittable = splittable
            self.effectiveURL = effectiveURL
            self.source = source
        }
    }

    /// Why a lease failed.
    public struct Failure: Hashable, Sendable, Codable {
        /// The closed kind.
        public var kind: FailureKind
        /// What was seen, in words; never holds a header's value.
        public var detail: String
        /// The origin's Retry-After, in seconds.
        public var retryAfter: Int64?
        /// Which of the task's sources it was.
        public var source: Int32?

        /// A failure.
        public init(kind: FailureKind, detail: String, retryAfter: Int64? = nil, source: Int32? = nil) {
            self.kind = kind
            self.detail = detail
            self.retryAfter = retryAfter
            self.source = source
        }
    }

    /// The file that stands at its path (I8).
    public struct Finished: Hashable, Sendable, Codable {
        /// Its size in bytes.
        public var size: Int64
        /// Its digests, by algorithm, in hexadecimal.
        public var digests: [String: String]

        /// A finished file.
        public init(size: Int64, digests: [String: String]) {
            self.size = size
            self.digests = digests
        }
    }

    /// The chunk.
    public var chunk: ChunkID
    /// The lease's epoch: the fence (I1).
    public var epoch: LeaseEpoch
    /// What is said.
    public var kind: Kind
    /// How far the chunk is durable (I4).
    public var durable: DurablePrefix?
    /// What was learned of the representation.
    public var learned: Learned?
    /// Why it failed.
    public var failure: Failure?
    /// The file, when all of the task is in place.
    public var finished: Finished?

    /// A report.
    public init(
        lease: LeaseName, kind: Kind, durable: DurablePrefix? = nil, learned: Learned? = nil, failure: Failure? = nil,
        finished: Finished? = nil
    ) {
        chunk = lease.chunk
        epoch = lease.epoch
        self.kind = kind
        self.durable = durable
        self.learned = learned
        self.failure = failure
        self.finished = finished
    }

    /// The lease that the report is about.
    public var lease: LeaseName { LeaseName(chunk: chunk, epoch: epoch) }
}

/// The state of one of a worker's sinks.
public struct SinkStatus: Hashable, Sendable, Codable {
    /// The sink's name.
    public var name: String
    /// Why nothing of it may be leased to this worker now, `storageFull` or `storage`; `nil` when it is well.
    public var parked: FailureKind?
    /// What was seen, in words.
    public var detail: String?
    /// Free bytes, when known.
    public var freeBytes: Int64?

    /// A sink's state.
    public init(name: String, parked: FailureKind? = nil, detail: String? = nil, freeBytes: Int64? = nil) {
        self.name = name
        self.parked = parked
        self.detail = detail
        self.freeBytes = freeBytes
    }
}

/// The body of `POST /v1/sessions/{id}/sync`; `docs/protocol.md` tells the rules.
public struct SyncRequest: Hashable, Sendable, Codable {
    /// Counts this session's syncs from 1; a later one supersedes an earlier one that still waits.
    public var sequence: Int64
    /// Every sync up to this one has been answered or given up; what was granted in them is in `held` or was never received.
    public var settled: Int64
    /// News of leases.
    public var reports: [Report]
    /// Every lease that the worker holds or that a report not yet acknowledged is about.
    public var held: [LeaseName]
    /// How many more leases it can take now.
    public var room: Int
    /// How long it is willing to wait for work, in milliseconds; a sync with reports is answered at once.
    public var waitMilliseconds: Int64
    /// Its sinks.
    public var sinks: [SinkStatus]
    /// Bytes received since the last settled sync, for the display of speeds.
    public var receivedBytes: Int64

    /// A sync.
    public init(
        sequence: Int64, settled: Int64, reports: [Report] = [], held: [LeaseName] = [], room: Int = 0,
        waitMilliseconds: Int64 = 0, sinks: [SinkStatus] = [], receivedBytes: Int64 = 0
    ) {
        self.sequence = sequence
        self.settled = settled
        self.reports = reports
        self.held = held
        self.room = room
        self.waitMilliseconds = waitMilliseconds
        self.sinks = sinks
        self.receivedBytes = receivedBytes
    }
}

/// One source of a lease.
public struct LeaseSource: Hashable, Sendable, Codable {
    /// Its place among the task's sources.
    public var ordinal: Int32
    /// The URL as the caller gave it.
    public var url: String
    /// Headers of the caller; may hold secrets.
    public var headers: [String: String]

    /// A source.
    public init(ordinal: Int32, url: String, headers: [String: String]) {
        self.ordinal = ordinal
        self.url = url
        self.headers = headers
    }
}

/// The right to work on one chunk, with all that the work needs.
public struct LeaseDocument: Hashable, Sendable, Codable {
    /// The chunk.
    public var chunk: ChunkID
    /// The fence.
    public var epoch: LeaseEpoch
    /// What to do.
    public var kind: LeaseKind
    /// The task that the chunk is of.
    public var task: TaskID
    /// The sink that the file belongs to.
    public var sink: String
    /// Where the file shall stand below it.
    public var path: String
    /// The content version, part of the part file's name.
    public var version: Int32
    /// The chunk's first byte.
    public var start: Int64
    /// The byte after its last; `nil` for a stream of unknown length.
    public var end: Int64?
    /// Whether the task's size is known and its chunks are planned.
    public var planned: Bool
    /// Whether the content must be fetched as one stream, without Range.
    public var stream: Bool
    /// Whether a lease on this content version was ever lost, so that the part must be copied to a fresh inode (I8).
    public var fenced: Bool
    /// What a predecessor left durable; at `start` with CRC 0 when nothing.
    public var resume: DurablePrefix
    /// What is known of the content.
    public var representation: Representation
    /// The size that the caller expects.
    public var expectedSize: Int64?
    /// The digests that the caller expects.
    public var expectedDigests: [String: String]
    /// The source to fetch from; absent for work that fetches nothing.
    public var source: LeaseSource?
    /// For `finalize`: every chunk of the content version.
    public var chunks: [FinishedChunk]

    /// A lease.
    public init(
        name: LeaseName, kind: LeaseKind, task: TaskID, sink: String, path: String, version: Int32, start: Int64,
        end: Int64?, planned: Bool, stream: Bool, fenced: Bool, resume: DurablePrefix, representation: Representation,
        expectedSize: Int64?, expectedDigests: [String: String], source: LeaseSource?, chunks: [FinishedChunk]
    ) {
        chunk = name.chunk
        epoch = name.epoch
        self.kind = kind
        self.task = task
        self.sink = sink
        self.path = path
        self.version = version
        self.start = start
        self.end = end
        self.planned = planned
        self.stream = stream
        self.fenced = fenced
        self.resume = resume
        self.representation = representation
        self.expectedSize = expectedSize
        self.expectedDigests = expectedDigests
        self.source = source
        self.chunks = chunks
    }

    /// The lease's name.
    public var name: LeaseName { LeaseName(chunk: chunk, epoch: epoch) }
}

/// A request to give up the tail of a running chunk. Planned for; not sent yet.
public struct Shrink: Hashable, Sendable, Codable {
    /// The lease that is asked.
    public var lease: LeaseName
    /// Where the chunk shall end instead.
    public var end: Int64

    /// A request.
    public init(lease: LeaseName, end: Int64) {
        self.lease = lease
        self.end = end
    }
}

/// The answer to a sync.
public struct SyncResponse: Hashable, Sendable, Codable {
    /// Leases that the worker no longer holds: it stops at once.
    public var lost: [LeaseName]
    /// Running chunks whose tail others should have.
    public var shrink: [Shrink]
    /// New work.
    public var leases: [LeaseDocument]
    /// Whether the worker shall finish what it holds, take nothing more and leave.
    public var drain: Bool
    /// The session's time to live from the moment at which this sync was sent, in milliseconds.
    public var ttlMilliseconds: Int64

    /// An answer.
    public init(
        lost: [LeaseName] = [], shrink: [Shrink] = [], leases: [LeaseDocument] = [], drain: Bool = false,
        ttlMilliseconds: Int64
    ) {
        self.lost = lost
        self.shrink = shrink
        self.leases = leases
        self.drain = drain
        self.ttlMilliseconds = ttlMilliseconds
    }
}

/// A live session as `GET /v1/workers` shows it.
public struct WorkerDocument: Hashable, Sendable, Codable {
    /// The worker's name.
    public var name: String
    /// Its session.
    public var session: SessionID
    /// `ready`, or `draining`.
    public var state: String
    /// The version of its program.
    public var version: String
    /// Its sinks and how they are.
    public var sinks: [SinkStatus]
    /// How many transfers it runs at once.
    public var slots: Int
    /// How many leases it holds.
    public var leases: Int64
    /// Bytes per second lately.
    public var bytesPerSecond: Int64
    /// When the session was opened.
    public var startedAt: Timestamp
    /// When it was last heard of.
    public var lastSeenAt: Timestamp
    /// Labels of its operator's choosing.
    public var labels: [String: String]

    /// A worker's document.
    public init(
        name: String, session: SessionID, state: String, version: String, sinks: [SinkStatus], slots: Int, leases: Int64,
        bytesPerSecond: Int64, startedAt: Timestamp, lastSeenAt: Timestamp, labels: [String: String]
    ) {
        self.name = name
        self.session = session
        self.state = state
        self.version = version
        self.sinks = sinks
        self.slots = slots
        self.leases = leases
        self.bytesPerSecond = bytesPerSecond
        self.startedAt = startedAt
        self.lastSeenAt = lastSeenAt
        self.labels = labels
    }
}
