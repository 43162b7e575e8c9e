public import MusterCore

/// A worker's report on a lease.
public struct Report: Hashable, Sendable, Codable {
    /// The kinds of reports.
    public enum Kind: String, Sendable, Codable, CaseIterable {
        /// The durable prefix grew, or something was learned.
        case progress
        /// The chunk is durable to its end; with `finished`, the whole task is in place.
        case done
        /// The lease can't continue; `failure` says why.
        case failed
        /// Given back unchanged, or as far as it is durable.
        case released
        /// The source contradicts the way in which it was asked: start over on `rung` (range contract, "The ladder").
        case restart
        /// The resolver answered; `resolved` has the fresh URL (row 21).
        case resolved
        /// The origin served another request for a file of which it had served one before (row 22).
        case servedAgain
        /// The chunk will end at `end`: nothing is written at or beyond it after this report. The old end if the request came too late.
        case shrunk
    }

    /// What the first response said about a task (`docs/range-contract.md`).
    public struct Learned: Hashable, Sendable, Codable {
        /// Size and validators.
        public var representation: Representation
        /// How the source may be asked for the rest: on this rung of the ladder, and none above.
        public var rung: Rung
        /// The URL that the content came from, after redirects.
        public var effectiveURL: String?
        /// The ordinal of the source that answered.
        public var source: Int32
        /// The name that the origin suggests, made safe, if the group asks for it (row 34).
        public var suggestedName: String?
        /// Whether the lease brings the whole file, since it was to ask for it (`LeaseDocument.asksForAll`) and the answer allows ranges too.
        public var askedForAll: Bool?

        /// What was learned.
        public init(representation: Representation, rung: Rung, effectiveURL: String?, source: Int32) {
            self.representation = representation
            self.rung = rung
            self.effectiveURL = effectiveURL
            self.source = source
        }
    }

    /// Why a lease failed.
    public struct Failure: Hashable, Sendable, Codable {
        /// The kind, from a closed list.
        public var kind: FailureKind
        /// What was seen, in words; never holds a header's value.
        public var detail: String
        /// The origin's Retry-After, in seconds.
        public var retryAfter: Int64?
        /// The ordinal of the source that failed.
        public var source: Int32?
        /// The status of the answer, if there was one.
        public var status: Int?
        /// The origin's own identifier of the request, from `X-Request-Id`, `X-Amz-Request-Id` and similar fields.
        public var requestID: String?
        /// Numeric address of the peer, when there was a connection.
        public var address: String?
        /// Whether no server was reached: the name is unknown, the connection was refused, or a proxy did not pass the request on.
        public var unreached: Bool?
        /// Whether the connection ended before an answer, while nothing else was being fetched there.
        public var unanswered: Bool?
        /// Whether another origin answered, to which redirects led: its Retry-After says nothing of the one that was asked (row 25).
        public var elsewhere: Bool?
        /// For a refusal that may mean too many requests at once, whether it does: files that the origin had served were refused as well,
        /// or were served in turns with the refusals of this file (range contract, row 24). `nil` when that was not seen.
        public var isLimit: Bool?
        /// For such a refusal, whether the origin serves nothing to the worker: everything requested at the same time was refused as well,
        /// and no bytes came lately.
        public var unserved: Bool?
        /// For a connection that ended, how many requests the worker has seen the origin serve at once within the last ten seconds: the connection was not
        /// one too many among that many (row 24).
        public var servedAtOnce: Int?

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
        /// The file's path, if it is not that of the lease (`if-exists: rename`).
        public var path: String?
        /// Whether the file was there already and was verified, so that nothing was fetched.
        public var wasThere: Bool?
        /// The path of the file of the sink that was used again, because the origin said that it is still the same, so that nothing was
        /// fetched (`LeaseDocument.have`).
        public var reusedFrom: String?

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
    /// The kind of the report.
    public var kind: Kind
    /// How far the chunk is durable (I4).
    public var durable: DurablePrefix?
    /// What was learned of the representation.
    public var learned: Learned?
    /// Why the lease failed.
    public var failure: Failure?
    /// The file, when the whole task is in place.
    public var finished: Finished?
    /// For a purge that is `done`: what happened to the file of a succeeded task.
    public var removed: RemovedFile?
    /// The resolver's answer.
    public var resolved: ResolverAnswer?
    /// For `shrunk`: the byte after the last that will be written under the lease.
    public var end: Int64?
    /// For `shrunk`: how many bytes per second its request has brought; `nil` if none have come.
    public var speed: Int64?
    /// For `restart`: the rung on which the source is asked from now on; if absent, a rung below that of the lease.
    public var rung: Rung?

    /// A report.
    public init(
        lease: LeaseName, kind: Kind, durable: DurablePrefix? = nil, learned: Learned? = nil, failure: Failure? = nil,
        finished: Finished? = nil, removed: RemovedFile? = nil, resolved: ResolverAnswer? = nil, end: Int64? = nil,
        speed: Int64? = nil, rung: Rung? = nil
    ) {
        chunk = lease.chunk
        epoch = lease.epoch
        self.kind = kind
        self.durable = durable
        self.learned = learned
        self.failure = failure
        self.finished = finished
        self.removed = removed
        self.resolved = resolved
        self.end = end
        self.speed = speed
        self.rung = rung
    }

    /// The lease that the report is about.
    public var lease: LeaseName { LeaseName(chunk: chunk, epoch: epoch) }
}
