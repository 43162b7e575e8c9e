import CLibisal
import Glibc

/// Owns an open directory; everything below it is reached by single names relative to it, and no link is ever followed.
final class Directory: Sendable {
    /// The open directory, for `fsync` and the like.
    let descriptor: Descriptor
    /// Which directory it is.
    let identity: FileIdentity

    /// How a file is moved to a name that may be taken.
    enum Move: Hashable, Sendable {
        /// EEXIST if the name is taken, so that only one caller succeeds.
        case exclusive
        /// Replaces the file that has the name.
        case replacing
        /// The two files swap their names.
        case exchanging
    }

    private init(_ descriptor: Descriptor) throws(SystemError) {
        self.descriptor = descriptor
        identity = try descriptor.status().identity
    }

    /// Opens the directory at `path`; links in `path` are the operator's own choice and are followed.
    convenience init(path: String) throws(SystemError) {
        let number = try Descriptor.patiently { Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        try self.init(Descriptor(owning: number))
    }

    /// Opens the directory `name` in this one. Throws ENOTDIR for a link and for anything else that is no directory.
    func directory(_ name: String) throws(SystemError) -> Directory {
        let number = try Descriptor.patiently {
            descriptor.with { openat($0, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        }
        return try Directory(Descriptor(owning: number))
    }

    /// Makes the directory `name`; returns whether it is new.
    func makeDirectory(_ name: String) throws(SystemError) -> Bool {
        if descriptor.with({ mkdirat($0, name, 0o777) }) == 0 { return true }
        guard errno == EEXIST else { throw making(.last) }
        return false
    }

    /// What opening a file does if it is missing or there already.
    enum Creation: Hashable, Sendable {
        /// A missing file is ENOENT; the file is opened for reading.
        case never
        /// A missing file is ENOENT; the file is opened for reading and writing.
        case neverForWriting
        /// An existing file is EEXIST; the file is opened for reading and writing.
        case always
    }

    /// Opens the regular file `name`. A link is ELOOP; anything else that is no regular file is EINVAL.
    func file(_ name: String, creation: Creation) throws(SystemError) -> (descriptor: Descriptor, status: FileStatus) {
        // O_NONBLOCK means nothing to a regular file, and keeps a pipe with this name from blocking us forever.
        let common = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
        let flags =
            switch creation {
            case .never: common | O_RDONLY
            case .neverForWriting: common | O_RDWR
            case .always: common | O_RDWR | O_CREAT | O_EXCL
            }
        let number: Int32
        do {
            number = try Descriptor.patiently {
                descriptor.with { openat($0, name, flags, 0o644) }
            } undo: {
                // The next try makes the file once more.
                if creation == .always { descriptor.with { _ = unlinkat($0, name, 0) } }
            }
        } catch {
            throw making(error)
        }
        let opened = Descriptor(owning: number)
        let status = try opened.status()
        guard status.kind == .file else { throw SystemError(EINVAL) }
        return (opened, status)
    }

    /// Adds to the error of making an entry whether the file system is out of inodes.
    private func making(_ error: SystemError) -> SystemError {
        var error = error
        error.isForInodes = error.isLackOfRoom && (try? descriptor.hasInodes()) == false
        return error
    }

    /// The status of `name`; `nil` if there is no such entry.
    func status(of name: String) throws(SystemError) -> FileStatus? {
        var status = stat()
        guard descriptor.with({ fstatat($0, name, &status, AT_SYMLINK_NOFOLLOW) }) == 0 else {
            if errno == ENOENT { return nil }
            throw .last
        }
        return FileStatus(status)
    }

    /// Whether nothing stands at `path` below it. A single call decides: `false` if it can't tell, or if there is a link
    /// on the way.
    func isFree(_ path: String) -> Bool {
        let number = descriptor.with { muster_open_unlinked($0, path) }
        guard number < 0 else {
            close(number)
            return false
        }
        return errno == ENOENT
    }

    /// Removes the file `name`; returns whether there was one.
    func remove(_ name: String) throws(SystemError) -> Bool {
        if descriptor.with({ unlinkat($0, name, 0) }) == 0 { return true }
        guard errno == ENOENT else { throw .last }
        return false
    }

    /// Removes the directory `name`; returns whether it is gone, `false` if it is not empty.
    func removeDirectory(_ name: String) throws(SystemError) -> Bool {
        if descriptor.with({ unlinkat($0, name, AT_REMOVEDIR) }) == 0 { return true }
        switch errno {
        case ENOENT: return true
        case ENOTEMPTY, EEXIST: return false
        default: throw .last
        }
    }

    /// Throws ESTALE once the directory itself was removed: nothing can be moved out of it or into it ever again.
    func refuseIfRemoved() throws(SystemError) {
        guard try descriptor.status().links > 0 else { throw SystemError(ESTALE) }
    }

    /// The error, but ESTALE instead of ENOENT if the directory itself was removed.
    func cause(of error: SystemError) -> SystemError {
        guard error.number == ENOENT, (try? descriptor.status().links) == 0 else { return error }
        return SystemError(ESTALE)
    }

    /// Moves the file `name` to `directory` under the same name. If that is taken, deletes the file here; a missing file
    /// is no error.
    func handBack(_ name: String, to directory: Directory) throws(SystemError) {
        do {
            try moveExclusively(name, to: name, in: directory)
        } catch {
            switch error.number {
            case ENOENT: return
            case EEXIST: _ = try remove(name)
            default: throw error
            }
        }
    }

    /// Moves the file `name` to `newName` in `directory`; EEXIST if that is taken.
    ///
    /// Some file systems, such as NFS, have no exclusive rename. There a second name (a hard link) is used, which is
    /// exclusive as well: a process that dies before it removes the first name leaves one file with two names.
    func moveExclusively(_ name: String, to newName: String, in directory: Directory) throws(SystemError) {
        do {
            try move(name, to: newName, in: directory, .exclusive)
        } catch {
            guard [EINVAL, ENOSYS, EOPNOTSUPP].contains(error.number) else { throw error }
            try link(name, to: newName, in: directory)
            _ = try remove(name)
        }
    }

    /// Moves the file `name` to `newName` in `directory`.
    func move(_ name: String, to newName: String, in directory: Directory, _ move: Move) throws(SystemError) {
        let (from, to) = (descriptor, directory.descriptor)
        let result = from.with { from in
            to.with { to in
                switch move {
                case .exclusive: muster_renameat2(from, name, to, newName, MUSTER_RENAME_NOREPLACE)
                case .replacing: renameat(from, name, to, newName)
                case .exchanging: muster_renameat2(from, name, to, newName, MUSTER_RENAME_EXCHANGE)
                }
            }
        }
        guard result == 0 else { throw .last }
    }

    /// Gives the file `name` a second name; EEXIST if that is taken.
    func link(_ name: String, to newName: String, in directory: Directory) throws(SystemError) {
        let (from, to) = (descriptor, directory.descriptor)
        guard from.with({ from in to.with { linkat(from, name, $0, newName, 0) } }) == 0 else { throw .last }
    }

    /// Every name in the directory, but `.` and `..`, in no order.
    func names() throws(SystemError) -> [String] {
        // A descriptor of its own, since reading moves the position of all users of a shared one.
        let number = try Descriptor.patiently {
            descriptor.with { openat($0, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        }
        guard let stream = fdopendir(number) else {
            let error = SystemError.last
            close(number)
            throw error
        }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw .last }
                return names
            }
            let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: entry.pointee.d_name)) {
                    String(cString: $0)
                }
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }
}
