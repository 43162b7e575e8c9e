import Glibc
import MusterCore
import Synchronization

extension SinkDirectory {
    /// The part file of a task's content version: the instance that is already open, or a new one; the file is made if it
    /// is missing.
    ///
    /// All jobs in this process that work on the part share one instance; it is closed when the last job drops it.
    /// Opening removes the parts of older content versions of the task (range contract, row 29), also those that are
    /// still open: a late writer can't put a part without a name in place of the newer content.
    ///
    /// - Parameter isAlone: whether no other session can be at work on the content version. A new part then stays in the
    ///   session's own directory until it is shared, or is put in place from there.
    func part(task: TaskID, version: Int32, isAlone: Bool = false) throws(StorageError) -> PartFile {
        let key = PartName(task, version: version)
        if let part = registry.open(key) {
            do {
                try part.share()
                return part
            } catch {
                guard part.isUseless else { throw error }
            }
        }
        try check()
        let part = try openOrMake(key, isAlone: isAlone)
        let shared = registry.add(part, as: key)
        if shared !== part {
            part.drop()
            try shared.share()
        }
        return shared
    }

    private func openOrMake(_ key: PartName, isAlone: Bool) throws(StorageError) -> PartFile {
        do {
            try removeOlder(than: key.version, of: key.task)
            return try openOrMakeNow(key, isAlone: isAlone)
        } catch {
            // A link, a directory or a device has the name of the part: it is not ours, and no reason to park the sink.
            if [ELOOP, EINVAL, EISDIR, ENXIO].contains(error.number) {
                throw .partLost(.init("\(key.string) is no regular file", errno: error.number))
            }
            throw error.inSink("opening \(key.string) in \(path)")
        }
    }

    /// A part is made in the session's own directory and moved from there, so that a revoked session can't make one,
    /// however late it wakes up (I13, adr/0017).
    private func openOrMakeNow(_ name: PartName, isAlone: Bool) throws(SystemError) -> PartFile {
        for _ in 0..<4 {
            let parts = parts
            do {
                return part(name, try parts.file(name.string, creation: .neverForWriting), at: .parts(parts))
            } catch {
                guard error.number == ENOENT else { throw error }
            }
            let made = try make(name)
            if isAlone { return made }
            do {
                _ = try made.moveToParts()
                return made
            } catch {
                made.drop()
                // Another job or another session was faster.
                guard error.number == EEXIST else { throw error }
            }
        }
        throw SystemError(ENOENT)
    }

    private func make(_ name: PartName) throws(SystemError) -> PartFile {
        let own = own
        let fresh = "\(madeParts.add(1, ordering: .relaxed).newValue).new"
        do {
            return part(name, try own.file(fresh, creation: .always), at: .own(own, fresh))
        } catch {
            throw own.cause(of: error)
        }
    }

    private func part(
        _ name: PartName, _ file: (descriptor: Descriptor, status: FileStatus), at place: PartFile.Place
    ) -> PartFile {
        PartFile(
            name, descriptor: file.descriptor, identity: file.status.identity,
            place: place, sink: self)
    }

    /// Deletes every part of `task` (I13); returns how many files there were.
    @discardableResult
    func purge(task: TaskID) throws(StorageError) -> Int {
        try purge(upTo: [task: .max])
    }

    /// Deletes the parts of tasks up to a content version each, with one pass over the directory; returns how many
    /// files there were.
    @discardableResult
    func purge(upTo versions: [TaskID: Int32]) throws(StorageError) -> Int {
        try check()
        do {
            let directory = try partsDirectory()
            let isUnwanted = { (part: PartName) in versions[part.task].map { part.version <= $0 } ?? false }
            // The session's own directory may hold a part that could not be handed back.
            let removed = try remove(in: directory, where: isUnwanted) + remove(in: own, where: isUnwanted)
            // Even if nothing was found: the sync of an earlier removal may have failed, and a loss of power brings the part back when no purge asks for
            // it any more.
            for touched in [directory, own] { try touched.descriptor.synchronize() }
            return removed
        } catch {
            throw error.inSink("deleting the parts of cancelled tasks")
        }
    }

    /// Deletes the parts that `isUnwanted` names and returns their number; other files in the directory are never touched.
    func remove(in directory: Directory, where isUnwanted: (PartName) -> Bool) throws(SystemError) -> Int {
        var count = 0
        for name in try directory.names() {
            guard let part = PartName(name), isUnwanted(part) else { continue }
            if try directory.remove(name) { count += 1 }
        }
        return count
    }

    private func removeOlder(than version: Int32, of task: TaskID) throws(SystemError) {
        // Nearly every task stays at its first version, and reading a directory of thousands of parts for each task is slow.
        guard version > 1 else { return }
        _ = try remove(in: partsDirectory()) { $0.task == task && $0.version < version }
    }
}
