/// What a lease asks its holder to do.
public enum LeaseKind: String, Sendable, Codable, CaseIterable {
    /// Fetch a byte range into the part file; a range that is the whole file is also verified and put in place.
    case fetch
    /// Verify a complete part file and put it in place.
    case finalize
    /// Delete what is left of a cancelled task.
    case purge
    /// Ask the group's resolver for a fresh URL of one source (range contract, row 21).
    case resolve
    /// Ask an origin for a byte of a file that it has served once, to see whether it serves the file again (range contract, row 22).
    case trial
}

/// The name under which every write of a lease is made (I1).
public struct LeaseName: Hashable, Sendable, Codable {
    /// The chunk that is leased.
    public let chunk: ChunkID
    /// The lease's fencing token.
    public let epoch: LeaseEpoch

    /// A lease's name.
    public init(chunk: ChunkID, epoch: LeaseEpoch) {
        self.chunk = chunk
        self.epoch = epoch
    }
}

/// How far a chunk is safely on storage, with the checksum of what is there (I4).
public struct DurablePrefix: Hashable, Sendable, Codable {
    /// The first byte of the file that is not durable yet; within the chunk's range.
    public let offset: Int64
    /// CRC32C of the chunk's bytes from its start to `offset`.
    public let crc: UInt32

    /// A durable prefix that ends at `offset`.
    public init(offset: Int64, crc: UInt32) {
        self.offset = offset
        self.crc = crc
    }
}

/// A chunk that is wholly on storage: what the finalizer checks.
public struct FinishedChunk: Hashable, Sendable, Codable {
    /// The chunk's bytes.
    public let range: ByteRange
    /// CRC32C of all of them.
    public let crc: UInt32

    /// A finished chunk.
    public init(range: ByteRange, crc: UInt32) {
        self.range = range
        self.crc = crc
    }
}
