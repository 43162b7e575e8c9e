import Glibc
import MusterAPI
import MusterCore

extension Placement {
    /// Moves a candidate to its path without overwriting a file that isn't the task's, and decides about one that stands
    /// there already.
    mutating func move(
        _ candidate: Candidate,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome {
        if let outcome = try findPlaced(candidate, order, check) { return outcome }
        var reason = ""
        for path in paths(of: order) {
            switch try move(candidate, to: path, order, check) {
            case .outcome(let outcome): return outcome
            case .gone: throw .destinationUnusable(.init("\(path) keeps changing"))
            case .foreign(let why): reason = why
            }
        }
        throw taken(order.path, order.ifExists == .rename ? "and at every numbered name too" : reason)
    }

    private mutating func move(
        _ candidate: Candidate,
        to path: DestinationPath,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> Settled {
        // Each turn reacts to a change since the last: the directory vanished, or the file that had the name did.
        for _ in 0..<4 {
            guard let place = try walk.place(of: path, making: true) else { break }
            let spot = Spot(path: path, place: place)
            try sink.check()
            guard watch.mayContinue() else { return .outcome(.stopped) }
            guard let now = try status(of: candidate.name) else {
                // A missing part was moved or deleted by another process; a missing copy was deleted together with its session.
                return .outcome(candidate.isPart ? try adoptWithoutPart(order, check) : .stopped)
            }
            guard now.identity == candidate.identity, now.size == order.size else {
                throw .partLost(.init("\(candidate.name.string) was replaced or cut while it was put in place"))
            }
            do {
                try moveExclusively(candidate.name, to: place)
            } catch {
                switch error.number {
                case EEXIST:
                    let settled = try settle(candidate, at: spot, order, check)
                    if case .gone = settled { continue }
                    return settled
                case ENOENT:
                    walk.forget()
                    continue
                default:
                    throw error.atDestination("moving the file to \(path)")
                }
            }
            return .outcome(try conclude(candidate, at: spot, order, check, isMoved: true))
        }
        return .gone
    }

    /// Decides about the file that already has the candidate's name.
    mutating func settle(
        _ candidate: Candidate,
        at spot: Spot,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> Settled {
        guard let found = try destination(at: spot) else { return .gone }
        if found.identity == candidate.identity {
            // Both names lead to it: a process died after it gave the file the second name and before it removed the first.
            return .outcome(try conclude(candidate, at: spot, order, check))
        }
        if found.identity == candidate.part {
            // A predecessor moved the part itself, which a zombie may still have open for writing (I8).
            try replace(found.identity, by: candidate.name, at: spot)
            return .outcome(try conclude(candidate, at: spot, order, check))
        }
        if try isOutdated(at: spot, order) {
            guard watch.mayContinue() else { return .outcome(.stopped) }
            // A worker that lost its lease may be about to do the same, and another installation may be about to count on
            // the file.
            try replace(found.identity, by: candidate.name, at: spot, unlessCountedOnFor: order)
            return .outcome(try conclude(candidate, at: spot, order, check, isMoved: true))
        }
        switch order.ifExists {
        case .replace: return try overwrite(found, by: candidate, at: spot, order, check)
        case .fail where !order.fenced:
            // No lease was ever lost, so no predecessor can have put it there.
            return .foreign(found.kind == .file ? "it was there before" : "it is \(found.kind.name)")
        case .verify, .rename, .fail:
            switch try examineDestination(at: spot, order, check) {
            case .ours(let digests): return .outcome(try conclude(candidate, at: spot, order, check, digests))
            case .gone: return .gone
            case .foreign(let reason): return try overtaken(at: spot, order) ?? .foreign(reason)
            case .stopped: return .outcome(.stopped)
            }
        }
    }

    /// Replaces a regular file by the candidate, in one step: a reader that opens the path finds either file, whole.
    ///
    /// If another process puts a link there between the check and the rename, the link is replaced and its target stays.
    private mutating func overwrite(
        _ found: FileStatus,
        by candidate: Candidate,
        at spot: Spot,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> Settled {
        guard found.kind == .file else { return .foreign("it is \(found.kind.name)") }
        guard watch.mayContinue() else { return .outcome(.stopped) }
        if try isStrangers(at: spot, order) { return .foreign("it is another installation's") }
        let replacesOthers = try !isOwn(at: spot, order)
        do throws(SystemError) {
            try stage(candidate.name)
            if replacesOthers { try markAsReplacement(candidate.name, order) }
            try own.move(candidate.name.string, to: spot.place.name, in: spot.place.directory, .replacing)
            staged = nil
        } catch {
            switch error.number {
            case ENOENT: return .gone
            case EISDIR, ENOTEMPTY, EEXIST: return .foreign("it is a directory")
            default: throw error.atDestination("moving the file to \(spot.path)")
            }
        }
        return .outcome(try conclude(candidate, at: spot, order, check, isMoved: true))
    }

    /// Cleans up once the file is in place: nothing else of the task is needed any more.
    mutating func conclude(
        _ candidate: Candidate,
        at spot: Spot,
        _ order: FinalizeOrder,
        _ check: ContentCheck,
        _ digests: [ContentDigest]? = nil,
        isMoved: Bool = false
    ) throws(StorageError) -> FinalizeOutcome {
        touch(spot.place)
        // A fresh part that was not moved is of no use any more; no job shares it from now on.
        if let (part, name) = fresh {
            if !(isMoved && candidate.isPart) { _ = try? own.remove(name) }
            part.leave()
            fresh = nil
        }
        try dropStaged(order)
        try dropRemains(of: order, isPartMoved: isMoved && candidate.isPart)
        // With `replace`, a zombie that was stopped directly before its rename may have put the part over the copy. It
        // can't do so any more, since the part has no name now; so one check is enough (I8).
        if order.ifExists == .replace, !candidate.isPart,
            try destination(at: spot)?.identity == candidate.part
        {
            switch try renew(at: spot, order, check) {
            case .outcome(let outcome): return outcome
            case .gone: throw taken(spot.path, "it keeps changing")
            case .foreign(let reason): throw taken(spot.path, reason)
            }
        }
        return finished(order, digests ?? candidate.digests, at: spot)
    }

    // MARK: - Names

    /// Moves a file from the parts into the session's own directory. Files are put in place only from there: a revoked
    /// session has no such directory any more, however late it wakes up (adr/0017).
    mutating func stage(_ candidate: CandidateName) throws(SystemError) {
        // A copy and a fresh part are there already.
        guard case .part(let name) = candidate, staged != name else { return }
        unstage()
        do {
            try parts.move(name.string, to: name.string, in: own, .replacing)
        } catch {
            throw own.cause(of: error)
        }
        staged = name
    }

    /// Deletes a part that is not needed any more, since the file stands already.
    private mutating func dropStaged(_ order: FinalizeOrder) throws(StorageError) {
        guard let name = staged else { return }
        do {
            _ = try own.remove(name.string)
        } catch {
            throw error.inSink("deleting what is left of task \(order.task)")
        }
        staged = nil
        // A loss of power must bring it back neither here nor among the parts.
        touchOwn()
        touchParts()
    }

    /// Gives back a part that was not put in place.
    mutating func unstage() {
        fresh?.part.giveBack()
        fresh = nil
        guard let name = staged else { return }
        staged = nil
        // If this fails, the next try reclaims the part, or the worker that revokes the session does.
        try? own.handBack(name.string, to: parts)
    }

    /// The status of the file with one of Muster's own names; `nil` if there is none.
    func status(of name: CandidateName) throws(StorageError) -> FileStatus? {
        do throws(SystemError) {
            if case .part(let part) = name, part != staged { return try parts.status(of: part.string) }
            guard let status = try own.status(of: name.string) else {
                // The worker that revoked the session may have taken the file away: that says nothing about the task.
                try own.refuseIfRemoved()
                return nil
            }
            return status
        } catch {
            throw error.inSink("looking at \(name.string)")
        }
    }

    private mutating func moveExclusively(_ name: CandidateName, to place: SinkPlace) throws(SystemError) {
        try stage(name)
        do {
            try own.moveExclusively(name.string, to: place.name, in: place.directory)
        } catch {
            throw own.cause(of: error)
        }
        staged = nil
    }

    /// Replaces the file `expected`, and no other file, by `name`. If an order is given, also refuses to replace a file
    /// that another installation counts on.
    mutating func replace(
        _ expected: FileIdentity, by name: CandidateName, at spot: Spot, unlessCountedOnFor order: FinalizeOrder? = nil
    ) throws(StorageError) {
        let place = spot.place
        do throws(SystemError) {
            try stage(name)
            try own.move(name.string, to: place.name, in: place.directory, .exchanging)
            guard let out = try own.status(of: name.string), out.identity == expected, try !isCountedOn(name, order)
            else {
                // Another process put another file there first, or another installation counts on this one: the file gets
                // its name back.
                try own.move(name.string, to: place.name, in: place.directory, .exchanging)
                throw SystemError(EEXIST)
            }
            _ = try own.remove(name.string)
            staged = nil
            // Otherwise a loss of power brings the replaced file back under the part's name, and no task deletes it.
            touchOwn()
        } catch {
            switch error.number {
            case EEXIST, ENOENT: throw taken(spot.path, "it keeps changing")
            case EINVAL, ENOSYS, EOPNOTSUPP: try replaceWithoutExchange(expected, by: name, at: spot)
            default: throw error.atDestination("moving the file to \(spot.path)")
            }
        }
    }

    /// Whether another installation counts on a file that was moved away from its path. That installation marks the file
    /// before it checks whether the file is still there.
    private func isCountedOn(_ name: CandidateName, _ order: FinalizeOrder?) throws(SystemError) -> Bool {
        guard let order else { return false }
        let (file, _) = try own.file(name.string, creation: .never)
        return FileMark.read(file, path: order.path)?.isCountedOn == true
    }

    private mutating func replaceWithoutExchange(
        _ expected: FileIdentity,
        by name: CandidateName,
        at spot: Spot
    ) throws(StorageError) {
        // Without an exchange, a check directly before the rename is the best that the file system allows.
        guard try destination(at: spot)?.identity == expected else { throw taken(spot.path, "it keeps changing") }
        do throws(SystemError) {
            try stage(name)
            try own.move(name.string, to: spot.place.name, in: spot.place.directory, .replacing)
            staged = nil
        } catch {
            throw error.atDestination("moving the file to \(spot.path)")
        }
    }

    /// Deletes what the task no longer needs, now that its file stands.
    mutating func dropRemains(of order: FinalizeOrder, isPartMoved: Bool) throws(StorageError) {
        do {
            // A late worker may have made an older version's part anew.
            if order.fenced || order.version > 1 {
                if try removeFiles(of: order) > 0 { touchParts() }
            } else if !isPartMoved, try parts.remove(order.part.string) {
                touchParts()
            }
        } catch {
            throw error.inSink("deleting what is left of task \(order.task)")
        }
    }
}
