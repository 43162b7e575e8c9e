public import MusterCore

/// An origin as `GET /v1/origins` shows it.
public struct OriginDocument: Hashable, Sendable, Codable {
    /// Scheme, host and port.
    public var key: String
    /// The most connections that the fleet may have to it: its own cap, or the coordinator's default.
    public var maxConnections: Int32
    /// How many connections are allowed now: fewer after the origin refused, and one more for every ten seconds since (range contract, row 24).
    public var allowedConnections: Int32
    /// The connections to it that workers may use now.
    public var connections: Int64
    /// The time before which nothing is leased on it.
    public var pausedUntil: Timestamp?
    /// When it last refused because of too many requests at once.
    public var limitedAt: Timestamp?
    /// Recent bytes per second.
    public var bytesPerSecond: Int64 = 0
    /// How many bytes per second the whole fleet may take from it; `nil` for no limit.
    public var bytesPerSecondLimit: Int64?
    /// The progress of the chunks that are being fetched from it; `nil` from an older coordinator, which doesn't send it.
    public var bytes: LeaseProgress?
    /// In how many seconds these chunks are done at the present speed; `null` if that is unknown, or nothing is being fetched.
    public var etaSeconds: Int64?
    /// A sentence: how long it has served nothing and refused connections, why fewer connections are allowed now than the maximum, or when
    /// it last refused; absent if it never did.
    public var note: String?

    /// An origin that nothing has come from lately.
    public init(key: String, maxConnections: Int32, allowedConnections: Int32, connections: Int64) {
        self.key = key
        self.maxConnections = maxConnections
        self.allowedConnections = allowedConnections
        self.connections = connections
    }

    /// Writes every field, absent ones as `null`, except for `bytes` and `note`, which are left out.
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

/// The body of `PATCH /v1/origins/{key}`; absent fields stay, `null` removes a setting.
public struct OriginPatch: Hashable, Sendable, Codable {
    /// The cap on connections; setting it also discards what was learned.
    public var maxConnections: Change<Int32>
    /// How many bytes per second the whole fleet may take from the origin.
    public var bytesPerSecond: Change<Int64>
    /// The time until which nothing is leased on the origin.
    public var pausedUntil: Change<Timestamp>
    /// How long nothing is leased on it, such as `30m`; it counts where `pausedUntil` is given too. It is counted by the database's clock, so that no other
    /// clock matters (I11).
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
        guard pauseFor == nil || pause != nil else {
            throw DecodingError.dataCorruptedError(
                forKey: .pauseFor, in: container, debugDescription: "must be a duration such as 30m, at most 365d")
        }
    }

    /// How long the origin is to be paused; `nil` if `pauseFor` is absent or impossible.
    public var pause: Duration? {
        guard let pauseFor, let duration = DurationNotation.parse(pauseFor), duration > .zero,
            duration <= Limits.deadline
        else { return nil }
        return duration
    }

    /// Writes only what changes.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(maxConnections, forKey: .maxConnections)
        try container.encode(bytesPerSecond, forKey: .bytesPerSecond)
        try container.encode(pausedUntil, forKey: .pausedUntil)
        try container.encodeIfPresent(pauseFor, forKey: .pauseFor)
    }
}
