import FoundationEssentials
import Glibc
import MusterSystem
import SystemPackage

/// The few file operations of this module, each reporting its path and errno.
///
/// They are all short: metadata of a handful of files, on a local disk, at start.
enum PrivateFiles {
    /// The status of `path`, without following a symbolic link; nil when nothing is there.
    static func status(_ path: FilePath) throws -> Stat? {
        do {
            return try path.stat(followTargetSymlink: false)
        } catch Errno.noSuchFileOrDirectory {
            return nil
        } catch {
            throw EmbeddedPostgresError.fileOperation("stat", path: path, errno: error)
        }
    }

    /// Whether `path` is a file that at least one user can execute.
    static func isExecutable(_ path: FilePath) -> Bool {
        guard let status = try? path.stat() else { return false }
        return status.type == .regular && status.permissions.rawValue & 0o111 != 0
    }

    /// The first of the files by which a server recognizes its data directory that is missing, empty or not a file; `nil`
    /// if all are there.
    static func missing(inCluster directory: FilePath) throws -> String? {
        try ["PG_VERSION", "global/pg_control", "global/pg_filenode.map"].first {
            try status(directory.appending($0)).map { $0.type != .regular || $0.size == 0 } ?? true
        }
    }

    /// The first file or directory of a tree that belongs to another user, the root of the tree included.
    static func foreign(in path: FilePath, to account: ServerAccount) throws -> (path: FilePath, owner: ServerAccount)?
    {
        guard let found = try status(path) else { return nil }
        let owner = ServerAccount(found)
        guard owner.userID == account.userID else { return (path, owner) }
        guard found.type == .directory else { return nil }
        for name in try names(in: path).sorted() {
            if let foreign = try foreign(in: path.appending(name), to: account) { return foreign }
        }
        return nil
    }

    /// Refuses anything but a directory where a directory of the cluster belongs.
    static func refuseOther(than directory: FilePath) throws {
        guard let found = try status(directory), found.type != .directory else { return }
        throw EmbeddedPostgresError.misplaced(path: directory, needed: .directory)
    }

    /// Makes one directory, and says whether it is new.
    static func makeDirectory(_ path: FilePath, permissions: mode_t) throws -> Bool {
        guard mkdir(path.string, permissions) != 0 else {
            // The mode given to mkdir is narrowed by the umask; what the server needs does not depend on that.
            guard chmod(path.string, permissions) == 0 else { throw failure("chmod", path) }
            return true
        }
        guard errno == EEXIST else { throw failure("mkdir", path) }
        return false
    }

    /// Makes a directory with all its parents, where they are missing; the umask decides which other users may enter them.
    static func makeDirectories(_ path: FilePath) throws {
        var current = FilePath(root: path.root, [])
        for component in path.components {
            current.append(component)
            if mkdir(current.string, 0o755) != 0, errno != EEXIST { throw failure("mkdir", current) }
        }
    }

    /// Makes a directory and the one above it, with all its parents, so that every account can pass through both, whatever the umask is, or was when
    /// they were made.
    static func makePassage(_ path: FilePath) throws {
        let parent = path.removingLastComponent()
        try makeDirectories(parent.removingLastComponent())
        for directory in [parent, path] where try !makeDirectory(directory, permissions: 0o755) {
            guard let found = try status(directory), ServerAccount(found).userID == geteuid() else { continue }
            let mode = found.permissions.rawValue | 0o111
            guard mode == found.permissions.rawValue || chmod(directory.string, mode) == 0 else {
                throw failure("chmod", directory)
            }
        }
    }

    /// Gives `path` itself, never the target of a link, to an account.
    static func give(_ path: FilePath, to account: ServerAccount) throws {
        guard lchown(path.string, account.userID, account.groupID) == 0 else { throw failure("chown", path) }
    }

    /// The absolute path without links.
    static func realPath(_ path: FilePath) throws -> FilePath {
        guard let resolved = realpath(path.string, nil) else { throw failure("realpath", path) }
        defer { free(resolved) }
        return FilePath(String(cString: resolved))
    }

    /// The names in a directory, in no order.
    static func names(in directory: FilePath) throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: directory.string)
        } catch {
            throw EmbeddedPostgresError.fileOperation("list", path: directory, errno: .ioError)
        }
    }

    /// Removes a tree; something that is not there is no error.
    static func removeTree(_ path: FilePath) throws {
        guard try status(path) != nil else { return }
        do {
            try FileManager.default.removeItem(atPath: path.string)
        } catch {
            throw EmbeddedPostgresError.fileOperation("remove", path: path, errno: .ioError)
        }
    }

    /// Removes one file; that it is not there is no error.
    static func removeFile(_ path: FilePath) throws {
        if unlink(path.string) != 0, errno != ENOENT { throw failure("unlink", path) }
    }

    /// Renames and makes the new name durable.
    static func rename(_ old: FilePath, to new: FilePath) throws {
        // Qualified by its module, since the name of this function hides that of the C library.
        let result = Glibc.rename(old.string, new.string)
        guard result == 0 else { throw failure("rename", new) }
        try synchronizeDirectory(new.removingLastComponent())
    }

    /// Makes the entries of a directory durable.
    static func synchronizeDirectory(_ path: FilePath) throws {
        try perform("fsync", path) {
            let descriptor = try FileDescriptor.open(path, .readOnly, options: [.directory, .closeOnExec])
            try descriptor.closeAfter {
                guard fsync(descriptor.rawValue) == 0 else { throw Errno(rawValue: errno) }
            }
        }
    }

    /// Writes a small file whole: under another name first, synchronized, then renamed.
    static func write(_ text: String, to path: FilePath) throws {
        let temporary = FilePath(path.string + ".new")
        try removeFile(temporary)
        try perform("write", temporary) {
            let descriptor = try FileDescriptor.open(
                temporary,
                .writeOnly,
                options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead, .otherRead]
            )
            try descriptor.closeAfter {
                try descriptor.writeAll(text.utf8)
                guard fsync(descriptor.rawValue) == 0 else { throw Errno(rawValue: errno) }
            }
        }
        try rename(temporary, to: path)
    }

    /// Locks a file, which is made if it is missing; nil if it is locked already.
    static func lock(_ path: FilePath) throws -> FileLock? {
        try perform("lock", path) {
            try FileLock.acquire(path, permissions: [.ownerReadWrite, .groupRead, .otherRead])
        }
    }

    /// The last `limit` bytes of a file as text; nil when there is no such file.
    static func tail(_ path: FilePath, limitBytes limit: Int) throws -> String? {
        try perform("read", path) {
            let descriptor: FileDescriptor
            do {
                descriptor = try FileDescriptor.open(path, .readOnly, options: [.noFollow, .closeOnExec])
            } catch Errno.noSuchFileOrDirectory {
                return nil
            }
            return try descriptor.closeAfter {
                let size = try descriptor.seek(offset: 0, from: .end)
                try descriptor.seek(offset: max(0, size - Int64(limit)), from: .start)
                var buffer = [UInt8](repeating: 0, count: limit)
                var filled = 0
                while filled < limit {
                    let count = try buffer.withUnsafeMutableBytes { bytes in
                        try descriptor.read(into: UnsafeMutableRawBufferPointer(rebasing: bytes[filled...]))
                    }
                    if count == 0 { break }
                    filled += count
                }
                return String(decoding: buffer[..<filled], as: UTF8.self)
            }
        }
    }

    /// Runs file operations and says which path an errno came from.
    static func perform<Value>(_ operation: String, _ path: FilePath, _ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let errno as Errno {
            if [.isDirectory, .tooManySymbolicLinkLevels].contains(errno) {
                throw EmbeddedPostgresError.misplaced(path: path, needed: .file)
            }
            if errno == .permissionDenied, let found = try? status(path) {
                throw EmbeddedPostgresError.noAccess(
                    path: path, owner: ServerAccount(found).name, isOwn: found.userID.rawValue == geteuid())
            }
            throw EmbeddedPostgresError.fileOperation(operation, path: path, errno: errno)
        }
    }

    private static func failure(_ operation: String, _ path: FilePath) -> EmbeddedPostgresError {
        .fileOperation(operation, path: path, errno: Errno(rawValue: errno))
    }
}
