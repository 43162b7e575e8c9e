/// The progress of the chunks that a worker holds, or that are being fetched from an origin.
public struct LeaseProgress: Hashable, Sendable, Codable {
    /// Bytes of these chunks that are durable.
    public var done: Int64
    /// The sum of their lengths, as far as they are known.
    public var total: Int64
    /// Leases whose chunk's length is unknown: the origin hasn't answered, or doesn't state it.
    public var unknownLeases: Int64

    /// Progress of leases.
    public init(done: Int64, total: Int64, unknownLeases: Int64) {
        self.done = done
        self.total = total
        self.unknownLeases = unknownLeases
    }
}
