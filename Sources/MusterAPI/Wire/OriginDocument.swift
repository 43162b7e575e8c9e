public import MusterCore

/// An origin as `GET /v1/origins` shows it.
public struct OriginDocument: Hashable, Sendable, Codable {
    /// Scheme, host and port.
    public var key: String
    /// The most connections that the fleet may have to it: its own cap, or the coordinator's default.
    public var maxConnections: Int32
    /// How many of these are allowed now: fewer after the origin refused, one more with every ten seconds since (range contract, row 24).
    public var allowedConnections: Int32
    /// The connections that workers may use to it now.
    public var connections: Int64
    /// Nothing is leased on it before this moment.
    public var pausedUntil: Timestamp?
    /// When it last refused because there was too much at once.
    public var limitedAt: Timestamp?
    /// Bytes per second lately.
    public var bytesPerSecond: Int64
    /// How many bytes per second the whole fleet may take from it; `nil` when as many as come.
    public var bytesPerSecondLimit: Int64?
    /// How far the chunks are that come from it now; `nil` from a coordinator that doesn't tell yet.
    public var bytes: LeaseProgress?
    /// In how many seconds these are there as things go; `null` when that can't be told, or nothing comes from it.
    public var etaSeconds: Int64?
    /// For how long it has served nothing and refused connections, why fewer connections are allowed now than the most, or when it last refused, in a
    /// sentence; absent if it never did.
    public var note: String?

    /// An origin's document.
    public init(
        key: String, maxConnections: Int32, allowedConnections: Int32, connections: Int64, pausedUntil: Timestamp?,
        limitedAt: Timestamp?, bytesPerSecond: Int64, bytesPerSecondLimit: Int64? = nil,
        bytes: LeaseProgress? = nil, etaSeconds: Int64? = nil, note: String? = nil
    ) {
        self.key = key
        self.maxConnections = maxConnections
        self.allowedConnections = allowedConnections
        self.connections = connections
        self.pausedUntil = pausedUntil
        self.limitedAt = limitedAt
        self.bytesPerSecond = bytesPerSecond
        self.bytesPerSecondLimit = bytesPerSecondLimit
        self.bytes = bytes
        self.etaSeconds = etaSeconds
        self.note = note
    }

    /// Writes every field, absent ones as `null` but for those that are not always told.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(key, forKey: .key)
        try container.encode(maxConnections, forKey: .maxConnections)
        try container.encode(allowedConnections, forKey: .allowedConnections)
        try container.encode(connections, forKey: .connections)
        try container.encode(pausedUntil, forKey: .pausedUntil)
        try container.encode(limitedAt, forKey: .limitedAt)
        try container.encode(bytesPerSecond, forKey: .bytesPerSecond)
        try container.encode(bytesPerSecondLimit, forKey: .bytesPerSecondLimit)
        try container.encodeIfPresent(bytes, forKey: .bytes)
        try container.encode(etaSeconds, forKey: .etaSeconds)
        try container.encodeIfPresent(note, forKey: .note)
    }
}

/// The body of `PATCH /v1/origins/{key}`; what is absent stays, `null` takes a setting away.
public struct OriginPatch: Hashable, Sendable, Codable {
    /// What is to become of one setting.
    public typealias Change = PatchField

    /// The cap on leases; setting it also forgets what was learned.
    public var maxConnections: Change<Int32>
    /// How many bytes per second the whole fleet may take from the origin.
    public var bytesPerSecond: Change<Int64>
    /// Until when nothing is leased on the origin.
    public var pausedUntil: Change<Timestamp>
    /// For how long nothing is leased on it, such as `30m`, in place of `pausedUntil`: counted by the database's clock, so that
    /// nobody else's matters (I11).
    public var pauseFor: String?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case maxConnections, bytesPerSecond, pausedUntil, pauseFor
    }

    /// A change of an origin.
    public init(
        maxConnections: Change<Int32> = .keep, bytesPerSecond: Change<Int64> = .keep,
        pausedUntil: Change<Timestamp> = .keep, pauseFor: String? = nil
    ) {
        self.maxConnections = maxConnections
        self.bytesPerSecond = bytesPerSecond
        self.pausedUntil = pausedUntil
        self.pauseFor = pauseFor
    }

    /// Reads a change; refuses unknown fields and impossible caps.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        maxConnections = try container.patch(integer: Int32.self, forKey: .maxConnections)
        if let cap = maxConnections.value, !(1...100_000).contains(cap) {
            throw DecodingError.dataCorruptedError(
                forKey: .maxConnections, in: container, debugDescription: "must be within 1...100000")
        }
        bytesPerSecond = try container.patch(integer: Int64.self, forKey: .bytesPerSecond)
        if let rate = bytesPerSecond.value, !Limits.bytesPerSecond.contains(rate) {
            throw DecodingError.dataCorruptedError(
                forKey: .bytesPerSecond, in: container,
                debugDescription:
                    "must be within \(Limits.bytesPerSecond.lowerBound)...\(Limits.bytesPerSecond.upperBound)")
        }
        pausedUntil = try container.patch(Timestamp.self, forKey: .pausedUntil)
        pauseFor = try container.decodeIfPresent(String.self, forKey: .pauseFor)
        guard pauseFor == nil || pausedUntil == .keep else {
            throw DecodingError.dataCorruptedError(
                forKey: .pauseFor, in: container, debugDescription: "stands in place of pausedUntil, not beside it")
        }
        guard pauseFor == nil || pause != nil else {
            throw DecodingError.dataCorruptedError(
                forKey: .pauseFor, in: container, debugDescription: "must be a duration such as 30m, at most 365d")
        }
    }

    /// How long the origin is to be left alone; `nil` when nothing of that kind, or nothing possible, was said.
    public var pause: Duration? {
        guard let pauseFor, let duration = DurationNotation.parse(pauseFor), duration > .zero,
            duration <= Limits.deadline
        else { return nil }
        return duration
    }

    /// Writes what changes.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(maxConnections, forKey: .maxConnections)
        try container.encode(bytesPerSecond, forKey: .bytesPerSecond)
        try container.encode(pausedUntil, forKey: .pausedUntil)
        try container.encodeIfPresent(pauseFor, forKey: .pauseFor)
    }
}
