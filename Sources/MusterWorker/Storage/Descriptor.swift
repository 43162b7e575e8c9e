import CLibisal
import Glibc
import MusterSystem

/// The identity of a file, whatever its name: the device and the inode.
struct FileIdentity: Hashable, Sendable {
    /// The file system.
    let device: UInt64
    /// The file within it.
    let inode: UInt64
}

/// What `fstat` tells of a file.
struct FileStatus: Hashable, Sendable {
    /// The kinds of entries that are told apart here.
    enum Kind: Hashable, Sendable {
        /// A regular file.
        case file
        /// A directory.
        case directory
        /// A symbolic link; it is never followed.
        case symbolicLink
        /// A device, a socket, a pipe.
        case other

        /// A description for messages.
        var name: String {
            switch self {
            case .file: "a file"
            case .directory: "a directory"
            case .symbolicLink: "a symbolic link"
            case .other: "no regular file"
            }
        }
    }

    /// Which file it is.
    let identity: FileIdentity
    /// The kind of the entry.
    let kind: Kind
    /// Its size in bytes.
    let size: Int64
    /// Bytes of storage that it occupies, reserved ones included.
    let allocated: Int64
    /// How many names it has; 0 once it was deleted.
    let links: UInt64
    /// When its content was last changed, in whole seconds since 1970, and the nanoseconds beyond them.
    let modified: Int64
    let modifiedNanoseconds: Int64

    /// Converts the system's `stat`.
    init(_ status: stat) {
        identity = FileIdentity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .directory
            case S_IFLNK: .symbolicLink
            default: .other
            }
        size = Int64(status.st_size)
        allocated = Int64(status.st_blocks) * 512
        links = UInt64(status.st_nlink)
        modified = Int64(status.st_mtim.tv_sec)
        modifiedNanoseconds = Int64(status.st_mtim.tv_nsec)
    }

    /// Whether it is the same file as `earlier` with the same content, as far as size and modification time tell.
    func isUnchanged(since earlier: FileStatus) -> Bool {
        identity == earlier.identity && size == earlier.size && modified == earlier.modified
            && modifiedNanoseconds == earlier.modifiedNanoseconds
    }
}

/// Owns a file descriptor and closes it. Wraps every call on it that this module needs; errors are `SystemError`.
final class Descriptor: Sendable {
    private let number: Int32

    /// Takes over a descriptor that no other code closes.
    init(owning number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }

    /// Opens something. If the process or the system has no descriptor left, or only those that are for system
    /// libraries, tries again for a second at the most: other descriptors are closed all the time. Blocks.
    ///
    /// - Parameters:
    ///   - undo: called after a descriptor for system libraries was closed again.
    ///   - limit: how many descriptors the process may have open.
    static func patiently(
        _ open: () -> Int32, undo: () -> Void = {}, limit: Int? = OpenDescriptors.limit
    ) throws(SystemError) -> Int32 {
        var waits = 50
        while true {
            let opened = open()
            let number = OpenDescriptors.sparing(opened, limit: limit)
            if number >= 0 { return number }
            let error = SystemError.last
            if opened >= 0 { undo() }
            guard error.isLackOfDescriptors, waits > 0 else { throw error }
            waits -= 1
            usleep(20_000)
        }
    }

    /// Lets `body` use the descriptor's number, which it must not keep.
    func with<Value, Failure: Error>(_ body: (Int32) throws(Failure) -> Value) throws(Failure) -> Value {
        BlockingPool.beat()
        return try body(number)
    }

    /// The file's current status.
    func status() throws(SystemError) -> FileStatus {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw .last }
        return FileStatus(status)
    }

    /// Writes all of `bytes` at `offset`, also after short writes.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        var rest = bytes[...]
        var position = offset
        while !rest.isEmpty {
            let piece = UnsafeRawBufferPointer(rebasing: rest)
            let written = pwrite(number, piece.baseAddress, piece.count, Int(position))
            if written > 0 {
                rest = rest.dropFirst(written)
                position += Int64(written)
            } else if written == 0 {
                // POSIX allows 0; without this check a device that accepts nothing would be asked forever.
                throw SystemError(EIO)
            } else if errno != EINTR {
                throw .last
            }
        }
    }

    /// Writes all of `bytes` at `offset`.
    func write(_ bytes: [UInt8], at offset: Int64) throws(SystemError) {
        // The standard library's closures of this kind don't carry the error's type.
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try write(bytes, at: offset) }
        }
        try result.get()
    }

    /// Reads into `buffer` from `offset` until it is full or the file ends; returns how many bytes were read.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        var count = 0
        while count < buffer.count {
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            BlockingPool.beat()
            let got = pread(number, piece.baseAddress, piece.count, Int(offset) + count)
            if got > 0 {
                count += got
            } else if got == 0 {
                break
            } else if errno != EINTR {
                throw .last
            }
        }
        return count
    }

    /// Sets the modification time to a whole second since 1970; it is durable after `synchronize()`.
    func setModificationTime(_ seconds: Int64) throws(SystemError) {
        // UTIME_OMIT, a macro that Swift does not import, leaves the time of the last access as it is.
        let unchanged = timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2)
        let times = [unchanged, timespec(tv_sec: Int(seconds), tv_nsec: 0)]
        guard futimens(number, times) == 0 else { throw .last }
    }

    /// Makes the content durable, with what is needed to read it back.
    func synchronizeData() throws(SystemError) {
        while fdatasync(number) != 0 {
            guard errno == EINTR else { throw .last }
        }
    }

    /// Makes the content and the metadata durable; for a directory, its entries.
    func synchronize() throws(SystemError) {
        while fsync(number) != 0 {
            guard errno == EINTR else { throw .last }
        }
    }

    /// Makes everything on the file system durable that was written before.
    func synchronizeFileSystem() throws(SystemError) {
        while muster_syncfs(number) != 0 {
            guard errno == EINTR else { throw .last }
        }
    }

    /// Reserves storage for the first `size` bytes without changing the file's size.
    func reserve(_ size: Int64) throws(SystemError) {
        while muster_fallocate(number, MUSTER_FALLOC_FL_KEEP_SIZE, 0, size) != 0 {
            guard errno == EINTR else { throw .last }
        }
    }

    /// How many bytes an unprivileged process may still occupy on the file system, and how many it has in all.
    func room() throws(SystemError) -> (free: Int64, whole: Int64) {
        let space = try fileSystem()
        let bytes = { (blocks: UInt64) -> Int64 in
            let (bytes, overflow) = blocks.multipliedReportingOverflow(by: UInt64(space.f_frsize))
            return overflow ? .max : Int64(clamping: bytes)
        }
        return (bytes(UInt64(space.f_bavail)), bytes(UInt64(space.f_blocks)))
    }

    /// Whether it is on a mount that can only be read.
    func isReadOnly() throws(SystemError) -> Bool { try fileSystem().f_flag & UInt(ST_RDONLY) != 0 }

    /// Whether the file system has an inode left for another file of an unprivileged process; `true` if it doesn't count inodes.
    func hasInodes() throws(SystemError) -> Bool {
        let space = try fileSystem()
        return space.f_files == 0 || space.f_favail > 0
    }

    private func fileSystem() throws(SystemError) -> statvfs {
        var space = statvfs()
        while fstatvfs(number, &space) != 0 {
            guard errno == EINTR else { throw .last }
        }
        return space
    }

    /// Clones all of this file's content into `other`, an empty file, without copying it; later writes to one don't
    /// change the other.
    ///
    /// - Returns: `false` if the file system can't clone.
    func clone(to other: Descriptor) throws(SystemError) -> Bool {
        while muster_clone(other.number, number) != 0 {
            switch errno {
            case EINTR: continue
            case EOPNOTSUPP, ENOTTY, EINVAL, EXDEV, ENOSYS, EPERM, ETXTBSY: return false
            default: throw .last
            }
        }
        return true
    }

    /// Asks the system to copy up to `length` bytes at `offset` to the same place of `other`, without passing them
    /// through this process.
    ///
    /// - Returns: how many bytes it copied; 0 at the end of the file, and on file systems that wrongly report it.
    func copy(to other: Descriptor, at offset: Int64, length: Int) throws(SystemError) -> Int {
        var from = offset
        var to = offset
        while true {
            let copied = muster_copy_file_range(number, &from, other.number, &to, length, 0)
            if copied >= 0 { return copied }
            guard errno == EINTR else { throw .last }
        }
    }
}
