/// A file system, as the calls of an operating system show it: all that a sink needs of one.
///
/// `Kernel` makes the calls. Tests put an implementation of their own between, which ends, fails or forgets at any call
/// (adr/0049). Each call is atomic, and blocks. Descriptors are numbers that the implementation gives out; names are
/// single components and follow no link, unless something else is said.
protocol FileSystem: Sendable {
    /// Opens the directory at `path`; links in it are followed.
    func openDirectory(at path: String) throws(SystemError) -> Int32
    /// Opens the directory `name`. Throws ENOTDIR for a link and for anything else that is no directory.
    func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32
    /// Opens the file `name`. A link is ELOOP.
    func openFile(_ name: String, in directory: Int32, _ creation: Directory.Creation) throws(SystemError) -> Int32
    /// Whether nothing stands at `path`, which may have several components. A single call decides: `false` if it can't
    /// tell, or if there is a link on the way.
    func isFree(_ path: String, in directory: Int32) -> Bool
    /// Closes a descriptor.
    func close(_ descriptor: Int32)

    /// The status of an open file or directory.
    func status(of descriptor: Int32) throws(SystemError) -> FileStatus
    /// The status of the entry `name`.
    func status(of name: String, in directory: Int32) throws(SystemError) -> FileStatus
    /// The status of what `path` leads to; links are followed.
    func status(at path: String) throws(SystemError) -> FileStatus
    /// Throws unless this process may make entries in the directory at `path`.
    func checkWritable(_ path: String) throws(SystemError)
    /// What the file system has left.
    func space(of descriptor: Int32) throws(SystemError) -> FileSystemSpace

    /// Makes the directory `name`; EEXIST if there is anything.
    func makeDirectory(_ name: String, in directory: Int32) throws(SystemError)
    /// Removes the file `name`.
    func removeFile(_ name: String, in directory: Int32) throws(SystemError)
    /// Removes the directory `name`; ENOTEMPTY or EEXIST if it has entries.
    func removeDirectory(_ name: String, in directory: Int32) throws(SystemError)
    /// Gives the entry `name` of `from` the name `newName` in `to` instead.
    func move(
        _ name: String, in from: Int32, to newName: String, in to: Int32, _ move: Directory.Move
    ) throws(SystemError)
    /// Gives the file `name` a second name; EEXIST if that is taken.
    func link(_ name: String, in from: Int32, to newName: String, in to: Int32) throws(SystemError)
    /// Every name in the directory, but `.` and `..`, in no order.
    func names(in directory: Int32) throws(SystemError) -> [String]

    /// Reads up to the length of `buffer`; 0 at the end of the file.
    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int
    /// Writes some of `bytes`; returns how many.
    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int64) throws(SystemError) -> Int
    /// Reserves storage for the first `size` bytes without changing the file's size.
    func reserve(_ size: Int64, for descriptor: Int32) throws(SystemError)
    /// Sets the time of the last change to a whole second since 1970.
    func setModificationTime(_ seconds: Int64, of descriptor: Int32) throws(SystemError)
    /// The value of an extended attribute. Throws ENODATA if there is none, and ERANGE if it has more than `limit` bytes.
    func attribute(_ name: String, of descriptor: Int32, limit: Int) throws(SystemError) -> [UInt8]
    /// Sets an extended attribute, new or existing.
    func setAttribute(_ name: String, of descriptor: Int32, to value: [UInt8]) throws(SystemError)
    /// Gives the empty file `copy` the content of `source` without copying it; `false` if the file system can't.
    func clone(_ source: Int32, to copy: Int32) throws(SystemError) -> Bool
    /// Copies up to `length` bytes at `offset` to the same place of `copy`; returns how many.
    func copy(_ source: Int32, to copy: Int32, at offset: Int64, length: Int) throws(SystemError) -> Int

    /// Makes what was written durable.
    func synchronize(_ descriptor: Int32, _ extent: FileSystemSync) throws(SystemError)
}

/// How much a sync makes durable.
enum FileSystemSync: Hashable, Sendable {
    /// The content of the file, with what is needed to read it back.
    case data
    /// The content and the metadata; for a directory, its entries.
    case file
    /// Everything on the file system.
    case everything
}

/// What a file system has left for an unprivileged process.
struct FileSystemSpace: Hashable, Sendable {
    /// Bytes that may still be occupied.
    var free: Int64
    /// Bytes in all.
    var whole: Int64
    /// Whether another file can be made; `true` if the file system doesn't count its files.
    var hasInodes: Bool
    /// Whether it is on a mount that can only be read.
    var isReadOnly: Bool
}
