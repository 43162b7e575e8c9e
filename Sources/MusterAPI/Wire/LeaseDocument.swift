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

/// The right to work on a chunk, with all data that the work needs.
public struct LeaseDocument: Hashable, Sendable, Codable {
    /// The chunk.
    public var chunk: ChunkID
    /// The fencing token.
    public var epoch: LeaseEpoch
    /// What to do.
    public var kind: LeaseKind
    /// The task that the chunk is of.
    public var task: TaskID
    /// The sink that the file belongs to.
    public var sink: String
    /// The path that the file is to have below the sink.
    public var path: String
    /// The content version, part of the part file's name.
    public var version: Int32 = 1
    /// The chunk's first byte.
    public var start: Int64 = 0
    /// The byte after its last; `nil` for a stream of unknown length.
    public var end: Int64?
    /// Whether the task's size is known and its chunks are planned.
    public var planned = false
    /// How the source is asked: on this rung of the ladder, or further down if the source contradicts this rung too.
    public var rung = Rung.chunks
    /// Whether a lease on this content version was ever lost, so that the part must be copied to a fresh inode (I8).
    public var fenced = false
    /// Whether the first request is for the whole file, beyond `end`, since the origin is not known to serve more than one request for a
    /// file (range contract, row 22).
    public var asksForAll: Bool?
    /// The failures after which the worker may look whether a plain GET is served, for which the bytes of the version would be given up; `nil` for none.
    public var looks: Look?
    /// Whether another source is left that has not been tried for the chunk: then the worker need not wait for this source as long as the
    /// options allow.
    public var mayMoveOn: Bool?
    /// Where the first request ends, at `end` or further. The chunk was cut off a chunk that is being fetched. What follows it may have to
    /// come by the same request, if the origin serves no other request. Nothing is written beyond `end` in any case (adr/0037).
    public var reach: Int64?
    /// The least bytes per second for the request that goes on to `reach`; if it is slower, another running request is the better way. 0 for any speed.
    public var pace: Int64?
    /// The prefix that a predecessor left durable; it ends at `start` with CRC 0 if there is none.
    public var resume = DurablePrefix(offset: 0, crc: 0)
    /// What is known of the content.
    public var representation = Representation()
    /// The size that the caller expects.
    public var expectedSize: Int64?
    /// The digests that the caller expects.
    public var expectedDigests: [String: String] = [:]
    /// The source to fetch from; absent for work that fetches nothing.
    public var source: LeaseSource?
    /// For `finalize`: all chunks of the content version.
    public var chunks: [FinishedChunk] = []
    /// How the source is asked: the task's options over its group's.
    public var options: FetchOptions?
    /// The group's policy for cases that leave a choice.
    public var policy: TransferPolicy?
    /// The media type that the content must have.
    public var contentType: String?
    /// Whether the source is not the one that `representation` came from. Then a difference is the source's fault, and only a size with a
    /// strong ETag or a digest shows that its bytes are of the same content (range contract, row 30).
    public var isOtherMirror: Bool?
    /// What the source showed of a content version that was given up. A smaller content is not believed, unless it says that it is another
    /// version (range contract, row 27). Absent when there was none.
    public var earlier: EarlierVersion?
    /// Whether this is the source's last try for the chunk; mirrors may still have tries. Absent while the source has more.
    public var isLastTry: Bool?
    /// For `resolve`: the resolver to ask.
    public var resolver: Resolver?
    /// For `resolve`: the question.
    public var question: ResolverQuestion?
    /// The group whose byte budget the work draws from; absent for work of no group.
    public var group: String?
    /// The origin whose byte budget it draws from; absent for work that fetches nothing.
    public var origin: String?
    /// The connection to the origin that it uses: one lease of a lane is active at a time. Absent for work that fetches nothing.
    public var lane: Int64?
    /// For the first request of a task: a file of the sink that may be the requested one. The origin is asked whether it still is.
    public var have: HeldFile?
    /// Sessions that have ended, but may still put a file in place in the sink, or delete a file there. They are revoked there before any
    /// work of the lease (adr/0017). Absent when there are none.
    public var revoke: [SessionID]?

    /// A lease on the first version of a task, from its first byte.
    public init(name: LeaseName, kind: LeaseKind, task: TaskID, sink: String, path: String) {
        chunk = name.chunk
        epoch = name.epoch
        self.kind = kind
        self.task = task
        self.sink = sink
        self.path = path
    }

    /// The lease's name.
    public var name: LeaseName { LeaseName(chunk: chunk, epoch: epoch) }
}
