import Glibc
import MusterAPI
import MusterCore

/// Examines what stands at the path of the file, and whether that is the task's own.
///
/// A crash can leave the task's file in place without a report, so that every rule has to tell it from a file that was
/// there before:
///
/// - It has the inode of the part or its copy: it is the task's own.
/// - The part is gone: it was moved, so that a file with exactly the content is the task's. If there is no such file, the
///   content is lost.
/// - Its mark says that the task put it there, and it has another content: the origin served something else under a lease
///   that was lost. The task starts over with its next content version, which replaces the files of older versions
///   (`isOutdated()`).
/// - Part and file are both there, and the file has exactly the content. With `verify` that is enough, whichever process
///   put the file there. With `rename` it is enough as well, at the path or at any of its numbered names that is no other
///   task's: a second copy would be a duplicate of what the task already has. With `fail` it counts only if a lease was
///   lost (`fenced`), since otherwise there was no predecessor to put it there. With `replace` it doesn't matter: the
///   file is replaced by the same bytes.
extension Placement {
    /// How many numbered names are tried before a task with `rename` fails.
    static let numberedNames = 1_000

    /// The result of deciding about the file at a path.
    enum Settled {
        /// The order has ended with this outcome.
        case outcome(FinalizeOutcome)
        /// There is nothing there any more.
        case gone
        /// The file isn't the task's.
        case foreign(String)
    }

    /// The paths that the file may get, in order.
    func paths(of order: FinalizeOrder) -> some Sequence<DestinationPath> {
        let last = order.ifExists == .rename ? 1 + Self.numberedNames : 1
        return (1...last).lazy.compactMap { $0 == 1 ? order.path : order.path.numbered($0) }
    }

    /// Checks whether a predecessor put the file at a numbered name, before a new name is taken. An earlier name may have
    /// become free since, so all names are checked; but only if there was a predecessor, or if the candidate already has
    /// a second name.
    mutating func findPlaced(
        _ candidate: Candidate,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome? {
        guard order.ifExists == .rename else { return nil }
        if !order.fenced {
            guard let now = try status(of: candidate.name), now.links > 1 else { return nil }
        }
        for path in paths(of: order) {
            guard let place = try walk.place(of: path, making: false) else { return nil }
            if case .outcome(let outcome) = try settle(candidate, at: Spot(path: path, place: place), order, check) {
                return outcome
            }
        }
        return nil
    }

    /// Handles a missing part: either a process put the file in place and died before it reported so, or the content is lost.
    mutating func adoptWithoutPart(
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome {
        var foreign: String?
        for path in paths(of: order) {
            guard let place = try walk.place(of: path, making: false) else { break }
            switch try adopt(at: Spot(path: path, place: place), order, check) {
            case .outcome(let outcome): return outcome
            case .gone: continue
            case .foreign(let reason): foreign = foreign ?? reason
            }
        }
        switch order.ifExists {
        case .verify, .fail: if let foreign { throw taken(order.path, foreign) }
        // The file that stands there doesn't matter: the content is fetched again.
        case .replace, .rename: break
        }
        throw .partLost(.init("there is neither \(order.part.string) nor its file at \(order.path)"))
    }

    private mutating func adopt(
        at spot: Spot,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> Settled {
        if try isOutdated(at: spot, order) { return .gone }
        // If many files may be candidates, each is examined before it is copied. Another installation's file is never
        // replaced, not even by the same content.
        let isStrangers = try isStrangers(at: spot, order)
        if !order.fenced || order.ifExists == .rename || isStrangers {
            switch try examineDestination(at: spot, order, check) {
            case .ours(let digests):
                guard !order.fenced || isStrangers else { break }
                touch(spot.place)
                try dropRemains(of: order, isPartMoved: true)
                return .outcome(finished(order, digests, at: spot))
            case .gone: return .gone
            case .foreign(let reason): return try overtaken(at: spot, order) ?? .foreign(reason)
            case .stopped: return .outcome(.stopped)
            }
        }
        let settled = try renew(at: spot, order, check)
        if case .foreign = settled { return try overtaken(at: spot, order) ?? settled }
        return settled
    }

    // MARK: - What stands there

    /// The result of examining the file at a path.
    enum Examined {
        /// Exactly the content; durable now.
        case ours([ContentDigest])
        case gone
        case foreign(String)
        case stopped
    }

    /// Compares the file at a path with the order.
    func examineDestination(
        at spot: Spot,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> Examined {
        let file: OpenPart
        switch try openDestination(at: spot) {
        case .file(let opened): file = opened
        case .gone: return .gone
        case .foreign(let reason): return .foreign(reason)
        }
        // The path may pass from one task to the next; a numbered name is one task's alone (I17).
        guard spot.path == order.path || !isAnothers(file, order) else { return .foreign("it is another task's") }
        // Another installation may change its file at any time: the file counts as the task's if the rule asks for this
        // path, but not with `rename`, which can take a free name (I18).
        if order.ifExists == .rename, order.mark?.isStrangers(file.descriptor, path: order.path) == true {
            return .foreign("it is another installation's")
        }
        let verdict: ContentCheck.Verdict
        do {
            verdict = try check.examine(
                file.descriptor,
                size: file.status.size,
                name: spot.path.string,
                as: .destination
            )
        } catch {
            // It became shorter while it was read: another process is writing it.
            guard case .partLost = error else { throw error }
            return .foreign("it is being changed")
        }
        switch verdict {
        case .good(let digests):
            // The file counts as this task's now, so it has to be durable, whichever process wrote it.
            do {
                try file.descriptor.synchronizeData()
            } catch {
                throw error.inSink("syncing \(spot.path)")
            }
            return try adopt(file, at: spot, order) ?? .ours(digests)
        case .corrupt(_, let reason): return .foreign(reason)
        case .digestMismatch: return .foreign("its digest differs")
        case .stopped: return .stopped
        }
    }

    /// The result of opening the file at a path.
    enum Opened {
        case file(OpenPart)
        case gone
        case foreign(String)
    }

    /// Opens the regular file at a path, for reading.
    func openDestination(at spot: Spot) throws(StorageError) -> Opened {
        guard let found = try destination(at: spot) else { return .gone }
        guard found.kind == .file else { return .foreign("it is \(found.kind.name)") }
        do {
            let (descriptor, status) = try spot.place.directory.file(spot.place.name, creation: .never)
            return .file(OpenPart(descriptor: descriptor, status: status))
        } catch {
            switch error.number {
            case ENOENT: return .gone
            case EACCES, EPERM, ELOOP, EINVAL, ENXIO:
                return .foreign("it can't be read: \(error.message)")
            default: throw error.atDestination("opening \(spot.path)")
            }
        }
    }

    /// The status of what has the name; `nil` if it is free.
    func destination(at spot: Spot) throws(StorageError) -> FileStatus? {
        do {
            return try spot.place.directory.status(of: spot.place.name)
        } catch {
            throw error.atDestination("looking at \(spot.path)")
        }
    }

    /// The error for a path at which something else than the task's file stands.
    func taken(_ path: DestinationPath, _ reason: String) -> StorageError {
        .destinationTaken(.init("something else stands at \(path): \(reason)"))
    }
}
