import MusterAPI
import MusterCore

/// Checks one open file against an order, in one pass: size, every chunk's checksum, the digests.
struct ContentCheck {
    /// What the check found.
    enum Verdict: Hashable, Sendable {
        /// Everything matches; holds the digests that were computed.
        case good([ContentDigest])
        /// The size differs, or these chunks are wrong.
        case corrupt([ByteRange], reason: String)
        /// The chunks are right but the digest isn't.
        case digestMismatch(expected: ContentDigest, found: ContentDigest)
        /// It was told to stop.
        case stopped
    }

    /// Which file is checked.
    enum Subject: Hashable, Sendable {
        /// The part or its copy: digests that were computed as its bytes arrived are valid if the checksums match (ADR 4).
        case part
        /// A file at the task's path: nothing is known about it, and one wrong chunk shows that it isn't the task's.
        case destination
    }

    private let order: FinalizeOrder
    private let chunks: [FinishedChunk]
    private let helpers: BlockingPool?
    private let watch: FinalizeWatch

    /// A check of files against `order`; `nil` when its chunks don't tile the file (I3).
    ///
    /// - Parameter helpers: threads that help to hash large files.
    init?(_ order: FinalizeOrder, helpers: BlockingPool? = nil, watch: FinalizeWatch) {
        let chunks = order.chunks.filter { !$0.range.isEmpty }.sorted { $0.range.start < $1.range.start }
        guard order.size >= 0, ByteRange.tile(chunks.map(\.range), size: order.size) else { return nil }
        self.order = order
        self.chunks = chunks
        self.helpers = helpers
        self.watch = watch
    }

    /// Reads the file and judges it.
    ///
    /// - Throws: `partLost` when it becomes shorter while it is read, or what reading failed with.
    func examine(
        _ file: Descriptor,
        size: Int64,
        name: String,
        as subject: Subject = .part
    ) throws(StorageError) -> Verdict {
        guard size == order.size else {
            return .corrupt(
                [ByteRange(first: order.size)],
                reason: "\(name) has \(size) bytes instead of \(order.size)"
            )
        }
        let known = subject == .part ? order.knownDigests : []
        // The bytes were wrong when they arrived: no need to read them back.
        if let mismatch = mismatch(known) { return mismatch }
        let wanted = Set(order.expected.map(\.algorithm)).union(order.recorded)
        let scan = ContentScan(
            chunks: chunks,
            algorithms: wanted.subtracting(known.map(\.algorithm)),
            endsWithFirstWrong: subject == .destination,
            helpers: helpers,
            watch: watch
        )
        guard let findings = try scan.run(file, size: size, name: name) else { return .stopped }
        guard findings.wrong.isEmpty else {
            let count = findings.wrong.count
            let what =
                subject == .destination
                ? "has other content" : "does not hold what was fetched, in \(count) chunk\(count == 1 ? "" : "s")"
            return .corrupt(findings.wrong, reason: "\(name) \(what)")
        }
        return mismatch(findings.digests) ?? .good(known + findings.digests)
    }

    /// The first expectation that `digests` contradict.
    private func mismatch(_ digests: [ContentDigest]) -> Verdict? {
        for expected in order.expected {
            guard let found = digests.first(where: { $0.algorithm == expected.algorithm }), found != expected else {
                continue
            }
            return .digestMismatch(expected: expected, found: found)
        }
        return nil
    }
}
