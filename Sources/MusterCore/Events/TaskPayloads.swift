/// A file stands at its path, verified (I8).
public struct TaskSuccess: Hashable, Sendable, Decodable {
    /// The name of the group.
    public let group: String
    /// The key of the task.
    public let key: String
    /// The path of the file below the sink.
    public let path: String
    /// Its size in bytes.
    public let size: Int64
    /// Its digests, by algorithm, in hexadecimal.
    public let digests: [String: String]
    /// The content version of the file, from 1.
    public let contentVersion: Int32
    /// The caller's data; `null` when there is none.
    public let metadata: JSONValue
    /// The path of the file that was used again, if nothing was fetched.
    public let reusedFrom: String?

    private enum CodingKeys: CodingKey, CaseIterable {
        case group, key, path, size, digests, contentVersion, metadata, reusedFrom
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        group = try facts.decode(String.self, forKey: .group)
        key = try facts.decode(String.self, forKey: .key)
        path = try facts.decode(String.self, forKey: .path)
        size = try facts.decode(Int64.self, forKey: .size)
        digests = try facts.decode([String: String].self, forKey: .digests)
        contentVersion = try facts.decode(Int32.self, forKey: .contentVersion)
        metadata = try facts.decode(JSONValue.self, forKey: .metadata)
        reusedFrom = try facts.decodeIfPresent(String.self, forKey: .reusedFrom)
    }
}

/// A task was given up.
public struct TaskGivenUp: Hashable, Sendable, Decodable {
    /// The name of the group.
    public let group: String
    /// The key of the task.
    public let key: String
    /// The path that its file was to have below the sink.
    public let path: String
    /// Why it was given up.
    public let failure: EventFailure

    private enum CodingKeys: CodingKey, CaseIterable {
        case group, key, path, failure
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        group = try facts.decode(String.self, forKey: .group)
        key = try facts.decode(String.self, forKey: .key)
        path = try facts.decode(String.self, forKey: .path)
        failure = try facts.decode(EventFailure.self, forKey: .failure)
    }
}

/// Why a task was given up.
public struct EventFailure: Hashable, Sendable, Decodable {
    /// The kind, from a closed list.
    public let kind: FailureKind
    /// What was seen, in words.
    public let detail: String
    /// The status of the answer, if there was one.
    public let status: Int?
    /// The origin's own identifier of the request.
    public let requestID: String?
    /// The URL of the source, as it was given for the task.
    public let source: String?

    private enum CodingKeys: CodingKey, CaseIterable {
        case kind, detail, status, requestID, source
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        kind = try facts.decode(FailureKind.self, forKey: .kind)
        detail = try facts.decode(String.self, forKey: .detail)
        status = try facts.decodeIfPresent(Int.self, forKey: .status)
        requestID = try facts.decodeIfPresent(String.self, forKey: .requestID)
        source = try facts.decodeIfPresent(String.self, forKey: .source)
    }
}

/// A task was cancelled.
public struct TaskCancel: Hashable, Sendable, Decodable {
    /// The name of the group.
    public let group: String
    /// The key of the task.
    public let key: String
    /// The path that its file was to have below the sink.
    public let path: String

    private enum CodingKeys: CodingKey, CaseIterable {
        case group, key, path
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        group = try facts.decode(String.self, forKey: .group)
        key = try facts.decode(String.self, forKey: .key)
        path = try facts.decode(String.self, forKey: .path)
    }
}

/// A task starts over with its next content version.
public struct TaskRestart: Hashable, Sendable, Decodable {
    /// The name of the group.
    public let group: String
    /// The key of the task.
    public let key: String
    /// The path that its file is to have below the sink.
    public let path: String
    /// The version that it begins with.
    public let contentVersion: Int32
    /// Why the task starts over.
    public let reason: RestartReason

    private enum CodingKeys: CodingKey, CaseIterable {
        case group, key, path, contentVersion, reason
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        group = try facts.decode(String.self, forKey: .group)
        key = try facts.decode(String.self, forKey: .key)
        path = try facts.decode(String.self, forKey: .path)
        contentVersion = try facts.decode(Int32.self, forKey: .contentVersion)
        reason = try facts.decode(RestartReason.self, forKey: .reason)
    }
}

/// Why a task starts over.
public struct RestartReason: Hashable, Sendable, Decodable {
    /// The kind, from a closed list.
    public let kind: FailureKind
    /// What was seen, in words.
    public let detail: String

    private enum CodingKeys: CodingKey, CaseIterable {
        case kind, detail
    }

    /// Reads the facts; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let facts = try decoder.strictContainer(keyedBy: CodingKeys.self)
        kind = try facts.decode(FailureKind.self, forKey: .kind)
        detail = try facts.decode(String.self, forKey: .detail)
    }
}
