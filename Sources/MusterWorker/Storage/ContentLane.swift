import MusterCore
import Synchronization

/// One computation over a file's content. It gets the pieces in order, from one thread at a time.
final class ContentLane: Sendable {
    private enum Work {
        case checksums(ChunkChecksums)
        case digests(ContentHasher)
    }

    private let work: Mutex<Work>
    private let hasWrongChunk = Atomic<Bool>(false)

    /// A lane that compares chunks with their checksums.
    init(_ checksums: ChunkChecksums) {
        work = Mutex(.checksums(checksums))
    }

    /// A lane that computes digests.
    init(_ hasher: ContentHasher) {
        work = Mutex(.digests(hasher))
    }

    /// Processes the content's next bytes.
    func update(_ bytes: UnsafeRawBufferPointer) {
        work.withLock { work in
            switch work {
            case .checksums(var checksums):
                checksums.update(bytes)
                if !checksums.wrong.isEmpty { hasWrongChunk.store(true, ordering: .relaxed) }
                work = .checksums(checksums)
            case .digests(var hasher):
                hasher.update(bytes)
                work = .digests(hasher)
            }
        }
    }

    /// Whether a wrong chunk was found so far; may be read while another thread updates.
    var isWrong: Bool { hasWrongChunk.load(ordering: .relaxed) }

    /// The chunks that were wrong.
    var wrong: [ByteRange] {
        work.withLock { if case .checksums(let checksums) = $0 { checksums.wrong } else { [] } }
    }

    /// The digests of everything so far.
    var digests: [ContentDigest] {
        work.withLock { if case .digests(let hasher) = $0 { hasher.finish() } else { [] } }
    }
}

/// Compares the chunks of a file with their checksums, as its bytes are read.
struct ChunkChecksums {
    private let chunks: [FinishedChunk]
    /// The index of the chunk that the next byte belongs to.
    private var index = 0
    /// How many bytes of that chunk were processed, and their checksum.
    private var count: Int64 = 0
    private var crc = CRC32C.empty
    /// The chunks that were found wrong.
    private(set) var wrong: [ByteRange] = []

    /// - Parameter chunks: in order, without a gap; none is empty.
    init(_ chunks: [FinishedChunk]) {
        self.chunks = chunks
    }

    /// Processes the content's next bytes; bytes beyond the last chunk are ignored.
    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes[...]
        while !rest.isEmpty, index < chunks.count {
            let chunk = chunks[index]
            let piece = UnsafeRawBufferPointer(
                rebasing: rest.prefix(Int(min(chunk.range.count - count, Int64(rest.count)))))
            crc = CRC32C.extend(crc, piece)
            count += Int64(piece.count)
            rest = rest.dropFirst(piece.count)
            guard count == chunk.range.count else { continue }
            if crc != chunk.crc { wrong.append(chunk.range) }
            (index, count, crc) = (index + 1, 0, CRC32C.empty)
        }
    }
}
