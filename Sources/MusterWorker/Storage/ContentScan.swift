import MusterCore
import MusterSystem

/// Reads a whole file once, compares its chunks with their checksums, and computes digests.
struct ContentScan {
    /// Files of at least this many bytes are processed on several cores, if there are several things to compute.
    static let sharedBytes: Int64 = 16 << 20

    /// What was computed.
    struct Findings: Hashable {
        /// The chunks whose checksums are wrong; at least one of them, but not always all, if the scan ends with the first.
        let wrong: [ByteRange]
        /// The digests, if nothing is wrong with the chunks.
        let digests: [ContentDigest]
    }

    /// Chunks that tile the file, in order; none if only digests are wanted.
    var chunks: [FinishedChunk] = []
    /// The digests to compute.
    var algorithms: Set<DigestAlgorithm>
    /// Whether to end with the first wrong chunk, when the only question is whether it is the task's file.
    var endsWithFirstWrong = false
    /// Threads that help with large files.
    var helpers: BlockingPool?
    /// Stops the scan and receives its progress.
    var watch: FinalizeWatch

    /// Reads `size` bytes of `file`, which is called `name` in errors.
    ///
    /// - Returns: `nil` if it was told to stop.
    /// - Throws: `partLost` when the file is shorter, or what reading failed with.
    func run(_ file: Descriptor, size: Int64, name: String) throws(StorageError) -> Findings? {
        let checksums = chunks.isEmpty ? nil : ContentLane(ChunkChecksums(chunks))
        let isWrong = { endsWithFirstWrong && checksums?.isWrong == true }
        let isShared = size >= Self.sharedBytes && algorithms.count + (checksums == nil ? 0 : 1) > 1
        let lanes: [ContentLane]
        if let helpers, isShared, let bell = try? EventDescriptor(.semaphore) {
            lanes = algorithms.map { ContentLane(ContentHasher([$0])) } + [checksums].compactMap { $0 }
            let pipeline = ContentPipeline(lanes: lanes, pool: helpers, bell: bell)
            guard try pipeline.run(file, size: size, name: name, watch: watch, until: isWrong) else { return nil }
        } else {
            lanes = [checksums].compactMap { $0 } + (algorithms.isEmpty ? [] : [ContentLane(ContentHasher(algorithms))])
            guard try readAlone(file, size: size, name: name, lanes, until: isWrong) else { return nil }
        }
        let wrong = checksums?.wrong ?? []
        return Findings(wrong: wrong, digests: wrong.isEmpty ? lanes.flatMap(\.digests) : [])
    }

    private func readAlone(
        _ file: Descriptor,
        size: Int64,
        name: String,
        _ lanes: [ContentLane],
        until isOver: () -> Bool
    ) throws(StorageError) -> Bool {
        CoreBudget.shared.enter()
        defer { CoreBudget.shared.leave() }
        var count: Int64 = 0
        let isWhole = try ContentReader(file).read(
            ByteRange(first: size),
            of: name,
            while: { !isOver() && watch.mayContinue() }
        ) { bytes in
            for lane in lanes { lane.update(bytes) }
            count += Int64(bytes.count)
            watch.verified(count)
        }
        return isWhole || isOver()
    }
}
