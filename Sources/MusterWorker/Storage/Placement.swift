import Glibc
import MusterAPI
import MusterCore

/// Carries out finalize orders up to the point where only the directories have to be synced; blocks.
struct Placement {
    let sink: SinkDirectory
    let parts: Directory
    let watch: FinalizeWatch
    /// Whether the parts' data is durable already, but for what is copied here.
    let isSynchronized: Bool
    var walk: SinkWalk
    /// Directories with entries that aren't durable yet.
    private var touched: [Directory] = []

    /// A complete, verified, durable file with a name in `.muster/parts`, ready to be moved.
    struct Candidate {
        /// Its name: the part, or its copy.
        let name: PartName
        /// Which file it is.
        let identity: FileIdentity
        /// The part's own inode: the same, unless this is a copy.
        let part: FileIdentity?
        /// The digests that were computed.
        let digests: [ContentDigest]
    }

    /// Begins; fails if the sink can't be reached.
    init(sink: SinkDirectory, watch: FinalizeWatch, isSynchronized: Bool) throws(StorageError) {
        try sink.check()
        do {
            parts = try sink.partsDirectory()
        } catch {
            throw error.inSink("opening the parts of \(sink.path)")
        }
        self.sink = sink
        self.watch = watch
        self.isSynchronized = isSynchronized
        walk = SinkWalk(sink)
    }

    /// The directories that the last order touched.
    mutating func takeDirectories() -> [Directory] {
        defer { touched = [] }
        return touched
    }

    /// Carries out one order.
    mutating func carryOut(_ order: FinalizeOrder) throws(StorageError) -> FinalizeOutcome {
        touched = []
        guard let check = ContentCheck(order, watch: watch) else {
            return .corrupt(
                [ByteRange(first: order.size)],
                reason: "the chunks do not tile the \(order.size) bytes of the file"
            )
        }
        guard watch.mayContinue() else { return .stopped }
        guard let part = try openPart(order) else { return try adoptWithoutPart(order, check) }
        return order.fenced ? try putCopy(of: part, order, check) : try putPart(part, order, check)
    }

    /// Notes that the entries of `place` have to become durable. All the way from the sink: whoever made one of these
    /// directories may have died before it was.
    mutating func touch(_ place: SinkPlace) {
        touched.append(contentsOf: place.chain)
    }

    /// Notes that what was deleted from the parts shall stay deleted.
    mutating func touchParts() {
        touched.append(parts)
    }

    // MARK: - The part

    /// An open part, with what it was when it was opened.
    struct OpenPart {
        let descriptor: Descriptor
        let status: FileStatus
    }

    private func openPart(_ order: FinalizeOrder) throws(StorageError) -> OpenPart? {
        // A sync of it failed, and the next would succeed although bytes are missing (I4).
        try sink.registry.refuseIfSpoiled(order.part)
        do {
            let (descriptor, status) = try parts.file(order.part.string, creation: .never)
            return OpenPart(descriptor: descriptor, status: status)
        } catch {
            switch error.number {
            case ENOENT: return nil
            case ELOOP, EINVAL, ENXIO:
                throw .partLost(.init("\(order.part.string) is no regular file", errno: error.number))
            default: throw error.inSink("opening \(order.part.string)")
            }
        }
    }

    private mutating func putPart(
        _ part: OpenPart,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome {
        switch try check.examine(part.descriptor, size: part.status.size, name: order.part.string) {
        case .good(let digests):
            if !isSynchronized { try synchronize(part.descriptor, order.part) }
            let identity = part.status.identity
            return try move(
                Candidate(name: order.part, identity: identity, part: identity, digests: digests),
                order,
                check
            )
        case .corrupt(let ranges, let reason): return .corrupt(ranges, reason: reason)
        case .digestMismatch(let expected, let found): return .digestMismatch(expected: expected, found: found)
        case .stopped: return .stopped
        }
    }

    func synchronize(_ file: Descriptor, _ name: PartName) throws(StorageError) {
        do {
            try file.synchronizeData()
        } catch {
            throw error.inSink("syncing \(name.string)")
        }
    }

    /// The outcome for a file that stands in place.
    func finished(_ order: FinalizeOrder, _ digests: [ContentDigest]) -> FinalizeOutcome {
        var byName: [String: String] = [:]
        for digest in digests { byName[digest.algorithm.rawValue] = digest.hexadecimal }
        return .inPlace(Report.Finished(size: order.size, digests: byName))
    }
}
