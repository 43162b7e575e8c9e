/// A database identity that can't be mistaken for the identity of something else.
///
/// `Entity` is never instantiated: it only keeps a `TaskID` from being passed where a `ChunkID` is meant.
public struct Identifier<Entity>: RawRepresentable, Hashable, Sendable, Comparable, Codable, CustomStringConvertible {
    /// The `bigint` that the database handed out; always positive.
    public let rawValue: Int64

    /// Wraps a value that came from the database or from the wire.
    public init(rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Shorthand for `init(rawValue:)`.
    public init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Reads a bare JSON number.
    public init(from decoder: any Decoder) throws {
        rawValue = try decoder.singleValueContainer().decode(Int64.self)
    }

    /// Writes a bare JSON number.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }

    /// The decimal digits, as logs and part file names show them.
    public var description: String { String(rawValue) }

    /// Identities are ordered as they were handed out; locks are taken in this order.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Names the entity of `GroupID`.
public enum GroupEntity: Sendable {}
/// Names the entity of `TaskID`.
public enum TaskEntity: Sendable {}
/// Names the entity of `ChunkID`.
public enum ChunkEntity: Sendable {}
/// Names the entity of `SessionID`.
public enum SessionEntity: Sendable {}
/// Names the entity of `LeaseEpoch`.
public enum LeaseEntity: Sendable {}

/// The identity of a group.
public typealias GroupID = Identifier<GroupEntity>
/// The identity of a task.
public typealias TaskID = Identifier<TaskEntity>
/// The identity of a chunk; it stays the same while the chunk moves from ready to leased and back.
public typealias ChunkID = Identifier<ChunkEntity>
/// The identity of one incarnation of a worker process.
public typealias SessionID = Identifier<SessionEntity>
/// The fencing token of a lease: a sequence value, strictly increasing per chunk (I1).
public typealias LeaseEpoch = Identifier<LeaseEntity>
