import Glibc
import MusterCore
import Synchronization

extension SinkDirectory {
    /// The part file of a task's content version: the one that is open already, or else opened, and made if missing.
    ///
    /// One instance is shared by everybody who works on the part in this process; it is closed when the last of them
    /// drops it. Opening removes the parts of older content versions of the task (range contract, row 29), also those that
    /// are still open: what has no name can't be put in place of the newer content by a late writer.
    func part(task: TaskID, version: Int32) throws(StorageError) -> PartFile {
        let key = PartName(task, version: version)
        if let part = registry.open(key) { return part }
        try check()
        do {
            let directory = try partsDirectory()
            try removeOlder(than: version, of: task, in: directory)
            let (descriptor, status) = try openOrMake(key.string, in: directory)
            let part = PartFile(
                task: task,
                version: version,
                descriptor: descriptor,
                identity: status.identity,
                directory: directory,
                registry: registry
            )
            return registry.add(part, as: key)
        } catch {
            // A link, or no regular file, where a part should be: not ours, and no reason to park the sink.
            if error.number == ELOOP || error.number == EINVAL {
                throw .partLost(.init("\(key.string) is no regular file", errno: error.number))
            }
            throw error.inSink("opening \(key.string) in \(path)")
        }
    }

    /// A part is made in the session's own directory and moved from there: a session that was revoked makes none, however late it wakes up
    /// (I13, adr/0017).
    private func openOrMake(_ name: String, in parts: Directory) throws(SystemError) -> (Descriptor, FileStatus) {
        for _ in 0..<4 {
            do {
                return try parts.file(name, creation: .neverForWriting)
            } catch {
                guard error.number == ENOENT else { throw error }
            }
            if let made = try make(name, in: parts) { return made }
        }
        throw SystemError(ENOENT)
    }

    /// Makes a part; `nil` if another job or another session was faster.
    private func make(_ name: String, in parts: Directory) throws(SystemError) -> (Descriptor, FileStatus)? {
        let own = own
        let fresh = "\(madeParts.add(1, ordering: .relaxed).newValue).new"
        do throws(SystemError) {
            let made = try own.file(fresh, creation: .always)
            try own.moveExclusively(fresh, to: name, in: parts)
            return made
        } catch {
            guard error.number == EEXIST else { throw own.cause(of: error) }
            _ = try own.remove(fresh)
            return nil
        }
    }

    /// Deletes a part that nothing was written to. Only for the holder of a lease of all that there is of the task.
    func dropEmpty(_ part: PartFile) throws(StorageError) {
        do {
            let directory = try partsDirectory()
            let name = part.name.string
            guard let status = try directory.status(of: name), status.identity == part.identity, status.size == 0 else {
                return
            }
            part.spoil(.partLost(.init("\(name) was empty, and was deleted")))
            _ = try directory.remove(name)
        } catch {
            throw error.inSink("deleting \(part.name.string)")
        }
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
            // In the session's own directory there is one that could not be handed back.
            let removed = try remove(in: directory, where: isUnwanted) + remove(in: own, where: isUnwanted)
            if removed > 0 { try directory.descriptor.synchronize() }
            return removed
        } catch {
            throw error.inSink("deleting the parts of cancelled tasks")
        }
    }

    /// Deletes what `isUnwanted` says; other people's files in the directory are never touched.
    func remove(in directory: Directory, where isUnwanted: (PartName) -> Bool) throws(SystemError) -> Int {
        var count = 0
        for name in try directory.names() {
            guard let part = PartName(name), isUnwanted(part) else { continue }
            if try directory.remove(name) { count += 1 }
        }
        return count
    }

    private func removeOlder(than version: Int32, of task: TaskID, in directory: Directory) throws(SystemError) {
        // Nearly every task stays at its first version, and reading a directory of thousands for each would be felt.
        guard version > 1 else {
            if version == 1 { _ = try directory.remove(PartName(task, version: 0).string) }
            return
        }
        _ = try remove(in: directory) { $0.task == task && $0.version < version }
    }
}
