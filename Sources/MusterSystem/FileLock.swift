import Glibc
public import SystemPackage

/// An advisory lock on a file, held until the object is freed or the process ends, in whatever way.
///
/// It is a lock of `flock`, which belongs to the open file, not to the process: a child that is given the descriptor holds
/// the lock together with this process, and goes on holding it afterwards.
public final class FileLock: Sendable {
    /// The locked file.
    public let descriptor: FileDescriptor

    private init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    deinit {
        // Nothing can be done about a failing close, and the kernel has released the descriptor all the same.
        try? descriptor.close()
    }

    /// Locks the file, which is made if it is missing; nil if it is locked already.
    ///
    /// - Parameter permissions: those of a file that is made.
    public static func acquire(_ path: FilePath, permissions: FilePermissions) throws(Errno) -> FileLock? {
        let lock: FileLock
        do {
            lock = FileLock(
                try FileDescriptor.open(
                    path, .readWrite, options: [.create, .noFollow, .closeOnExec], permissions: permissions))
        } catch {
            throw error as? Errno ?? .ioError
        }
        guard flock(lock.descriptor.rawValue, LOCK_EX | LOCK_NB) != 0 else { return lock }
        guard errno == EWOULDBLOCK else { throw Errno(rawValue: errno) }
        return nil
    }

    /// Gives the lock back, even if other processes have the descriptor: a child that was forked a moment ago has it until
    /// it executes its program.
    public func unlock() {
        // The descriptor is open, so this can't fail.
        _ = flock(descriptor.rawValue, LOCK_UN)
    }

    /// Writes the id of this process into the file, for the messages of processes that find it locked. A failure costs no more than these ids, and
    /// a full disk must keep no process from its lock.
    public func sign() {
        // The file may hold the id of an earlier process.
        guard (try? descriptor.resize(to: 0)) != nil else { return }
        _ = try? descriptor.writeAll(toAbsoluteOffset: 0, "\(getpid())\n".utf8)
    }

    /// The process that has signed a lock file; nil where there is no file, or none has.
    public static func signature(_ path: FilePath) -> Int32? {
        guard let descriptor = try? FileDescriptor.open(path, .readOnly, options: [.noFollow, .closeOnExec]) else {
            return nil
        }
        var text = [UInt8](repeating: 0, count: 16)
        let count = try? descriptor.closeAfter { try text.withUnsafeMutableBytes { try descriptor.read(into: $0) } }
        return Int32(String(decoding: text.prefix(count ?? 0).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}
