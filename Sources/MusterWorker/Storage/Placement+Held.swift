import Glibc
import MusterAPI
import MusterCore

/// Makes a task's file from another finished file that has the same content.
///
/// The new file gets the name of a copy, never that of the part: a worker that takes the task up after a crash writes
/// into the part, and must not write into the finished file of another task through a second name of it (I8). A copy is
/// written only by the session that made it.
extension Placement {
    /// How the file was made.
    private enum Shared {
        /// A file of its own, or a second name of the finished file.
        case made(OpenPart)
        /// It can't be made: the finished file is gone or was replaced.
        case refused(String)
        case stopped
    }

    /// Whether the `held` file of the order exists and has the order's content; nothing is changed.
    mutating func isThere(_ order: FinalizeOrder) throws(StorageError) -> Bool {
        guard let path = order.held, let check = ContentCheck(order, watch: watch),
            let place = try walk.place(of: path, making: false),
            case .file(let file) = try openDestination(at: Spot(path: path, place: place))
        else { return false }
        let verdict = try check.examine(
            file.descriptor, size: file.status.size, name: path.string, as: .destination)
        if case .good = verdict { return true }
        return false
    }

    /// The current status of the orders' `held` files: a later sync of everything makes this state durable. A file that
    /// can't be looked at now gets a sync of its own.
    mutating func heldFiles(of orders: [FinalizeOrder]) -> [DestinationPath: FileStatus] {
        var found: [DestinationPath: FileStatus] = [:]
        for path in orders.compactMap(\.held) where !walk.isFull {
            guard let place = try? walk.place(of: path, making: false) else { continue }
            found[path] = try? place.directory.status(of: place.name)
        }
        return found
    }

    /// Makes the file from the one at `path`, verifies it, and moves it into place. `corrupt` or `digestMismatch` say
    /// that the one at `path` can't be used; it stays as it is, and so does the part.
    mutating func putHeld(
        _ path: DestinationPath,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome {
        // The copy is gone already if it was put in place. If it can't be deleted now, it is deleted with the session's
        // directory.
        defer { _ = try? own.remove(order.copy.string) }
        return try putShared(path, order, check)
    }

    private mutating func putShared(
        _ path: DestinationPath,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome {
        let file: OpenPart
        let verdict: ContentCheck.Verdict
        do {
            switch try share(path, order) {
            case .made(let made): file = made
            case .refused(let reason): return useless(reason, order)
            case .stopped: return .stopped
            }
            verdict = try check.examine(
                file.descriptor,
                size: file.status.size,
                name: path.string,
                as: .destination
            )
        } catch {
            // For example a link on the way, or a file that becomes shorter while it is read: no failure of the sink.
            guard !error.parksSink, !error.isPassing else { throw error }
            return useless(error.description, order)
        }
        switch verdict {
        case .good(let digests):
            guard let now = try status(of: order.copy), now.isUnchanged(since: file.status) else {
                return useless("\(path) is being changed", order)
            }
            // Durable only if everything was synced, and the file is as it was before that sync.
            let isDurable = isSynchronized && standing[path].map { file.status.isUnchanged(since: $0) } ?? false
            try settleData(file, order, isSynchronized: isDurable)
            mark(file, order)
            let part = try status(of: .part(order.part))?.identity
            return try move(
                Candidate(name: order.copy, identity: file.status.identity, part: part, digests: digests),
                order,
                check
            )
        case .corrupt(let ranges, let reason): return .corrupt(ranges, reason: reason)
        case .digestMismatch(let expected, let found): return .digestMismatch(expected: expected, found: found)
        case .stopped: return .stopped
        }
    }

    private func useless(_ reason: String, _ order: FinalizeOrder) -> FinalizeOutcome {
        .corrupt([ByteRange(first: order.size)], reason: reason)
    }

    /// Clones, links or copies the file at `path` to the copy's name, in the cheapest way possible.
    private mutating func share(_ path: DestinationPath, _ order: FinalizeOrder) throws(StorageError) -> Shared {
        guard let place = try walk.place(of: path, making: false) else { return .refused("\(path) is gone") }
        let spot = Spot(path: path, place: place)
        let file: OpenPart
        switch try openDestination(at: spot) {
        case .file(let opened): file = opened
        case .gone: return .refused("\(path) is gone")
        case .foreign(let reason): return .refused("\(path) won't do: \(reason)")
        }
        guard file.status.size == order.size else {
            return .refused("\(path) has \(file.status.size) bytes instead of \(order.size)")
        }
        let keepsTime = order.modificationTime == nil || order.modificationTime == file.status.modified
        // 1. A clone shares only the storage. A file at the order's own path is kept as it is, unless it needs another time.
        if path != order.path || !keepsTime, let clone = try clone(file, order) { return .made(clone) }
        // 2. A second name shares the times and the marks too. It can't be used if this file needs another time, or if
        // the mark of this task would replace that of another task with a numbered name of the same path.
        if keepsTime, path == order.path || !isAnothers(file, order) {
            if let linked = try link(file, at: spot, order) { return linked }
        }
        // 3. A copy, made by the system if it can.
        let copy = try makeCopy(order)
        guard try copyContent(of: file.descriptor, to: copy.descriptor, order) else { return .stopped }
        return .made(try current(copy, order))
    }

    private func clone(_ file: OpenPart, _ order: FinalizeOrder) throws(StorageError) -> OpenPart? {
        let copy = try makeCopy(order)
        do throws(SystemError) {
            if try file.descriptor.clone(to: copy.descriptor) {
                return OpenPart(descriptor: copy.descriptor, status: try copy.descriptor.status())
            }
            _ = try own.remove(order.copy.string)
            return nil
        } catch {
            throw error.inPart("cloning into \(order.copy.string)")
        }
    }

    /// Returns `nil` if the file system or the file's permissions don't allow a link.
    private func link(_ file: OpenPart, at spot: Spot, _ order: FinalizeOrder) throws(StorageError) -> Shared? {
        do throws(SystemError) {
            try spot.place.directory.link(spot.place.name, to: order.copy.string, in: own)
            // Another file may have taken the name at this very moment: it must be the file that was opened.
            let (descriptor, status) = try own.file(order.copy.string, creation: .never)
            guard status.identity == file.status.identity else { return .refused("\(spot.path) is being replaced") }
            return .made(OpenPart(descriptor: descriptor, status: status))
        } catch {
            switch error.number {
            case EXDEV, EPERM, EACCES, EMLINK, EOPNOTSUPP, ENOSYS, EINVAL: return nil
            case ENOENT, ELOOP: return .refused("\(spot.path) is being replaced")
            default: throw error.inSink("linking \(order.copy.string)")
            }
        }
    }

    private func current(_ copy: OpenPart, _ order: FinalizeOrder) throws(StorageError) -> OpenPart {
        do {
            return OpenPart(descriptor: copy.descriptor, status: try copy.descriptor.status())
        } catch {
            throw error.inSink("looking at \(order.copy.string)")
        }
    }
}
