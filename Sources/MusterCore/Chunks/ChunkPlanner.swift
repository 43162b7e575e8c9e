/// Cuts a file whose size is known into chunks.
///
/// Pure: the same input always gives the same plan, so that a plan can be made again after a crash.
public struct ChunkPlanner: Sendable {
    /// The range that chunk sizes stay in.
    public let bounds: ClosedRange<ByteCount>
    /// How long a chunk should last at the observed speed, at most.
    public let targetDuration: Duration

    /// The most chunks that a plan has, whatever the file's size: what one finalize lease can carry.
    public static let maximumChunks: Int64 = 16_384

    /// A planner; `bounds` are what `Limits.chunk` allows unless a test narrows them.
    public init(bounds: ClosedRange<ByteCount> = Limits.chunk, targetDuration: Duration = .seconds(30)) {
        self.bounds = bounds
        self.targetDuration = targetDuration
    }

    /// The size of the first chunk, leased before the file's size is known.
    public var firstChunk: Int64 { bounds.lowerBound.bytes }

    /// The chunk size for a file.
    ///
    /// - Parameters:
    ///   - size: the file's size in bytes.
    ///   - parallelism: how many transfers can share the file: slots of the workers that reach its sink.
    ///   - bytesPerSecond: what one connection to the origin was seen to carry, when known.
    /// - Returns: a multiple of 1 MiB within the bounds; more than the upper bound only for a file so large that the
    ///   plan would have more than `maximumChunks` chunks.
    public func chunkSize(size: Int64, parallelism: Int, bytesPerSecond: Int64? = nil) -> Int64 {
        let mebibyte: Int64 = 1 << 20
        var wanted = size / Int64(max(1, parallelism))
        if let bytesPerSecond {
            let carried = Double(bytesPerSecond) * targetDuration.seconds
            // Beyond the upper bound the number doesn't matter, and it might not fit.
            wanted = min(wanted, Int64(min(carried, Double(bounds.upperBound.bytes))))
        }
        wanted = min(max(wanted, bounds.lowerBound.bytes), bounds.upperBound.bytes)
        // One chunk was leased before the size was known; the others share the rest.
        let others = Self.maximumChunks - 1
        wanted = max(wanted, size / others + (size % others == 0 ? 0 : 1))
        return (wanted + mebibyte - 1) / mebibyte * mebibyte
    }

    /// The chunks of `[from, size)`, in order, all of `chunkSize` but the last (I3: they tile what is given).
    public static func cut(from start: Int64, size: Int64, chunkSize: Int64) -> [ByteRange] {
        var ranges: [ByteRange] = []
        var next = start
        while next < size {
            let end = next + min(size - next, max(1, chunkSize))
            if let range = ByteRange(start: next, end: end) { ranges.append(range) }
            next = end
        }
        return ranges
    }
}
