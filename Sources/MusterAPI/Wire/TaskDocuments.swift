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
    public var priority: Int32 = 0
    /// The caller's own data.
    public var metadata: JSONValue?
    /// Progress.
    public var bytes = Bytes(done: 0, total: nil)
    /// The content version of the bytes, counted from 1 (range contract, row 6).
    public var contentVersion: Int32 = 1
    /// The entity tag that the origin stated.
    public var etag: String?
    /// The Last-Modified that the origin stated.
    public var lastModified: String?
    /// The URL that the content came from, after redirects.
    public var effectiveURL: String?
    /// The computed digests, once the task has succeeded; before that, the expected ones.
    public var digests: [String: String] = [:]
    /// CRC32C of the finished file, if it is known.
    public var crc32c: UInt32?
    /// Failures so far.
    public var attempts: Int32 = 0
    /// Why it failed, or the last failure; `null` when there was none.
    public var failure: TaskFailure?
    /// The next try, if the last one failed and no bytes have come since; absent otherwise.
    public var retry: TaskRetry?
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

    /// A task of which nothing has come yet.
    public init(key: String, state: TaskState, urls: [String], path: String, createdAt: Timestamp) {
        self.key = key
        self.state = state
        self.urls = urls
        self.path = path
        self.createdAt = createdAt
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
