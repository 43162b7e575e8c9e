import Glibc
import MusterAPI
import MusterCore

extension Placement {
    /// Moves a candidate to its path without overwriting, and settles what stands there already.
    mutating func move(
        _ candidate: Candidate,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome {
        // Each turn answers what changed since the last: the directory vanished, or what had the name did.
        for _ in 0..<4 {
            guard let place = try walk.place(of: order.path, making: true) else { break }
            try sink.check()
            guard watch.mayContinue() else { return .stopped }
            guard let now = try status(of: candidate.name) else {
                // A part that is gone was moved or deleted by somebody. A copy can only have been removed by a later
                // lease.
                return candidate.identity == candidate.part ? try adoptWithoutPart(order, check) : .stopped
            }
            guard now.identity == candidate.identity, now.size == order.size else {
                throw .partLost(.init("\(candidate.name.string) was replaced or cut while it was put in place"))
            }
            do {
                try moveExclusively(candidate.name, to: place)
            } catch {
                switch error.number {
                case EEXIST:
                    if let outcome = try settle(candidate, at: place, order, check) { return outcome }
                case ENOENT:
                    walk.forget()
                default:
                    throw error.atDestination("moving the file to \(order.path)")
                }
                continue
            }
            touch(place)
            try dropRemains(of: order, isPartMoved: candidate.name == order.part)
            return finished(order, candidate.digests)
        }
        throw .destinationUnusable(.init("\(order.path) keeps changing"))
    }

    /// Decides about what stands at the path; `nil` when it is gone again.
    private mutating func settle(
        _ candidate: Candidate,
        at place: SinkPlace,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome? {
        guard let found = try destination(at: place, order) else { return nil }
        if found.identity == candidate.identity {
            // Both names lead to it: somebody died between giving it the second and taking the first away.
            touch(place)
            try dropRemains(of: order, isPartMoved: false)
            return finished(order, candidate.digests)
        }
        if found.identity == candidate.part {
            // A predecessor moved the part itself, which a zombie may still have open for writing (I8).
            try replace(found.identity, by: candidate.name, at: place, order)
            touch(place)
            try dropRemains(of: order, isPartMoved: false)
            return finished(order, candidate.digests)
        }
        switch try examineDestination(at: place, order, check) {
        case .ours(let digests):
            touch(place)
            try dropRemains(of: order, isPartMoved: false)
            return finished(order, digests)
        case .gone: return nil
        case .stopped: return .stopped
        }
    }

    /// The part is missing: either the file was put in place by someone who died before saying so, or it is lost.
    mutating func adoptWithoutPart(
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> FinalizeOutcome {
        let lost = StorageError.partLost(.init("there is neither \(order.part.string) nor a file at \(order.path)"))
        guard let place = try walk.place(of: order.path, making: false),
            let found = try destination(at: place, order)
        else { throw lost }
        guard found.kind == .file else { throw taken(order, "it is no regular file") }
        if order.fenced { return try renew(at: place, order, check) }
        switch try examineDestination(at: place, order, check) {
        case .ours(let digests):
            touch(place)
            try dropRemains(of: order, isPartMoved: true)
            return finished(order, digests)
        case .gone: throw lost
        case .stopped: return .stopped
        }
    }

    // MARK: - What stands at the path

    /// What examining the file at the path came to; anything foreign is an error.
    private enum Examined {
        case ours([ContentDigest])
        case gone
        case stopped
    }

    private func examineDestination(
        at place: SinkPlace,
        _ order: FinalizeOrder,
        _ check: ContentCheck
    ) throws(StorageError) -> Examined {
        guard let file = try openDestination(at: place, order) else { return .gone }
        let verdict: ContentCheck.Verdict
        do {
            verdict = try check.examine(file.descriptor, size: file.status.size, name: order.path.string)
        } catch {
            // It became shorter while it was read: somebody is at work on it, and it isn't us.
            guard case .partLost = error else { throw error }
            throw taken(order, "it is being changed")
        }
        switch verdict {
        case .good(let digests):
            // It counts as this task's file now, so it has to be durable, whoever wrote it.
            do {
                try file.descriptor.synchronizeData()
            } catch {
                throw error.inSink("syncing \(order.path)")
            }
            return .ours(digests)
        case .corrupt(_, let reason): throw taken(order, reason)
        case .digestMismatch: throw taken(order, "its digest differs")
        case .stopped: return .stopped
        }
    }

    func openDestination(at place: SinkPlace, _ order: FinalizeOrder) throws(StorageError) -> OpenPart? {
        guard let found = try destination(at: place, order) else { return nil }
        guard found.kind == .file else { throw taken(order, "it is no regular file") }
        do {
            let (descriptor, status) = try place.directory.file(place.name, creation: .never)
            return OpenPart(descriptor: descriptor, status: status)
        } catch {
            switch error.number {
            case ENOENT: return nil
            case EACCES, EPERM, ELOOP, EINVAL, ENXIO:
                throw .destinationTaken(.init("\(order.path) can't be read", errno: error.number))
            default: throw error.atDestination("opening \(order.path)")
            }
        }
    }

    private func destination(at place: SinkPlace, _ order: FinalizeOrder) throws(StorageError) -> FileStatus? {
        do {
            return try place.directory.status(of: place.name)
        } catch {
            throw error.atDestination("looking at \(order.path)")
        }
    }

    func taken(_ order: FinalizeOrder, _ reason: String) -> StorageError {
        .destinationTaken(.init("something else stands at \(order.path): \(reason)"))
    }

    // MARK: - Names

    private func status(of name: PartName) throws(StorageError) -> FileStatus? {
        do {
            return try parts.status(of: name.string)
        } catch {
            throw error.inSink("looking at \(name.string)")
        }
    }

    private func moveExclusively(_ name: PartName, to place: SinkPlace) throws(SystemError) {
        do {
            try parts.move(name.string, to: place.name, in: place.directory, .exclusive)
        } catch {
            guard [EINVAL, ENOSYS, EOPNOTSUPP].contains(error.number) else { throw error }
            // NFS, for one, can't. A second name is exclusive as well; dying before the first is removed is settled by
            // whoever comes next, who finds one file under both.
            try parts.link(name.string, to: place.name, in: place.directory)
            _ = try parts.remove(name.string)
        }
    }

    /// Puts `name` in the place of the file `expected`, and of no other.
    func replace(
        _ expected: FileIdentity,
        by name: PartName,
        at place: SinkPlace,
        _ order: FinalizeOrder
    ) throws(StorageError) {
        do throws(SystemError) {
            try parts.move(name.string, to: place.name, in: place.directory, .exchanging)
            guard let out = try parts.status(of: name.string), out.identity == expected else {
                // Somebody was faster in putting another file there: it gets its name back.
                try parts.move(name.string, to: place.name, in: place.directory, .exchanging)
                throw SystemError(EEXIST)
            }
            _ = try parts.remove(name.string)
        } catch {
            switch error.number {
            case EEXIST, ENOENT: throw taken(order, "it keeps changing")
            case EINVAL, ENOSYS, EOPNOTSUPP: try replaceWithoutExchange(expected, by: name, at: place, order)
            default: throw error.atDestination("moving the file to \(order.path)")
            }
        }
    }

    private func replaceWithoutExchange(
        _ expected: FileIdentity,
        by name: PartName,
        at place: SinkPlace,
        _ order: FinalizeOrder
    ) throws(StorageError) {
        // The best there is on such a file system: a look directly before.
        guard try destination(at: place, order)?.identity == expected else { throw taken(order, "it keeps changing") }
        do {
            try parts.move(name.string, to: place.name, in: place.directory, .replacing)
        } catch {
            throw error.atDestination("moving the file to \(order.path)")
        }
    }

    /// Deletes what the task no longer needs, now that its file stands.
    private mutating func dropRemains(of order: FinalizeOrder, isPartMoved: Bool) throws(StorageError) {
        do {
            var count = 0
            if order.fenced {
                count = try sink.remove(in: parts) { name in
                    guard name.task == order.task, name.version <= order.version else { return false }
                    guard case .copy(_, _, let epoch) = name else { return true }
                    return epoch <= order.epoch
                }
            } else if !isPartMoved, try parts.remove(order.part.string) {
                count = 1
            }
            if count > 0 { touchParts() }
        } catch {
            throw error.inSink("deleting what is left of task \(order.task)")
        }
    }
}
