public import MusterCore

/// A worker's reports on leases, as the store takes them.
public enum LeaseReport {
    /// The durable prefix of a chunk grew.
    public struct Progress: Sendable {
        /// The session that reports.
        public let session: SessionID
        /// The lease.
        public let lease: LeaseName
        /// How far the chunk is durable.
        public let durable: DurablePrefix

        /// A report.
        public init(session: SessionID, lease: LeaseName, durable: DurablePrefix) {
            self.session = session
            self.lease = lease
            self.durable = durable
        }
    }

    /// What the coordinator learns from the first response to a task.
    public struct Learned: Sendable {
        /// The session that reports.
        public let session: SessionID
        /// The lease.
        public let lease: LeaseName
        /// Size, validators and stated digests.
        public let representation: Representation
        /// The rung on which its source may be asked for the rest.
        public let rung: Rung
        /// Where the content came from, after redirects.
        public let effectiveURL: String?
        /// The file name that the origin suggests, made safe, if the group's policy asks for it (range contract, row 34).
        public let suggestedName: String?
        /// Whether the lease fetches the whole file from a source that can also be asked for parts.
        public let askedForAll: Bool
        /// The size of the other chunks, in bytes.
        public let chunkSize: Int64

        /// A report.
        public init(
            session: SessionID, lease: LeaseName, representation: Representation, rung: Rung,
            effectiveURL: String?, suggestedName: String?, askedForAll: Bool = false, chunkSize: Int64
        ) {
            self.session = session
            self.lease = lease
            self.representation = representation
            self.rung = rung
            self.effectiveURL = effectiveURL
            self.suggestedName = suggestedName
            self.askedForAll = askedForAll
            self.chunkSize = chunkSize
        }
    }

    /// A chunk is durable to its end, or a purge is done.
    public struct Done: Sendable {
        /// The session that reports.
        public let session: SessionID
        /// The lease.
        public let lease: LeaseName
        /// CRC32C of the whole chunk.
        public let crc: UInt32
        /// The end of the chunk as its holder knew it: the holder may not have heard that the chunk may end later
        /// (adr/0037). `nil` if the report has no durable prefix, as for a purge.
        public let end: Int64?
        /// The result for the file that a purge had to delete.
        public let removed: RemovedFile?

        /// A report.
        public init(
            session: SessionID, lease: LeaseName, crc: UInt32, end: Int64? = nil, removed: RemovedFile? = nil
        ) {
            self.session = session
            self.lease = lease
            self.crc = crc
            self.end = end
            self.removed = removed
        }
    }

    /// A file stands at its path (I8).
    public struct Finished: Sendable {
        /// The session that reports.
        public let session: SessionID
        /// The lease.
        public let lease: LeaseName
        /// The file's size.
        public let size: Int64
        /// Its digests, as a JSON object.
        public let digests: String
        /// What the responses stated, if this lease saw a response.
        public let representation: Representation?
        /// The URL that the content came from, after redirects.
        public let effectiveURL: String?
        /// The file's path, if that is not the path of the lease.
        public let path: String?
        /// CRC32C of the whole file, if the worker knows it.
        public let crc: UInt32?
        /// The path of the file that it was copied from, if nothing was fetched.
        public let reusedFrom: String?
        /// Whether it was at its path already, and no origin was asked.
        public let isUnasked: Bool

        /// A report.
        public init(
            session: SessionID, lease: LeaseName, size: Int64, digests: String, representation: Representation?,
            effectiveURL: String?, path: String? = nil, crc: UInt32? = nil, reusedFrom: String? = nil,
            isUnasked: Bool = false
        ) {
            self.session = session
            self.lease = lease
            self.size = size
            self.digests = digests
            self.representation = representation
            self.effectiveURL = effectiveURL
            self.path = path
            self.crc = crc
            self.reusedFrom = reusedFrom
            self.isUnasked = isUnasked
        }
    }

    /// A lease could not be fulfilled.
    public struct Failed: Sendable {
        /// The lease, and how far its chunk is durable.
        public let progress: Progress
        /// The kind.
        public let kind: FailureKind
        /// What was seen.
        public let detail: String
        /// The ordinal of the source that failed.
        public let source: Int32?
        /// The origin's Retry-After, in seconds.
        public let retryAfter: Int64?
        /// The status of the answer, if there was one.
        public let status: Int32?
        /// The origin's own name for the request.
        public let requestID: String?
        /// The numeric address of the peer, if there was a connection.
        public let address: String?
        /// Whether no connection was made: the name is unknown, the connection was refused, or a proxy did not pass the
        /// request on.
        public let isUnreached: Bool
        /// Whether the connection ended before an answer, and the worker fetches nothing else from the origin.
        public let isUnanswered: Bool
        /// Whether another origin answered, to which redirects led.
        public let isElsewhere: Bool
        /// Whether the worker saw that a possible limit is one (`true`) or is none (`false`); `nil` if it is not known.
        public let isLimit: Bool?
        /// Whether the origin serves the worker nothing.
        public let isUnserved: Bool
        /// How many requests the worker has seen the origin serve at once lately; 0 if that is not known.
        public let servedAtOnce: Int32
        /// A random number within `0..<1` for the jitter of the backoff.
        public let random: Double

        /// A report.
        public init(
            progress: Progress, kind: FailureKind, detail: String, source: Int32? = nil, retryAfter: Int64? = nil,
            status: Int32? = nil, requestID: String? = nil, address: String? = nil, isUnreached: Bool = false,
            isUnanswered: Bool = false, isElsewhere: Bool = false, isLimit: Bool? = nil, isUnserved: Bool = false,
            servedAtOnce: Int32 = 0, random: Double = 0
        ) {
            self.progress = progress
            self.kind = kind
            self.detail = detail
            self.source = source
            self.retryAfter = retryAfter
            self.status = status
            self.requestID = requestID
            self.address = address
            self.isUnreached = isUnreached
            self.isUnanswered = isUnanswered
            self.isElsewhere = isElsewhere
            self.isLimit = isLimit
            self.isUnserved = isUnserved
            self.servedAtOnce = servedAtOnce
            self.random = random
        }

        /// Whether the failure is a sign of too much at once at the origin (range contract, row 24).
        var limitSignal: FailureKind.LimitSignal {
            if let isLimit { return isLimit ? .certain : .refuted }
            let signal = kind.limitSignal(status: status.map { Int($0) })
            return signal == .possible && isUnserved && kind != .network ? .unserved : signal
        }

        /// The longest time that a limit with this status may last, in seconds.
        var limitSeconds: Int32 {
            Int32(FailureKind.longestLimit(status: status.map { Int($0) }).components.seconds)
        }

        /// Whether the failure may mean that the URL has expired (row 21).
        var isExpiry: Bool { kind.isExpiry(status: status.map { Int($0) }) }
    }

    /// The resolver answered (range contract, row 21).
    public struct Resolved: Sendable {
        /// The session that reports.
        public let session: SessionID
        /// The lease.
        public let lease: LeaseName
        /// The fresh URL, checked.
        public let url: String
        /// Its origin.
        public let origin: String
        /// The headers that replace the source's own for this URL, as a JSON object; may hold secrets.
        public let headers: String?

        /// A report.
        public init(session: SessionID, lease: LeaseName, url: String, origin: String, headers: String?) {
            self.session = session
            self.lease = lease
            self.url = url
            self.origin = origin
            self.headers = headers
        }
    }
}
