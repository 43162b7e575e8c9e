import Glibc
import MusterCore
import Synchronization

/// One sink as this process reaches it: an open directory, below which all its files are.
///
/// Tasks' files stand at their paths. Muster's own files are below `.muster/<installation>`: the parts of all sessions in
/// `parts`, and the files that one session is about to put in place or to delete in a directory of its own (adr/0017).
/// Every call below blocks on the file system: make it on a `BlockingPool`. The sink notices that its directory was
/// unmounted, removed or replaced by comparing the directory at its path with the open one (F9); then every call throws
/// `unavailable` until `probe()` finds the directory again.
final class SinkDirectory: Sendable {
    /// The sink's name.
    let name: String
    /// Where it is on this host.
    let path: String
    /// What makes the calls.
    let system: any FileSystem
    /// The session that works on it.
    let session: SinkSession
    /// The part files that are open now.
    let registry = PartRegistry()
    /// How many parts the session has made; makes their first names unique.
    let madeParts = Atomic<Int>(0)

    /// The room of the file system that is kept for the database beside the sink.
    let keptRoom: KeptRoom

    /// How many directories a batch of placements or deletions may hold open.
    let directories: Int

    /// The bytes that a probe writes: a sink with less free room is full.
    static let probeBytes: Int64 = 4_096

    /// An empty directory beside those of the sessions, for a session that begins while the sink is full.
    private static let spareName = "spare"

    private struct Handles {
        var root: Directory
        /// `.muster/<installation>`.
        var home: Directory
        var parts: Directory
        /// The session's own.
        var own: Directory
    }

    private let handles: Mutex<Handles>
    private let knownRevoked = Mutex<Set<SessionID>>([])
    /// The file that the last probe has made in the session's own directory, until it is deleted.
    private let leftProbe = Mutex<String?>(nil)
    /// Held by whatever moves files that are to be deleted in and out of the session's own directory.
    let removing = Mutex<Void>(())

    /// Begins a session in the directory at `path`: the session can put files in place and delete them from now on. The
    /// directory itself is never made: a missing one is most likely a file system that is not mounted. To be called
    /// before the session gets a lease in the sink, and never for a session that had one (adr/0017).
    ///
    /// - Parameters:
    ///   - mark: the mark that the directory must have (adr/0034); nothing is made in another directory. `nil` if no
    ///     other directory can be meant.
    ///   - kept: how many bytes of room are kept for the database.
    ///   - directories: how many directories a batch may hold open.
    ///   - system: what makes the calls.
    init(
        name: String, path: String, session: SinkSession, mark: String?, kept: Int64 = 0,
        directories: Int = DescriptorLimit.directories(of: DescriptorLimit.current),
        on system: any FileSystem = Kernel()
    ) throws(StorageError) {
        keptRoom = KeptRoom(bytes: kept)
        self.directories = directories
        self.name = name
        self.path = path
        self.system = system
        self.session = session
        let root = try Self.open(path, on: system)
        if let mark { try Self.check(root, is: mark, of: name, at: path) }
        do {
            let home = try Self.openHome(in: root, session, making: true)
            let parts = try Self.openParts(in: home, making: true)
            let own = try Self.openOwn(in: home, session)
            handles = Mutex(Handles(root: root, home: home, parts: parts, own: own))
        } catch {
            throw error.inSink("opening the sink's directory \(path)")
        }
    }

    /// Checks whether the directory at `path` can be reached and written; returns the bytes that may still be written.
    static func look(at path: String, on system: any FileSystem = Kernel()) throws(StorageError) -> Int64 {
        let root = try open(path, on: system)
        do throws(SystemError) {
            let free = try root.descriptor.space().free
            try system.checkWritable(path)
            return free
        } catch {
            throw error.inSink("opening the sink's directory \(path)")
        }
    }

    /// Opens the directory at `path`.
    ///
    /// - Parameter wasThere: whether it was open before.
    static func open(
        _ path: String, wasThere: Bool = false, on system: any FileSystem
    ) throws(StorageError) -> Directory {
        do {
            return try Directory(path: path, on: system)
        } catch {
            guard error.isAbsence else { throw error.inSink("opening the sink's directory \(path)") }
            guard !wasThere else { throw gone("\(path) is not there any more") }
            throw .unavailable(
                .init(
                    "\(path) is not there: make the directory; or, if its file system was unmounted, mount that again"))
        }
    }

    /// The error for a missing or different directory at the sink's path: most likely its file system was unmounted.
    private static func gone(_ finding: String) -> StorageError {
        .unavailable(
            .init(
                "\(finding), as after an unmount: its files and parts stay on what was mounted there; mount that again")
        )
    }

    /// The directory itself.
    var root: Directory { handles.withLock { $0.root } }

    /// The parts of all sessions of the installation.
    var parts: Directory { handles.withLock { $0.parts } }

    /// The session's own directory. Moving anything out of it or into it fails once it was removed.
    var own: Directory { handles.withLock { $0.own } }

    /// The directory that all sessions of the installation share in the sink.
    var home: Directory { handles.withLock { $0.home } }

    /// Throws `unavailable` unless the sink's path still leads to the open directory, and that can be entered.
    func check() throws(StorageError) {
        let status: FileStatus
        do {
            // The entry `.` is found only if the directory can be entered. Without this check each file would fail by itself.
            status = try system.status(at: path + "/.")
        } catch {
            throw error.isAbsence ? Self.gone("\(path) is not there any more") : error.inSink("entering \(path)")
        }
        guard status.identity == root.identity else {
            throw Self.gone("\(path) is another directory than before")
        }
    }

    /// Bytes that may still be written.
    func freeBytes() throws(StorageError) -> Int64 {
        do {
            return try root.descriptor.space().free
        } catch {
            throw error.inSink("asking for the free space of \(path)")
        }
    }

    /// Checks whether the sink can be used: makes, writes, syncs and deletes a file. A parked sink waits for this to succeed. Unless it throws
    /// `unavailable`, what was moved and deleted among Muster's own files before is durable (I13).
    ///
    /// A directory that came back, or was mounted again, is used if the session's own directory is in it. An empty one is
    /// not: most likely it is the bare mount point, and the next mount would hide what is written there. Nor is one from
    /// which the session's directory was removed: then the session was revoked, and only the next session may work there.
    func probe() throws(StorageError) {
        do {
            try check()
        } catch {
            try reopen()
        }
        try synchronizeNames()
        try keptRoom.check(root.descriptor)
        try write()
    }

    /// Another session may be the next one to delete a file that was set aside and could not be deleted: it looks among the parts. What was moved and
    /// deleted before is durable after this.
    private func synchronizeNames() throws(StorageError) {
        do {
            let (own, parts) = (own, try partsDirectory())
            try removing.withLock { _ throws(SystemError) in
                for name in try own.names() where RemovedName.isOne(name) { try own.handBack(name, to: parts) }
            }
            for directory in [parts, own] { try directory.descriptor.synchronize() }
        } catch {
            throw .unavailable(.init("syncing the parts of \(path)", errno: error.number))
        }
    }

    /// What an error at one path means: it is the sink's only if the sink itself doesn't work either.
    func judged(_ error: StorageError) -> StorageError {
        guard case .denied = error else { return error }
        do throws(StorageError) {
            try check()
            try write()
            return error
        } catch {
            return error
        }
    }

    /// Checks whether the sink can be written.
    private func write() throws(StorageError) {
        do throws(SystemError) {
            let own = own
            try own.refuseIfRemoved()
            // A file that could not be deleted is the next probe's first work: they would pile up as long as that fails.
            if let name = leftProbe.withLock({ $0 }) { _ = try own.remove(name) }
            let name = "probe.\(madeParts.add(1, ordering: .relaxed).newValue)"
            let (file, _) = try own.file(name, creation: .always)
            leftProbe.withLock { $0 = name }
            do throws(SystemError) {
                let page = [UInt8](repeating: 0x6d, count: Int(Self.probeBytes))
                try file.write(page, at: 0)
                try file.synchronizeData()
            } catch {
                _ = try? own.remove(name)
                throw error
            }
            _ = try own.remove(name)
            leftProbe.withLock { $0 = nil }
            _ = try? home.makeDirectory(Self.spareName)
        } catch {
            throw error.inSink("probing \(path)")
        }
    }

    private func reopen() throws(StorageError) {
        let root = try Self.open(path, wasThere: true, on: system)
        do {
            let home = try Self.openHome(in: root, session, making: false)
            let parts = try Self.openParts(in: home, making: true)
            let own = try home.directory(session.directoryName)
            handles.withLock { $0 = Handles(root: root, home: home, parts: parts, own: own) }
        } catch {
            guard error.isAbsence else { throw error.inSink("opening the sink's directory \(path) again") }
            throw Self.gone("\(path) is there, but not what this worker keeps in it (.muster)")
        }
        registry.spoil(.unavailable(.init("the sink was replaced since the part was opened")))
    }

    /// The parts' directory, made again if it was deleted.
    func partsDirectory() throws(SystemError) -> Directory {
        let (home, parts) = handles.withLock { ($0.home, $0.parts) }
        if try parts.descriptor.status().links > 0 { return parts }
        let fresh = try Self.openParts(in: home, making: true)
        handles.withLock { $0.parts = fresh }
        return fresh
    }

    /// Whether a session is known to be revoked here, so that the file system need not be asked.
    func isRevoked(_ session: SessionID) -> Bool { knownRevoked.withLock { $0.contains(session) } }

    /// Remembers that a session is revoked here.
    func noteRevoked(_ session: SessionID) { knownRevoked.withLock { _ = $0.insert(session) } }

    private static func openHome(
        in root: Directory,
        _ session: SinkSession,
        making: Bool
    ) throws(SystemError) -> Directory {
        var directory = root
        for component in [DestinationPath.reservedComponent, session.installation] {
            if making, try directory.makeDirectory(component) { try directory.descriptor.synchronize() }
            directory = try directory.directory(component)
        }
        return directory
    }

    /// Makes the session's own directory. If the file system is full, renames the spare directory that was made while
    /// there was room: the session can then delete files, which makes room.
    private static func openOwn(in home: Directory, _ session: SinkSession) throws(SystemError) -> Directory {
        let isNew: Bool
        do {
            isNew = try home.makeDirectory(session.directoryName)
            // Make the spare for the next session, if possible; this session doesn't need it.
            _ = try? home.makeDirectory(spareName)
        } catch {
            guard error.isLackOfRoom else { throw error }
            do {
                try home.move(spareName, to: session.directoryName, in: home, .replacing)
            } catch _ {
                throw error
            }
            isNew = true
        }
        // The directory must survive a crash of the file system: without it the session is over.
        if isNew { try home.descriptor.synchronize() }
        return try home.directory(session.directoryName)
    }

    private static func openParts(in home: Directory, making: Bool) throws(SystemError) -> Directory {
        if making, try home.makeDirectory("parts") { try home.descriptor.synchronize() }
        return try home.directory("parts")
    }
}
