public import MusterCore

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
    /// How the source is asked: on this rung of the ladder, or further down if it contradicts that too.
    public var rung: Rung
    /// Whether a lease on this content version was ever lost, so that the part must be copied to a fresh inode (I8).
    public var fenced: Bool
    /// Whether the first request is for all of the file, beyond `end`, since the origin is not known to serve more than one request for a
    /// file (range contract, row 22).
    public var asksForAll: Bool?
    /// After which failures the worker may look whether a plain GET is served, which the bytes of the version are given up for; `nil` for none.
    public var looks: Look?
    /// Whether another source is left that has not been tried for the chunk: the worker need not have all the patience of the options with this
    /// one.
    public var mayMoveOn: Bool?
    /// Where the first request ends, at `end` or further: the chunk was cut off one that is being fetched, and what follows it may have to come by the same
    /// request, if nobody else is served it. Nothing is written beyond `end` all the same (adr/0037).
    public var reach: Int64?
    /// The least bytes per second that the request has to bring which goes on to `reach`, or another one that runs is the better way out; 0 for any.
    public var pace: Int64?
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
    /// How the source is asked: the task's options over its group's.
    public var options: FetchOptions?
    /// What the group wants where there is a choice.
    public var policy: TransferPolicy?
    /// The media type that the content must have.
    public var contentType: String?
    /// Whether the source is another one than that which taught the representation: then a difference is the source's fault, and
    /// nothing but a size with a strong ETag or a digest makes its bytes the same content (range contract, row 30).
    public var isOtherMirror: Bool?
    /// What the source has shown of a content version that was given up since: less than that is not believed, unless it says that it is another version
    /// (range contract, row 27). Absent when there was none.
    public var earlier: EarlierVersion?
    /// Whether the source has its last try: none of the chunk is left after this one, but for those of its mirrors. Absent while there are some.
    public var isLastTry: Bool?
    /// For `resolve`: whom to ask what.
    public var resolver: Resolver?
    /// For `resolve`: the question.
    public var question: ResolverQuestion?
    /// The group whose byte budget the work draws from; absent for work of no group.
    public var group: String?
    /// The origin whose byte budget it draws from; absent for work that fetches nothing.
    public var origin: String?
    /// The connection to that which it uses: one lease of a lane is at work at a time. Absent for work that fetches nothing.
    public var lane: Int64?
    /// For the first request of a task: a file of the sink that may be what it asks for. The origin is asked whether it still is.
    public var have: HeldFile?
    /// Sessions that are over and may still be about to put a file in place in the sink, or to delete one: they are revoked there before anything is
    /// done under the lease (adr/0017). Absent when there are none.
    public var revoke: [SessionID]?

    /// A lease.
    public init(
        name: LeaseName, kind: LeaseKind, task: TaskID, sink: String, path: String, version: Int32, start: Int64,
        end: Int64?, planned: Bool, rung: Rung, fenced: Bool, resume: DurablePrefix, representation: Representation,
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
        self.rung = rung
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
