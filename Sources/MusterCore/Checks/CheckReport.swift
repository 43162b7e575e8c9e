/// What a worker saw of a page of a sink (adr/0048). Carried by a sync, and read by the SQL function `check_step`.
public struct CheckReport: Hashable, Sendable, Codable {
    /// The sink.
    public var sink: String
    /// The fencing token of the walk.
    public var epoch: Int64
    /// The number of the page.
    public var step: Int64
    /// Whether the worker is still looking: then there is nothing else in it.
    public var isUnderWay: Bool
    /// How many files or parts it has looked at.
    public var looked: Int64
    /// How many bytes of files it has read.
    public var bytes: Int64
    /// How many files it should have read, but has nothing to compare with.
    public var unproven: Int64
    /// `files`: what is to be told of some of them.
    public var files: [SeenFile]?
    /// `parts`: those that are missing or short; `names`: those that are listed; `suspects`: those that are there still.
    public var parts: [SeenPart]?
    /// `names`, `suspects`: the sessions that have a directory in the sink.
    public var sessions: [SessionID]?
    /// `names`: the other installations that have a directory in the sink.
    public var installations: [String]?
    /// `names`: the last name of the list; `nil` if no name comes after it.
    public var last: String?
    /// `names`: whether there are more sessions or installations than are listed; `nil` if not.
    public var isCut: Bool?

    /// A report without findings.
    public init(on order: CheckOrder, isUnderWay: Bool = false) {
        sink = order.sink
        epoch = order.epoch
        step = order.step
        self.isUnderWay = isUnderWay
        looked = 0
        bytes = 0
        unproven = 0
    }

    /// Identifies the page that it is about.
    public var name: CheckStep { CheckStep(epoch: epoch, step: step) }
}

/// What is to be told of a finished file.
public struct SeenFile: Hashable, Sendable, Codable {
    /// Its task.
    public var task: TaskID
    /// The content version that was looked for.
    public var version: Int32
    /// The run that was looked for.
    public var run: Int32
    /// What was found.
    public var kind: FindingKind
    /// What was seen, in words.
    public var detail: String
    /// Whether the file is the task's own by its mark, and no other program has written to it: its next content version may take its place.
    public var isOwn: Bool?

    /// What is to be told of a file.
    public init(_ file: CheckedFile, _ kind: FindingKind, _ detail: String, isOwn: Bool? = nil) {
        task = file.task
        version = file.version
        run = file.run
        self.kind = kind
        self.detail = detail
        self.isOwn = isOwn
    }
}

/// A part that was seen, or was not.
public struct SeenPart: Hashable, Sendable, Codable {
    /// Its task.
    public var task: TaskID
    /// The content version.
    public var version: Int32
    /// Its size in bytes; `nil` if it is not there, and in a list of names.
    public var size: Int64?

    /// A part.
    public init(task: TaskID, version: Int32, size: Int64? = nil) {
        self.task = task
        self.version = version
        self.size = size
    }
}
