/// A half-open range of bytes `[start, end)` of one representation.
public struct ByteRange: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The first byte that belongs to the range.
    public let start: Int64
    /// The first byte after it.
    public let end: Int64

    /// A range; `nil` when it would start below zero or end before it starts.
    public init?(start: Int64, end: Int64) {
        guard start >= 0, end >= start else { return nil }
        self.start = start
        self.end = end
    }

    /// The range of the first `length` bytes; a negative length counts as zero.
    public init(first length: Int64) {
        start = 0
        end = max(0, length)
    }

    /// Reads `{"start": …, "end": …}` and refuses an invalid range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let start = try container.decode(Int64.self, forKey: .start)
        let end = try container.decode(Int64.self, forKey: .end)
        guard let range = ByteRange(start: start, end: end) else {
            throw DecodingError.dataCorruptedError(forKey: .end, in: container, debugDescription: "end is before start")
        }
        self = range
    }

    private enum CodingKeys: String, CodingKey {
        case start, end
    }

    /// How many bytes the range has.
    public var count: Int64 { end - start }
    /// Whether the range has no bytes.
    public var isEmpty: Bool { start == end }

    /// `[start, end)`, as logs show it.
    public var description: String { "[\(start), \(end))" }

    /// Whether `ranges`, in any order, tile `[0, size)` with no gap and no overlap (I3).
    public static func tile(_ ranges: [ByteRange], size: Int64) -> Bool {
        var next: Int64 = 0
        for range in ranges.sorted(by: { ($0.start, $0.end) < ($1.start, $1.end) }) {
            guard range.start == next else { return false }
            next = range.end
        }
        return next == size
    }
}
