/// Why a task failed, or the last failure of a task that goes on.
public struct TaskFailure: Hashable, Sendable, Codable {
    /// The kind, from a closed list, such as `notFound` or `httpStatus(503)`.
    public var kind: FailureKind
    /// What was seen, in words.
    public var detail: String
    /// When it happened, by the database's clock.
    public var at: Timestamp
    /// The status of the answer, if there was one.
    public var status: Int?
    /// The URL of the source that failed, as it was given for the task.
    public var source: String?
    /// The origin's own identifier of the request.
    public var requestID: String?

    /// A failure.
    public init(
        kind: FailureKind, detail: String, at: Timestamp, status: Int? = nil, source: String? = nil,
        requestID: String? = nil
    ) {
        self.kind = kind
        self.detail = detail
        self.at = at
        self.status = status
        self.source = source
        self.requestID = requestID
    }
}

/// The next try of a task that goes on after a failure.
public struct TaskRetry: Hashable, Sendable, Codable {
    /// The number of the next or the current try, from 1. Progress resets it (I12).
    public var number: Int32
    /// The number of tries without progress after which the task fails; `nil` if that is not known beforehand, or the task never fails for it.
    public var limit: Int32?
    /// In how many seconds the try is due; `nil` when it is under way, or starts as soon as there is room for it.
    public var inSeconds: Int64?
    /// For how many seconds the task is not given up, whatever the number of tries: an origin that served lately can't be reached. `nil`
    /// if only the number counts.
    public var onForSeconds: Int64?

    /// What is tried next.
    public init(number: Int32, limit: Int32? = nil, inSeconds: Int64? = nil, onForSeconds: Int64? = nil) {
        self.number = number
        self.limit = limit
        self.inSeconds = inSeconds
        self.onForSeconds = onForSeconds
    }

    /// `try 3 of 8`, or `try 3` if no number is the last; `nil` for the first try, which does not count if the origin only refused too many
    /// requests at once.
    public var count: String? { number > 1 ? "try \(number)" + (limit.map { " of \($0)" } ?? "") : nil }

    /// `given up in 1m 50s at the earliest`, if something other than the number of tries decides.
    public var end: String? {
        onForSeconds.map { "given up in \(DurationNotation.format(.seconds($0))) at the earliest" }
    }
}

/// Tasks in trouble: their last try failed, nothing has come since, and they are tried again.
public struct TaskTrouble: Hashable, Sendable, Codable {
    /// How their last try failed.
    public var kind: FailureKind
    /// The number of these tasks.
    public var tasks: Int64

    /// A count.
    public init(kind: FailureKind, tasks: Int64) {
        self.kind = kind
        self.tasks = tasks
    }
}
