import Glibc
import MusterAPI
import MusterCore

/// Carries out finalize orders up to the point where only the directories have to be synced; blocks.
struct Placement {
    let sink: SinkDirectory
    let parts: Directory
    /// The session's own directory, out of which files are put in place.
    let own: Directory
    let watch: FinalizeWatch
    /// Whose threads hash large files along.
    let helpers: BlockingPool?
    /// Whether the parts' data is durable already, but for what is copied here.
    let isSynchronized: Bool
    /// What files of which others are made were before that.
    let standing: [DestinationPath: FileStatus]
    /// How many files have had a sync of their own.
    private(set) var ownSyncs = 0
    var walk: SinkWalk
    /// Directories with entries that aren't durable yet.
    private var touched: [Directory] = []
    /// What was taken from the parts into the session's own directory, and is there still.
    var staged: PartName?
    /// The part in hand that never left the session's own directory, and its name there.
    var fresh: (part: PartFile, name: String)?

    /// A complete, verified, durable file among the parts, ready to be moved.
    struct Candidate {
        /// Its name: the part, or its copy.
        let name: CandidateName
        /// Which file it is.
        let identity: FileIdentity
        /// The part's own inode: the same, unless this is a copy.
        let part: FileIdentity?
        /// The digests that were computed.
        let digests: [ContentDigest]

        /// Whether it is the part itself.
        var isPart: Bool { identity == part }
    }

    /// A path that the file may get, and where that is.
    struct Spot {
        let path: DestinationPath
        let place: SinkPlace
    }

    /// Begins; fails if the sink can't be reached.
    init(
        sink: SinkDirectory,
        watch: FinalizeWatch,
        helpers: BlockingPool? = nil,
        isSynchronized: Bool,
        standing: [DestinationPath: FileStatus] = [:]
    ) throws(StorageError) {
        try sink.check()
        do {
            parts = try sink.partsDirectory()
        } catch {
            throw error.inSink("opening the parts of \(sink.path)")
        }
        own = sink.own
        self.sink = sink
        self.watch = watch
        self.helpers = helpers
        self.isSynchronized = isSynchronized
        self.standing = standing
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
        // What was not put in place is left for the next try.
        defer { unstage() }
        guard let check = ContentCheck(order, helpers: helpers, watch: watch) else {
            try discard(order, identity: nil)
            return .corrupt(
                [ByteRange(first: order.size)],
                reason: "the chunks do not tile the \(order.size) bytes of the file"
            )
        }
        guard watch.mayContinue() else { return .stopped }
        try take(order)
        if let held = order.held { return try putHeld(held, order, check) }
        guard let part = try openPart(order) else { return try adoptWithoutPart(order, check) }
        let outcome = order.fenced ? try putCopy(of: part, order, check) : try putPart(part, order, check)
        switch outcome {
        case .inPlace, .stopped: break
        case .corrupt, .digestMismatch, .overtaken: try discard(order, identity: part.status.identity)
        }
        return outcome
    }

    /// Notes that the entries of `place` have to become durable. All the way from the sink: another process that made one of these
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

    /// A part that never left the session's own directory is shared by nobody as long as the order is carried out.
    private mutating func take(_ order: FinalizeOrder) throws(StorageError) {
        // A sync of it failed, and the next would succeed although bytes are missing (I4).
        if let part = try sink.registry.trusted(order.part), let name = part.take() { fresh = (part, name) }
    }

    private func openPart(_ order: FinalizeOrder) throws(StorageError) -> OpenPart? {
        do {
            if let fresh {
                return OpenPart(descriptor: fresh.part.descriptor, status: try fresh.part.descriptor.status())
            }
            let (descriptor, status) = try parts.file(order.part.string, creation: .never)
            return OpenPart(descriptor: descriptor, status: status)
        } catch {
            switch error.number {
            case ENOENT: return try reclaim(order)
            case ELOOP, EINVAL, ENXIO:
                throw .partLost(.init("\(order.part.string) is no regular file", errno: error.number))
            default: throw error.inSink("opening \(order.part.string)")
            }
        }
    }

    /// A part that could not be handed back when an earlier try ended.
    private func reclaim(_ order: FinalizeOrder) throws(StorageError) -> OpenPart? {
        do {
            guard try own.status(of: order.part.string) != nil else { return nil }
            try own.handBack(order.part.string, to: parts)
            let (descriptor, status) = try parts.file(order.part.string, creation: .never)
            return OpenPart(descriptor: descriptor, status: status)
        } catch {
            throw error.inSink("opening \(order.part.string)")
        }
    }

    private mutating func putPart(
        _ part: OpenPart,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome {
        switch try check.examine(part.descriptor, size: part.status.size, name: order.part.string) {
        case .good(let digests):
            try settleData(part, order, isSynchronized: isSynchronized)
            mark(part, order)
            let identity = part.status.identity
            let name = fresh.map { CandidateName.own($0.name) } ?? .part(order.part)
            return try move(
                Candidate(name: name, identity: identity, part: identity, digests: digests),
                order,
                check
            )
        case .corrupt(let ranges, let reason): return .corrupt(ranges, reason: reason)
        case .digestMismatch(let expected, let found): return .digestMismatch(expected: expected, found: found)
        case .stopped: return .stopped
        }
    }

    /// Gives the file its modification time and makes it durable, unless it is.
    mutating func settleData(_ file: OpenPart, _ order: FinalizeOrder, isSynchronized: Bool) throws(StorageError) {
        var isDurable = isSynchronized
        do {
            if let time = order.modificationTime, file.status.modified != time {
                try file.descriptor.setModificationTime(time)
                isDurable = false
            }
        } catch {
            // The file may be of another user on another host. The caller asked for the time, so it is said.
            guard [EPERM, EACCES].contains(error.number) else { throw error.inSink("dating \(order.part.string)") }
            throw .destinationUnusable(.init("dating \(order.part.string)", errno: error.number))
        }
        if isDurable { return }
        ownSyncs += 1
        do {
            // A time is no data: `fdatasync` may leave it out.
            if order.modificationTime == nil {
                try file.descriptor.synchronizeData()
            } else {
                try file.descriptor.synchronize()
            }
        } catch {
            throw error.inSink("syncing \(order.part.string)")
        }
    }

    /// Sets the modification times of parts before everything is synced at once, so that none needs a sync of its own. What
    /// can't be done now is done, or said, when the order's turn comes.
    mutating func setTimes(_ orders: [FinalizeOrder]) {
        for order in orders where !order.fenced {
            defer { unstage() }
            guard let time = order.modificationTime else { continue }
            try? take(order)
            try? openPart(order)?.descriptor.setModificationTime(time)
        }
    }

    /// Deletes the part and what older versions left, once their content was found to be wrong: nothing of it is of
    /// use to anyone (range contract, row 29).
    ///
    /// - Parameter identity: the file that was looked at; another one by that name by now is left alone.
    private mutating func discard(_ order: FinalizeOrder, identity: FileIdentity?) throws(StorageError) {
        // A lease that is over may not delete what its successor is writing.
        guard watch.mayContinue() else { return }
        do {
            if let identity, let now = try parts.status(of: order.part.string), now.identity != identity { return }
            sink.registry.spoil(order.part, .partLost(.init("\(order.part.string) held wrong content")))
            if try removeFiles(of: order) > 0 { touchParts() }
        } catch {
            throw error.inSink("deleting what is left of task \(order.task)")
        }
    }

    /// Removes the task's part and all that older versions left; returns how many files there were.
    func removeFiles(of order: FinalizeOrder) throws(SystemError) -> Int {
        try sink.remove(in: parts) { $0.task == order.task && $0.version <= order.version }
    }

    /// The outcome for a file that stands in place.
    func finished(_ order: FinalizeOrder, _ digests: [ContentDigest], at spot: Spot) -> FinalizeOutcome {
        var byName: [String: String] = [:]
        for digest in digests { byName[digest.algorithm.rawValue] = digest.hexadecimal }
        var finished = Report.Finished(size: order.size, digests: byName)
        if spot.path != order.path { finished.path = spot.path.string }
        return .inPlace(finished)
    }
}
