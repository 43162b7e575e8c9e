import Glibc
import MusterAPI
import MusterCore

/// What stands where the file is to stand, and whether that is the task's own.
///
/// A crash can leave the task's file in place without anybody knowing, so that every rule has to tell it from what was there before:
///
/// - It is the very inode of the part or its copy: the task's own.
/// - The part is gone: it was moved, so that a file with exactly the content is it. If there is none, the content is lost.
/// - Its mark says that the task put it there, and it has another content: a lease that was lost was served something else. The task starts over with its
///   next content version, which replaces what its older ones left (`isOutdated()`).
/// - Both are there, and the file has exactly the content. With `verify` that is enough, no matter who put it there. With `rename` it is as
///   well, at the path or at any of its numbered names that is no other task's: a second copy would be a duplicate of what the task has already. With
///   `fail` it counts only if a lease was lost (`fenced`), since otherwise there was no predecessor to put it there. With
///   `replace` it doesn't matter: the file is replaced by the same bytes.
extension Placement {
    /// How many numbered names are tried before a task with `rename` fails.
    static let numberedNames = 1_000

    /// What came of an attempt to settle what stands at a path.
    enum Settled {
        /// The order is carried out, or over.
        case outcome(FinalizeOutcome)
        /// There is nothing there any more.
        case gone
        /// Something that isn't the task's.
        case foreign(String)
    }

    /// The paths that the file may get, in order.
    func paths(of order: FinalizeOrder) -> some Sequence<DestinationPath> {
        let last = order.ifExists == .rename ? 1 + Self.numberedNames : 1
        return (1...last).lazy.compactMap { $0 == 1 ? order.path : order.path.numbered($0) }
    }

    /// Looks whether a predecessor put the file at a numbered name, before a new one is taken. An earlier name may have become free
    /// since, so that all of them are looked at; but only where there was a predecessor, or the candidate has a second name already.
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

    /// The part is missing: either the file was put in place by someone who died before saying so, or it is lost.
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
        // What stands there is no hindrance: the content is fetched again.
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
        // Where many files may be candidates, none is copied that isn't the one. A stranger's file is never replaced, not even by the same.
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

    /// What examining the file at a path came to.
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
        // The owner of another installation's file may change it at any time: it is counted where that is asked for, and not where a name is free (I18).
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
            // It became shorter while it was read: somebody is at work on it, and it isn't us.
            guard case .partLost = error else { throw error }
            return .foreign("it is being changed")
        }
        switch verdict {
        case .good(let digests):
            // It counts as this task's file now, so it has to be durable, no matter who wrote it.
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

    /// What opening the file at a path came to.
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

    /// What has the name.
    func destination(at spot: Spot) throws(StorageError) -> FileStatus? {
        do {
            return try spot.place.directory.status(of: spot.place.name)
        } catch {
            throw error.atDestination("looking at \(spot.path)")
        }
    }

    /// The error for what is not the task's.
    func taken(_ path: DestinationPath, _ reason: String) -> StorageError {
        .destinationTaken(.init("something else stands at \(path): \(reason)"))
    }
}
