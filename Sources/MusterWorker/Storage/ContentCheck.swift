import MusterAPI
import MusterCore

/// Checks one open file against an order, in one pass: size, every chunk's checksum, the digests.
struct ContentCheck {
    /// What the check found.
    enum Verdict: Hashable, Sendable {
        /// All of it is right; the digests are what was computed.
        case good([ContentDigest])
        /// The size is another one, or these chunks are wrong.
        case corrupt([ByteRange], reason: String)
        /// The chunks are right but the digest isn't.
        case digestMismatch(expected: ContentDigest, found: ContentDigest)
        /// It was told to stop.
        case stopped
    }

    private let order: FinalizeOrder
    private let chunks: [FinishedChunk]
    private let watch: FinalizeWatch

    /// A check of files against `order`; `nil` when its chunks don't tile the file (I3).
    init?(_ order: FinalizeOrder, watch: FinalizeWatch) {
        let chunks = order.chunks.filter { !$0.range.isEmpty }.sorted { $0.range.start < $1.range.start }
        guard order.size >= 0, ByteRange.tile(chunks.map(\.range), size: order.size) else { return nil }
        self.order = order
        self.chunks = chunks
        self.watch = watch
    }

    /// Reads the file and judges it.
    ///
    /// - Throws: `partLost` when it becomes shorter while it is read, or what reading failed with.
    func examine(_ file: Descriptor, size: Int64, name: String) throws(StorageError) -> Verdict {
        guard size == order.size else {
            return .corrupt(
                [ByteRange(first: order.size)],
                reason: "\(name) has \(size) bytes instead of \(order.size)"
            )
        }
        var hasher = ContentHasher(Set(order.expected.map(\.algorithm)).union(order.recorded))
        var wrong: [ByteRange] = []
        var count: Int64 = 0
        let reader = ContentReader(file)
        for chunk in chunks {
            var crc = CRC32C.empty
            let isWhole = try reader.read(chunk.range, of: name, while: watch.mayContinue) { bytes in
                crc = CRC32C.extend(crc, bytes)
                hasher.update(bytes)
                count += Int64(bytes.count)
                watch.verified(count)
            }
            guard isWhole else { return .stopped }
            if crc != chunk.crc { wrong.append(chunk.range) }
        }
        guard wrong.isEmpty else {
            return .corrupt(wrong, reason: "\(name) does not hold what was fetched, in \(wrong.count) chunks")
        }
        let digests = hasher.finish()
        for expected in order.expected {
            guard let found = digests.first(where: { $0.algorithm == expected.algorithm }), found != expected else {
                continue
            }
            return .digestMismatch(expected: expected, found: found)
        }
        return .good(digests)
    }
}
