public import MusterCore

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
        /// The source contradicts the way in which it was asked: start over on `rung` (range contract, "The ladder").
        case restart
        /// The resolver answered; `resolved` has the fresh URL (row 21).
        case resolved
        /// The origin served another request for a file of which one was served before (row 22).
        case servedAgain
        /// The chunk will end at `end`: nothing is written at or beyond it after this report. The old end when it is too late.
        case shrunk
    }

    /// What the first response told of a task (`docs/range-contract.md`).
    public struct Learned: Hashable, Sendable, Codable {
        /// Size and validators.
        public var representation: Representation
        /// How the source may be asked for the rest: on this rung of the ladder, and none above.
        public var rung: Rung
        /// Where the content came from, after redirects.
        public var effectiveURL: String?
        /// Which of the task's sources answered.
        public var source: Int32
        /// The name that the origin suggests, made safe, if the group asks for it (row 34).
        public var suggestedName: String?
        /// Whether the lease brings all of the file, since it said so (`LeaseDocument.asksForAll`) and the answer allows ranges too.
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
        /// The closed kind.
        public var kind: FailureKind
        /// What was seen, in words; never holds a header's value.
        public var detail: String
        /// The origin's Retry-After, in seconds.
        public var retryAfter: Int64?
        /// Which of the task's sources it was.
        public var source: Int32?
        /// The status of the answer, if there was one.
        public var status: Int?
        /// The origin's own name for the request, from `X-Request-Id`, `X-Amz-Request-Id` and their like.
        public var requestID: String?
        /// Numeric address of the peer, when there was a connection.
        public var address: String?
        /// Whether nobody was reached at all: a name is unknown, a connection was refused, or a proxy did not pass the request on.
        public var unreached: Bool?
        /// Whether the connection ended before an answer, and nothing else is fetched there.
        public var unanswered: Bool?
        /// Of a refusal that may be for too much at once, whether it is: files that the origin had served were refused as well, or were served in turns with the
        /// refusals of this one (range contract, row 24). `nil` when that was not seen.
        public var isLimit: Bool?
        /// Of such a refusal, whether the origin serves the worker nothing: whatever was asked for at the same time was refused as well, and nothing came lately.
        public var unserved: Bool?

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
        /// Where it stands, if that is not the path of the lease (`if-exists: rename`).
        public var path: String?
        /// Whether it stood there already and was verified, so that nothing was fetched.
        public var wasThere: Bool?
        /// The path of the file of the sink that it was made of, if the origin said that this is still the same, so that nothing was
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
    /// For a purge that is `done`: what became of the file of a task that had succeeded.
    public var removed: RemovedFile?
    /// What the resolver answered.
    public var resolved: ResolverAnswer?
    /// For `shrunk`: the byte after the last that will be written under the lease.
    public var end: Int64?
    /// For `shrunk`: how many bytes its request has brought a second; `nil` where none have come.
    public var speed: Int64?
    /// For `restart`: how the source is asked from now on; a rung below that of the lease if absent.
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
