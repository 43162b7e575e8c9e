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
    convenience init(path: String, on system: any FileSystem = Kernel()) throws(SystemError) {
        try self.init(Descriptor(owning: try system.openDirectory(at: path), of: system))
    }

    /// Opens the directory `name` in this one. Throws ENOTDIR for a link and for anything else that is no directory.
    func directory(_ name: String) throws(SystemError) -> Directory {
        let number = try call { system, number throws(SystemError) in try system.openDirectory(name, in: number) }
        return try Directory(Descriptor(owning: number, of: descriptor.system))
    }

    /// Makes the directory `name`; returns whether it is new.
    func makeDirectory(_ name: String) throws(SystemError) -> Bool {
        do {
            try call { system, number throws(SystemError) in try system.makeDirectory(name, in: number) }
            return true
        } catch {
            guard error.number == EEXIST else { throw making(error) }
            return false
        }
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
        let number: Int32
        do {
            number = try call { system, number throws(SystemError) in try system.openFile(name, in: number, creation) }
        } catch {
            throw making(error)
        }
        let opened = Descriptor(owning: number, of: descriptor.system)
        let status = try opened.status()
        guard status.kind == .file else { throw SystemError(EINVAL) }
        return (opened, status)
    }

    /// Adds to the error of making an entry whether the file system is out of inodes.
    private func making(_ error: SystemError) -> SystemError {
        var error = error
        error.isForInodes = error.isLackOfRoom && (try? descriptor.space().hasInodes) == false
        return error
    }

    /// The status of `name`; `nil` if there is no such entry.
    func status(of name: String) throws(SystemError) -> FileStatus? {
        do {
            return try call { system, number throws(SystemError) in try system.status(of: name, in: number) }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
    }

    /// Whether nothing stands at `path` below it. A single call decides: `false` if it can't tell, or if there is a link
    /// on the way.
    func isFree(_ path: String) -> Bool { call { system, number in system.isFree(path, in: number) } }

    /// Removes the file `name`; returns whether there was one. A directory stays.
    func remove(_ name: String) throws(SystemError) -> Bool {
        do {
            try call { system, number throws(SystemError) in try system.removeFile(name, in: number) }
            return true
        } catch {
            guard error.number == ENOENT || error.number == EISDIR else { throw error }
            return false
        }
    }

    /// Removes the directory `name`; returns whether it is gone, `false` if it is not empty.
    func removeDirectory(_ name: String) throws(SystemError) -> Bool {
        do {
            try call { system, number throws(SystemError) in try system.removeDirectory(name, in: number) }
            return true
        } catch {
            switch error.number {
            case ENOENT: return true
            case ENOTEMPTY, EEXIST: return false
            default: throw error
            }
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
        try call(with: directory) { system, from, to throws(SystemError) in
            try system.move(name, in: from, to: newName, in: to, move)
        }
    }

    /// Gives the file `name` a second name; EEXIST if that is taken.
    func link(_ name: String, to newName: String, in directory: Directory) throws(SystemError) {
        try call(with: directory) { system, from, to throws(SystemError) in
            try system.link(name, in: from, to: newName, in: to)
        }
    }

    /// Every name in the directory, but `.` and `..`, in no order.
    func names() throws(SystemError) -> [String] {
        try call { system, number throws(SystemError) in try system.names(in: number) }
    }

    /// Makes a call on the directory's descriptor.
    private func call<Value, Failure: Error>(
        _ body: (any FileSystem, Int32) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try descriptor.with { number throws(Failure) in try body(descriptor.system, number) }
    }

    /// Makes a call on the descriptors of this directory and another one.
    private func call(
        with other: Directory, _ body: (any FileSystem, Int32, Int32) throws(SystemError) -> Void
    ) throws(SystemError) {
        try call { system, from throws(SystemError) in
            try other.call { _, to throws(SystemError) in try body(system, from, to) }
        }
    }
}
