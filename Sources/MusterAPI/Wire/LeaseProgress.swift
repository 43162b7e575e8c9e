/// How far the chunks are that a worker has in hand, or that come from an origin now.
public struct LeaseProgress: Hashable, Sendable, Codable {
    /// Bytes of them that are durable.
    public var done: Int64
    /// The sum of their lengths, as far as these are known.
    public var total: Int64
    /// Leases whose chunk's length is not known yet: the origin hasn't answered, or doesn't say.
    public var unknownLeases: Int64

    /// Progress of leases.
    public init(done: Int64, total: Int64, unknownLeases: Int64) {
        self.done = done
        self.total = total
        self.unknownLeases = unknownLeases
    }
}
