import Glibc
import MusterCore

/// Ends a session in a sink, either by itself or by another session (adr/0017).
extension SinkDirectory {
    /// How often a directory is emptied before it counts as one that can't be: a session that is still at work can add
    /// one file for each of its jobs.
    private static let emptyings = 10_000

    /// Ensures that no rename of these sessions takes effect from now on, even if it was requested before: their
    /// directories are emptied and removed for good. Files that they were about to put in place or to delete go back to
    /// the parts. Can be repeated; blocks.
    func revoke(_ sessions: [SessionID]) throws(StorageError) {
        let unknown = sessions.filter { $0 != session.session && !isRevoked($0) }
        guard !unknown.isEmpty else { return }
        try check()
        for session in unknown {
            do {
                try removeDirectory("\(session)")
            } catch {
                throw error.inSink("revoking session \(session)")
            }
        }
        try makeRemovalDurable()
        for session in unknown { noteRevoked(session) }
    }

    /// Ends the session itself, after its jobs have stopped, so that no other session has to revoke it. Blocks.
    func end() throws(StorageError) {
        try check()
        do {
            try removeDirectory(session.directoryName)
        } catch {
            throw error.inSink("ending session \(session.session)")
        }
        try makeRemovalDurable()
    }

    private func removeDirectory(_ name: String) throws(SystemError) {
        let (home, parts) = (home, try partsDirectory())
        let directory: Directory
        do {
            directory = try home.directory(name)
        } catch {
            // The session never began here, or was revoked before; or its directory was taken away, and something else has its name.
            guard [ENOENT, ENOTDIR, ELOOP].contains(error.number) else { throw error }
            return
        }
        for _ in 0..<Self.emptyings {
            for entry in try directory.names() {
                if PartName(entry) != nil || RemovedName.isOne(entry) {
                    try directory.handBack(entry, to: parts)
                } else if try !directory.remove(entry), try directory.status(of: entry) != nil {
                    // A directory of another program.
                    try directory.move(entry, to: "\(name).\(entry)", in: parts, .exclusive)
                }
            }
            if try home.removeDirectory(name) { return }
        }
        throw SystemError(EBUSY)
    }

    /// If a crash of the file server brought the directory back, the session could put files in place again.
    private func makeRemovalDurable() throws(StorageError) {
        do {
            try home.descriptor.synchronize()
        } catch {
            throw error.inSink("syncing \(path)")
        }
    }
}

/// The names of files that were taken away from their paths and are about to be deleted: `<task>.<version>.removed`.
enum RemovedName {
    /// The name for the file of a task.
    static func of(_ task: TaskID, version: Int32) -> String { "\(task).\(version).removed" }

    /// Whether a name has this form.
    static func isOne(_ name: String) -> Bool {
        let fields = name.split(separator: ".", omittingEmptySubsequences: false)
        guard fields.count == 3, fields[2] == "removed", let task = Int64(fields[0]), let version = Int32(fields[1])
        else {
            return false
        }
        return of(TaskID(task), version: version) == name
    }
}
