public import MusterCore

/// The state of one of a worker's sinks.
public struct SinkStatus: Hashable, Sendable, Codable {
    /// The sink's name.
    public var name: String
    /// Why nothing of it may be leased to this worker now, `storageFull` or `storage`; `nil` when it has no fault.
    public var parked: FailureKind?
    /// What was seen, in words.
    public var detail: String?
    /// Free bytes, when known.
    public var freeBytes: Int64?

    /// A sink's state.
    public init(name: String, parked: FailureKind? = nil, detail: String? = nil, freeBytes: Int64? = nil) {
        self.name = name
        self.parked = parked
        self.detail = detail
        self.freeBytes = freeBytes
    }
}

/// A live session as `GET /v1/workers` shows it.
public struct WorkerDocument: Hashable, Sendable, Codable {
    /// The worker's name.
    public var name: String
    /// Its session.
    public var session: SessionID
    /// `ready`, or `draining`.
    public var state = "ready"
    /// The version of its program.
    public var version: String
    /// Its sinks and their states.
    public var sinks: [SinkStatus] = []
    /// How many transfers it runs at once.
    public var slots = 1
    /// How many leases it holds.
    public var leases: Int64 = 0
    /// Recent bytes per second.
    public var bytesPerSecond: Int64 = 0
    /// When the session was opened.
    public var startedAt: Timestamp
    /// When the coordinator last heard from it.
    public var lastSeenAt: Timestamp
    /// The same as `lastSeenAt`, if that is longer ago than expected.
    public var silentSince: Timestamp?
    /// Labels that its operator chose.
    public var labels: [String: String] = [:]
    /// The rate limit that the worker applies by itself, in bytes per second, if it has a limit.
    public var bytesPerSecondLimit: Int64?
    /// Whether another live process has the worker's name; `nil` if not.
    public var sharesName: Bool?
    /// The progress of the chunks that it holds; `nil` from an older coordinator, which doesn't send it.
    public var bytes: LeaseProgress?
    /// In how many seconds these chunks are done at the present speed; `null` if that is unknown, or it fetches nothing.
    public var etaSeconds: Int64?

    /// A worker that does nothing yet.
    public init(name: String, session: SessionID, version: String, startedAt: Timestamp, lastSeenAt: Timestamp) {
        self.name = name
        self.session = session
        self.version = version
        self.startedAt = startedAt
        self.lastSeenAt = lastSeenAt
    }

    /// Writes an unknown estimate as an explicit `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(session, forKey: .session)
        try container.encode(state, forKey: .state)
        try container.encode(version, forKey: .version)
        try container.encode(sinks, forKey: .sinks)
        try container.encode(slots, forKey: .slots)
        try container.encode(leases, forKey: .leases)
        try container.encode(bytesPerSecond, forKey: .bytesPerSecond)
        try container.encode(startedAt, forKey: .startedAt)
        try container.encode(lastSeenAt, forKey: .lastSeenAt)
        try container.encodeIfPresent(silentSince, forKey: .silentSince)
        try container.encode(labels, forKey: .labels)
        try container.encodeIfPresent(bytesPerSecondLimit, forKey: .bytesPerSecondLimit)
        try container.encodeIfPresent(sharesName, forKey: .sharesName)
        try container.encodeIfPresent(bytes, forKey: .bytes)
        try container.encode(etaSeconds, forKey: .etaSeconds)
    }
}
