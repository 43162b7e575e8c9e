import Glibc
import MusterEmbeddedPostgres
import MusterSystem
import SystemPackage

/// Keeps a second process out of a state directory. The lock is gone as soon as this process is, however it ends.
enum DirectoryLock {
    /// Locks a directory, and makes it, with its parents, if it is missing.
    ///
    /// - Throws: `CommandFailure.usage` when the directory can't be used, `.other` when another process uses it.
    static func acquire(_ directory: String) throws(CommandFailure) -> FileLock {
        let directory = FilePath(directory)
        let path = directory.appending("muster.lock")
        do {
            try Directories.make(directory)
            guard let lock = try FileLock.acquire(path, permissions: [.ownerReadWrite, .groupRead]) else {
                let process = FileLock.signature(path).map { " (process \($0))" } ?? ""
                throw CommandFailure.other(
                    "another muster\(process) works in \(directory) at this moment; wait for it, or stop it")
            }
            lock.sign()
            return lock
        } catch let failure as CommandFailure {
            throw failure
        } catch let error as Errno where [.isDirectory, .tooManySymbolicLinkLevels].contains(error) {
            throw .other("\(EmbeddedPostgresError.misplaced(path: path, needed: .file))")
        } catch {
            throw .usage("the directory \(directory) can't be used: \(error)")
        }
    }
}

/// Directories and their file systems.
enum Directories {
    /// Makes a directory and its parents, unless it exists. Returns whether it was made.
    @discardableResult
    static func make(_ path: FilePath) throws -> Bool {
        if mkdir(path.string, 0o755) == 0 { return true }
        let reason = Errno(rawValue: errno)
        switch reason {
        case .fileExists:
            var status = stat()
            guard stat(path.string, &status) == 0 else { throw Errno(rawValue: errno) }
            guard status.st_mode & S_IFMT == S_IFDIR else { throw Errno.notDirectory }
            return false
        case .noSuchFileOrDirectory where !path.removingLastComponent().isEmpty && path.lastComponent != nil:
            try make(path.removingLastComponent())
            guard mkdir(path.string, 0o755) == 0 || errno == EEXIST else { throw Errno(rawValue: errno) }
            return true
        default:
            throw reason
        }
    }

    /// Makes a directory that the user named for files, with its parents.
    ///
    /// - Returns: whether it was made, which is reported to the user, since the name may be mistyped.
    /// - Throws: `CommandFailure.usage` when it can't be used.
    static func makeNamed(_ directory: String) throws(CommandFailure) -> Bool {
        do {
            return try make(FilePath(directory))
        } catch {
            throw .usage("the directory \(directory) can't be used: \(error)")
        }
    }

    /// The bytes that this user may still write in the file system of a directory; `nil` when that can't be told.
    static func freeBytes(below path: FilePath) -> Int64? {
        var space = statvfs()
        guard statvfs(path.string, &space) == 0 else { return nil }
        let (bytes, overflow) = UInt64(space.f_bavail).multipliedReportingOverflow(by: UInt64(space.f_frsize))
        return overflow ? nil : Int64(exactly: bytes)
    }

    /// Why no file can be made in a directory's `.muster`, in the system's words; `nil` where a file can be made, and where the reason is a
    /// lack of room.
    static func refusal(of path: FilePath) -> String? {
        let probe = path.appending(".muster").appending("probe-\(getpid())").string
        let descriptor = open(probe, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor < 0 else {
            close(descriptor)
            unlink(probe)
            return nil
        }
        return [EROFS, EIO, ENODEV, ESTALE, ENOTCONN].contains(errno) ? String(cString: strerror(errno)) : nil
    }

    /// Whether the file system of a directory has no inode left for another file. Some file systems report no number of inodes.
    static func lacksInodes(below path: FilePath) -> Bool {
        var space = statvfs()
        return statvfs(path.string, &space) == 0 && space.f_files > 0 && space.f_favail == 0
    }

    /// The facts of a regular file that are known without reading it.
    struct FileFacts {
        /// Its size in bytes.
        let size: Int64
        /// When its content was last written, in microseconds since the Unix epoch, by the clock of its file system.
        let writtenAt: Int64
        /// When anything of the file last changed, including its name and its times, in the same unit. This time can't be set back.
        let touchedAt: Int64
    }

    /// The facts of a regular file; `nil` when there is none.
    static func facts(ofFile path: FilePath) throws -> FileFacts? {
        var status = stat()
        guard stat(path.string, &status) == 0 else {
            let reason = Errno(rawValue: errno)
            if reason == .noSuchFileOrDirectory || reason == .notDirectory { return nil }
            throw reason
        }
        guard status.st_mode & S_IFMT == S_IFREG else { return nil }
        let (written, touched) = (status.st_mtim, status.st_ctim)
        func microseconds(_ time: timespec) -> Int64 { Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000 }
        return FileFacts(
            size: Int64(status.st_size), writtenAt: microseconds(written), touchedAt: microseconds(touched))
    }
}
