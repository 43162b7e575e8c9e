/// A page of a sink that the holder of a check's walk is to look at (adr/0048). Made by the SQL function `check_order`, and carried by the answer to a
/// sync.
public struct CheckOrder: Hashable, Sendable, Codable {
    /// What the page consists of.
    public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
        /// Finished files.
        case files
        /// Parts of unfinished tasks.
        case parts
        /// The names of parts and of sessions' directories, to be listed.
        case names
        /// Names that no row explains, to be looked at once more.
        case suspects
        /// Nothing new: the page that is under way.
        case goOn
    }

    /// The sink.
    public var sink: String
    /// The fencing token of the walk.
    public var epoch: Int64
    /// The number of the page.
    public var step: Int64
    /// What the page consists of.
    public var kind: Kind
    /// Whether files are read.
    public var isDeep: Bool
    /// `files`: the finished files, at most `Limits.checkPage`.
    public var files: [CheckedFile]?
    /// `parts` and `suspects`: the parts, at most `Limits.checkNames`.
    public var parts: [CheckedPart]?
    /// `suspects`: the sessions whose directories are looked at.
    public var sessions: [SessionID]?
    /// `names`: the name after which the list begins; empty at its beginning.
    public var after: String?

    /// A page without content.
    public init(sink: String, epoch: Int64, step: Int64, kind: Kind, isDeep: Bool = false) {
        self.sink = sink
        self.epoch = epoch
        self.step = step
        self.kind = kind
        self.isDeep = isDeep
    }

    /// Identifies the page, among all walks.
    public var name: CheckStep { CheckStep(epoch: epoch, step: step) }
}

/// Identifies a page of a walk.
public struct CheckStep: Hashable, Sendable {
    /// The fencing token of the walk, which belongs to one sink and one session.
    public let epoch: Int64
    /// The number of the page.
    public let step: Int64

    /// A page.
    public init(epoch: Int64, step: Int64) {
        self.epoch = epoch
        self.step = step
    }
}

/// A finished file, as the database knows it.
public struct CheckedFile: Hashable, Sendable, Codable {
    /// Its task.
    public var task: TaskID
    /// The task's content version.
    public var version: Int32
    /// The task's run, which counts its retries.
    public var run: Int32
    /// Its path below the sink.
    public var path: String
    /// Its size, in bytes.
    public var size: Int64
    /// CRC32C of the whole file; only for a deep check, if it is known.
    public var crc: UInt32?
    /// Its digests by algorithm, in hexadecimal; only for a deep check, if there is no CRC.
    public var digests: [String: String]?

    /// A finished file.
    public init(
        task: TaskID, version: Int32, run: Int32, path: String, size: Int64, crc: UInt32? = nil,
        digests: [String: String]? = nil
    ) {
        self.task = task
        self.version = version
        self.run = run
        self.path = path
        self.size = size
        self.crc = crc
        self.digests = digests
    }
}

/// A part of a content version.
public struct CheckedPart: Hashable, Sendable, Codable {
    /// Its task.
    public var task: TaskID
    /// The content version.
    public var version: Int32
    /// The bytes that it has at least; `nil` in a list of suspects.
    public var bytes: Int64?
    /// Where its file is to be put: a worker may have done so and died before it said so. `nil` in a list of suspects.
    public var path: String?

    /// A part.
    public init(task: TaskID, version: Int32, bytes: Int64? = nil, path: String? = nil) {
        self.task = task
        self.version = version
        self.bytes = bytes
        self.path = path
    }
}
