public import MusterCore

/// A task as a caller submits it: the body of `POST /v1/groups/{name}/tasks`, and a line of a manifest.
public struct TaskRequest: Hashable, Sendable, Codable {
    /// The caller's idempotency key; the path when absent.
    public var key: String?
    /// Sources of the same content, preferred ones first.
    public var urls: [String]
    /// The path that the file is to have below the sink; the first URL's last segment when absent.
    public var path: String?
    /// The expected size in bytes.
    public var size: Int64?
    /// Expected digests by algorithm, in hexadecimal.
    public var digests: [String: String]?
    /// Headers for requests to the sources. Never read back.
    public var headers: [String: String]?
    /// Higher is served first within the group.
    public var priority: Int32?
    /// The caller's own data.
    public var metadata: JSONValue?
    /// How the sources are asked; overrides the group's defaults. Never read back.
    public var fetch: FetchOptions?
    /// The media type that the content must have.
    public var contentType: String?
    /// How long the task may take after it is added, such as `2h`.
    public var deadline: String?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case key, urls, path, size, digests, headers, priority, metadata, fetch, contentType, deadline
    }

    /// A task of one or more URLs.
    public init(
        urls: [String], key: String? = nil, path: String? = nil, size: Int64? = nil, digests: [String: String]? = nil,
        headers: [String: String]? = nil, priority: Int32? = nil, metadata: JSONValue? = nil
    ) {
        self.urls = urls
        self.key = key
        self.path = path
        self.size = size
        self.digests = digests
        self.headers = headers
        self.priority = priority
        self.metadata = metadata
    }

    /// Reads a task and refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        key = try container.decodeIfPresent(String.self, forKey: .key)
        urls = try container.decode([String].self, forKey: .urls)
        path = try container.decodeIfPresent(String.self, forKey: .path)
        size = try container.integerIfPresent(Int64.self, forKey: .size)
        digests = try container.decodeIfPresent([String: String].self, forKey: .digests)
        headers = try container.decodeIfPresent([String: String].self, forKey: .headers)
        priority = try container.integerIfPresent(Int32.self, forKey: .priority)
        metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        fetch = try container.decodeIfPresent(FetchOptions.self, forKey: .fetch)
        contentType = try container.decodeIfPresent(String.self, forKey: .contentType)
        deadline = try container.decodeIfPresent(String.self, forKey: .deadline)
    }

    /// The task, checked; throws the reason and the place if it is invalid.
    public func validated() throws(InputRefusal) -> TaskSpecification {
        if let metadata { try MetadataRule.check(metadata) }
        do {
            try fetch?.check()
        } catch {
            throw error.within("/fetch")
        }
        let own = (headers ?? [:]).keys
        try HeaderNames.check(own, at: "/headers")
        if let names = fetch?.headers?.keys { try HeaderNames.check(names, at: "/fetch/headers", besides: own) }
        return try TaskSpecification(
            urls: urls, key: key, path: path, size: size, digests: digests ?? [:], headers: headers ?? [:],
            priority: priority ?? 0, metadata: metadata, contentType: contentType, deadline: deadline)
    }
}

/// Why a task failed, as the API shows it.
public struct FailureDocument: Hashable, Sendable, Codable {
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

/// The next try, after a failure that is not final.
public struct RetryDocument: Hashable, Sendable, Codable {
    /// The number of the next or the current try, from 1. Progress resets it.
    public var number: Int32
    /// The number of tries without progress after which the task fails; absent if that is not known beforehand, or the task never fails for it.
    public var limit: Int32?
    /// In how many seconds the try is due; absent when it is under way, or starts as soon as there is room for it.
    public var inSeconds: Int64?
    /// For how many seconds the task is not given up, whatever the number of tries: an origin that served lately can't be reached. Absent
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

/// A task as the API shows it. Headers are never part of it, since they may hold secrets.
public struct TaskDocument: Hashable, Sendable, Codable {
    /// How many bytes of the file have come.
    public struct Bytes: Hashable, Sendable, Codable {
        /// Bytes that are durable.
        public var done: Int64
        /// The whole size; `null` while it is unknown.
        public var total: Int64?

        /// Progress of a task.
        public init(done: Int64, total: Int64?) {
            self.done = done
            self.total = total
        }

        /// Writes an unknown total as an explicit `null`.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(done, forKey: .done)
            try container.encode(total, forKey: .total)
        }
    }

    /// The task's key.
    public var key: String
    /// The state that is observed.
    public var state: TaskState
    /// Its sources, in the caller's order.
    public var urls: [String]
    /// The path of the file, present or future.
    public var path: String
    /// The expected size.
    public var size: Int64?
    /// Priority within the group.
    public var priority: Int32
    /// The caller's own data.
    public var metadata: JSONValue?
    /// Progress.
    public var bytes: Bytes
    /// The content version of the bytes, counted from 1 (range contract, row 6).
    public var contentVersion: Int32
    /// The entity tag that the origin stated.
    public var etag: String?
    /// The Last-Modified that the origin stated.
    public var lastModified: String?
    /// The URL that the content came from, after redirects.
    public var effectiveURL: String?
    /// The computed digests, once the task has succeeded; before that, the expected ones.
    public var digests: [String: String]
    /// CRC32C of the finished file, if it is known.
    public var crc32c: UInt32?
    /// Failures so far.
    public var attempts: Int32
    /// Why it failed, or the last failure; `null` when there was none.
    public var failure: FailureDocument?
    /// The next try, if the last one failed and no bytes have come since; absent otherwise.
    public var retry: RetryDocument?
    /// When it was added.
    public var createdAt: Timestamp
    /// When its first byte was asked for.
    public var startedAt: Timestamp?
    /// When it became terminal.
    public var finishedAt: Timestamp?
    /// The media type that the content must have, if the caller named one.
    public var contentType: String?
    /// The time at which the task fails if it is not done.
    public var deadlineAt: Timestamp?
    /// The names of its own fetch options, without their values, which may be secrets.
    public var fetchOptions: [String]?
    /// Recent bytes per second; 0 when nothing comes.
    public var bytesPerSecond: Int64?
    /// The path of the file of the same sink that was used again, because the origin said that it is still the same; then nothing was
    /// fetched for the task.
    public var reusedFrom: String?
    /// In how many seconds its bytes are there at the present speed; `null` if that is unknown.
    public var etaSeconds: Int64?

    /// A task's document.
    public init(
        key: String, state: TaskState, urls: [String], path: String, size: Int64?, priority: Int32,
        metadata: JSONValue?,
        bytes: Bytes, contentVersion: Int32, etag: String?, lastModified: String?, effectiveURL: String?,
        digests: [String: String], attempts: Int32, failure: FailureDocument?, createdAt: Timestamp,
        startedAt: Timestamp?, finishedAt: Timestamp?, contentType: String? = nil, deadlineAt: Timestamp? = nil,
        fetchOptions: [String]? = nil, bytesPerSecond: Int64? = nil, reusedFrom: String? = nil,
        etaSeconds: Int64? = nil, retry: RetryDocument? = nil, crc32c: UInt32? = nil
    ) {
        self.key = key
        self.state = state
        self.urls = urls
        self.path = path
        self.size = size
        self.priority = priority
        self.metadata = metadata
        self.bytes = bytes
        self.contentVersion = contentVersion
        self.etag = etag
        self.lastModified = lastModified
        self.effectiveURL = effectiveURL
        self.digests = digests
        self.crc32c = crc32c
        self.attempts = attempts
        self.failure = failure
        self.retry = retry
        self.createdAt = createdAt
        self.startedAt = startedAt
        self.finishedAt = finishedAt
        self.contentType = contentType
        self.deadlineAt = deadlineAt
        self.fetchOptions = fetchOptions
        self.bytesPerSecond = bytesPerSecond
        self.reusedFrom = reusedFrom
        self.etaSeconds = etaSeconds
    }

    /// Writes every field of the contract, absent ones as `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(key, forKey: .key)
        try container.encode(state, forKey: .state)
        try container.encode(urls, forKey: .urls)
        try container.encode(path, forKey: .path)
        try container.encodeIfPresent(size, forKey: .size)
        try container.encode(priority, forKey: .priority)
        try container.encodeIfPresent(metadata, forKey: .metadata)
        try container.encode(bytes, forKey: .bytes)
        try container.encode(contentVersion, forKey: .contentVersion)
        try container.encode(etag, forKey: .etag)
        try container.encode(lastModified, forKey: .lastModified)
        try container.encode(effectiveURL, forKey: .effectiveURL)
        try container.encode(digests, forKey: .digests)
        try container.encodeIfPresent(crc32c, forKey: .crc32c)
        try container.encode(attempts, forKey: .attempts)
        try container.encode(failure, forKey: .failure)
        try container.encodeIfPresent(retry, forKey: .retry)
        try container.encode(createdAt, forKey: .createdAt)
        try container.encode(startedAt, forKey: .startedAt)
        try container.encode(finishedAt, forKey: .finishedAt)
        try container.encodeIfPresent(contentType, forKey: .contentType)
        try container.encodeIfPresent(deadlineAt, forKey: .deadlineAt)
        try container.encodeIfPresent(fetchOptions, forKey: .fetchOptions)
        try container.encodeIfPresent(bytesPerSecond, forKey: .bytesPerSecond)
        try container.encodeIfPresent(reusedFrom, forKey: .reusedFrom)
        try container.encode(etaSeconds, forKey: .etaSeconds)
    }
}

/// The answer to a request that adds tasks.
public struct AddedDocument: Hashable, Sendable, Codable {
    /// Tasks that are new.
    public var added: Int64
    /// Tasks whose key existed, and which did not change.
    public var existing: Int64

    /// An answer.
    public init(added: Int64, existing: Int64) {
        self.added = added
        self.existing = existing
    }
}
