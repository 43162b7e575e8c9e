import Glibc
import SystemPackage

/// An advisory lock on a file, held until the object is freed or the process ends, in whatever way.
///
/// It is a lock of `flock`, which belongs to the open file, not to the process: a child that is given the descriptor holds
/// the lock together with this process, and goes on holding it afterwards.
final class FileLock: Sendable {
    /// The locked file.
    let descriptor: FileDescriptor

    /// Gives the lock back, even if other processes have the descriptor: a child that was forked a moment ago has it until
    /// it executes its program.
    func unlock() {
        // The descriptor is open, so this can't fail.
        _ = flock(descriptor.rawValue, LOCK_UN)
    }

    /// Locks the file, which is made if it is missing; nil if it is locked already.
    static func acquire(_ path: FilePath) throws -> FileLock? {
        try PrivateFiles.perform("lock", path) {
            let descriptor = try FileDescriptor.open(
                path,
                .readWrite,
                options: [.create, .noFollow, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead, .otherRead]
            )
            guard flock(descriptor.rawValue, LOCK_EX | LOCK_NB) == 0 else {
                let reason = Errno(rawValue: errno)
                try descriptor.close()
                if reason == .wouldBlock { return nil }
                throw reason
            }
            return FileLock(descriptor: descriptor)
        }
    }

    /// Writes this process's id into the file, for a process that finds it locked. A full disk is ignored here: it has no
    /// room for a server either, and `SpaceReserve.begin` reports that in full before the server is started.
    func sign(_ path: FilePath) throws {
        try PrivateFiles.perform("write", path) {
            guard ftruncate(descriptor.rawValue, 0) == 0 else { throw Errno(rawValue: errno) }
            do {
                try descriptor.writeAll(toAbsoluteOffset: 0, "\(getpid())\n".utf8)
            } catch let error as Errno where [ENOSPC, EDQUOT].contains(error.rawValue) {}
        }
    }

    /// The process id in a lock file.
    static func signature(_ path: FilePath) throws -> Int32? {
        guard let text = try PrivateFiles.tail(path, limitBytes: 64) else { return nil }
        return Int32(text.prefix(while: \.isNumber))
    }

    private init(descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    deinit {
        // Nothing can be done about a failing close, and the kernel has released the descriptor all the same.
        try? descriptor.close()
    }
}
