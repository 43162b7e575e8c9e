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
    /// Threads that help to hash large files.
    let helpers: BlockingPool?
    /// Whether the parts' data is durable already, except for what is copied here.
    let isSynchronized: Bool
    /// The status of the orders' `held` files before everything was synced.
    let standing: [DestinationPath: FileStatus]
    /// How many files got a sync of their own.
    private(set) var ownSyncs = 0
    var walk: SinkWalk
    /// Directories with entries that aren't durable yet.
    private var touched: [Directory] = []
    /// The part that was moved from the parts into the session's own directory and is still there.
    var staged: PartName?
    /// The part of the current order, if it never left the session's own directory, and its name there.
    var fresh: (part: PartFile, name: String)?

    /// A complete, verified, durable file, ready to be moved.
    struct Candidate {
        /// Its name: the part, or its copy.
        let name: CandidateName
        /// Which file it is.
        let identity: FileIdentity
        /// The part's own inode: equal to `identity` unless this is a copy.
        let part: FileIdentity?
        /// The digests that were computed.
        let digests: [ContentDigest]

        /// Whether it is the part itself.
        var isPart: Bool { identity == part }
    }

    /// A path that the file may get, and its opened directory.
    struct Spot {
        let path: DestinationPath
        let place: SinkPlace
    }

    /// Begins; throws if the sink can't be reached.
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
        // A part that was not put in place is left for the next try.
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

    /// Notes that the entries of `place` have to become durable, all the way from the sink: another process may have made
    /// one of these directories and died before it was durable.
    mutating func touch(_ place: SinkPlace) {
        touched.append(contentsOf: place.chain)
    }

    /// Notes that deletions from the session's own directory have to become durable.
    mutating func touchOwn() {
        touched.append(own)
    }

    /// Notes that deletions from the parts have to become durable.
    mutating func touchParts() {
        touched.append(parts)
    }

    // MARK: - The part

    /// An open part, with its status when it was opened.
    struct OpenPart {
        let descriptor: Descriptor
        let status: FileStatus
    }

    /// Reserves a part that never left the session's own directory, so that no job shares it while the order is carried out.
    private mutating func take(_ order: FinalizeOrder) throws(StorageError) {
        // Throws if a sync of the part failed: the next sync would succeed although bytes are missing (I4).
        if let part = try sink.registry.trusted(order.part), let name = part.take() { fresh = (part, name) }
    }

    private func openPart(_ order: FinalizeOrder) throws(StorageError) -> OpenPart? {
        do {
            if let fresh {
                return OpenPart(descriptor: fresh.part.descriptor, status: try fresh.part.descriptor.status())
            }
            return try openAmongParts(order)
        } catch {
            switch error.number {
            case ENOENT: return try reclaim(order)
            case ELOOP, EINVAL, ENXIO:
                throw .partLost(.init("\(order.part.string) is no regular file", errno: error.number))
            default: throw error.inSink("opening \(order.part.string)")
            }
        }
    }

    private func openAmongParts(_ order: FinalizeOrder) throws(SystemError) -> OpenPart {
        let (descriptor, status) = try parts.file(order.part.string, creation: .never)
        return OpenPart(descriptor: descriptor, status: status)
    }

    /// Opens a part that could not be handed back when an earlier try ended; `nil` if there is none.
    private func reclaim(_ order: FinalizeOrder) throws(StorageError) -> OpenPart? {
        do {
            // It was staged before a lease was lost: afterwards, files are copied.
            let staged = order.part.string
            guard try own.status(of: staged) != nil else { return nil }
            try own.handBack(staged, to: parts)
            return try openAmongParts(order)
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
            try settle(part, order, isSynchronized: isSynchronized)
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

    /// Gives the file its modification time and its mark, and makes them durable with its content. A mark that a loss of power takes away
    /// lets the file stay for ever if the task is cancelled before it is known to be in place (I13).
    mutating func settle(
        _ file: OpenPart, _ order: FinalizeOrder, isSynchronized: Bool, isAdopted: Bool = false
    ) throws(StorageError) {
        if isSynchronized, isDated(file, order) {
            // A file system without attributes keeps no mark: there is nothing to make durable.
            guard !isMarked(file, order, isAdopted: isAdopted), mark(file, order, isAdopted: isAdopted) else { return }
        } else {
            try date(file, order)
            mark(file, order, isAdopted: isAdopted)
        }
        try synchronize(file, order)
    }

    /// Gives the file its modification time, and makes it durable unless it already is.
    mutating func settleData(_ file: OpenPart, _ order: FinalizeOrder, isSynchronized: Bool) throws(StorageError) {
        if isSynchronized, isDated(file, order) { return }
        try date(file, order)
        try synchronize(file, order)
    }

    private mutating func synchronize(_ file: OpenPart, _ order: FinalizeOrder) throws(StorageError) {
        ownSyncs += 1
        do {
            // Times and marks are metadata: `fdatasync` may leave them out.
            if order.modificationTime == nil, order.mark == nil {
                try file.descriptor.synchronizeData()
            } else {
                try file.descriptor.synchronize()
            }
        } catch {
            throw error.inSink("syncing \(order.part.string)")
        }
    }

    private func isDated(_ file: OpenPart, _ order: FinalizeOrder) -> Bool {
        order.modificationTime == nil || order.modificationTime == file.status.modified
    }

    private func date(_ file: OpenPart, _ order: FinalizeOrder) throws(StorageError) {
        do {
            if let time = order.modificationTime, file.status.modified != time {
                try file.descriptor.setModificationTime(time)
            }
        } catch {
            // The file may belong to another user on another host. The caller asked for the time, so the failure is reported.
            guard [EPERM, EACCES].contains(error.number) else { throw error.inSink("dating \(order.part.string)") }
            throw .destinationUnusable(.init("dating \(order.part.string)", errno: error.number))
        }
    }

    /// Sets the modification times and marks of parts before everything is synced at once, so that no part needs a sync of its own.
    /// An error is ignored here: carrying out the order tries again, and reports it.
    mutating func prepare(_ orders: [FinalizeOrder]) {
        for order in orders where !order.fenced {
            guard order.modificationTime != nil || order.mark != nil else { continue }
            defer { unstage() }
            try? take(order)
            guard let part = try? openPart(order) else { continue }
            try? date(part, order)
            mark(part, order)
        }
    }

    /// Deletes the part and the remains of older versions, once their content was found to be wrong and is of no more use
    /// (range contract, row 29).
    ///
    /// - Parameter identity: the file that was checked; if another file has the name by now, that one is left alone.
    private mutating func discard(_ order: FinalizeOrder, identity: FileIdentity?) throws(StorageError) {
        // A job whose lease is over must not delete what its successor is writing.
        guard watch.mayContinue() else { return }
        do {
            if let identity, let now = try parts.status(of: order.part.string), now.identity != identity { return }
            sink.registry.spoil(order.part, .partLost(.init("\(order.part.string) held wrong content")))
            if try removeFiles(of: order) > 0 { touchParts() }
        } catch {
            throw error.inSink("deleting what is left of task \(order.task)")
        }
    }

    /// Removes the task's part and the parts of older versions; returns how many files there were.
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
