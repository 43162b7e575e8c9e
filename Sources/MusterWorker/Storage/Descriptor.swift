import Glibc

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
    /// Where it was opened.
    let system: any FileSystem
    private let number: Int32

    /// Takes over a descriptor that no other code closes.
    init(owning number: Int32, of system: any FileSystem = Kernel()) {
        self.number = number
        self.system = system
    }

    deinit {
        system.close(number)
    }

    /// Lets `body` use the descriptor's number, which it must not keep.
    func with<Value, Failure: Error>(_ body: (Int32) throws(Failure) -> Value) throws(Failure) -> Value {
        try body(number)
    }

    /// The file's current status.
    func status() throws(SystemError) -> FileStatus { try system.status(of: number) }

    /// Writes all of `bytes` at `offset`, also after short writes.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) {
        var rest = bytes[...]
        var position = offset
        while !rest.isEmpty {
            let written = try system.write(UnsafeRawBufferPointer(rebasing: rest), to: number, at: position)
            // POSIX allows 0; without this check a device that accepts nothing would be asked forever.
            guard written > 0 else { throw SystemError(EIO) }
            rest = rest.dropFirst(written)
            position += Int64(written)
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
            let got = try system.read(number, into: piece, at: offset + Int64(count))
            if got == 0 { break }
            count += got
        }
        return count
    }

    /// Sets the modification time to a whole second since 1970; it is durable after `synchronize()`.
    func setModificationTime(_ seconds: Int64) throws(SystemError) {
        try system.setModificationTime(seconds, of: number)
    }

    /// The value of an extended attribute. Throws ENODATA if there is none, and ERANGE if it has more than `limit` bytes.
    func attribute(_ name: String, limit: Int) throws(SystemError) -> [UInt8] {
        try system.attribute(name, of: number, limit: limit)
    }

    /// Sets an extended attribute, new or existing. Of the rest of the file only the time of its last change of status
    /// (ctime) changes.
    func setAttribute(_ name: String, to value: [UInt8]) throws(SystemError) {
        try system.setAttribute(name, of: number, to: value)
    }

    /// Makes the content durable, with what is needed to read it back.
    func synchronizeData() throws(SystemError) { try system.synchronize(number, .data) }

    /// Makes the content and the metadata durable; for a directory, its entries.
    func synchronize() throws(SystemError) { try system.synchronize(number, .file) }

    /// Makes everything on the file system durable that was written before.
    func synchronizeFileSystem() throws(SystemError) { try system.synchronize(number, .everything) }

    /// Reserves storage for the first `size` bytes without changing the file's size.
    func reserve(_ size: Int64) throws(SystemError) { try system.reserve(size, for: number) }

    /// What the file system has left.
    func space() throws(SystemError) -> FileSystemSpace { try system.space(of: number) }

    /// Clones all of this file's content into `other`, an empty file, without copying it; later writes to one don't
    /// change the other.
    ///
    /// - Returns: `false` if the file system can't clone.
    func clone(to other: Descriptor) throws(SystemError) -> Bool { try system.clone(number, to: other.number) }

    /// Asks the system to copy up to `length` bytes at `offset` to the same place of `other`, without passing them
    /// through this process.
    ///
    /// - Returns: how many bytes it copied; 0 at the end of the file, and on file systems that wrongly report it.
    func copy(to other: Descriptor, at offset: Int64, length: Int) throws(SystemError) -> Int {
        try system.copy(number, to: other.number, at: offset, length: length)
    }
}
