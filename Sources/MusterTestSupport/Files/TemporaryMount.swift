import Glibc
public import SystemPackage

/// A small file system of its own, which can be filled: unmounted by `unmount()`, or when this object is freed.
public final class TemporaryMount: Sendable {
    private let directory: TemporaryDirectory

    /// Where it is; other accounts can reach what is in it.
    public var path: FilePath { directory.path }

    /// Whether this process may mount, tried once.
    public static let isPermitted: Bool = (try? TemporaryMount(mebibytes: 1)) != nil

    /// Mounts a file system with room for this many MiB and files; 0 means no limit.
    public init(mebibytes: Int, files: Int = 0) throws {
        directory = try TemporaryDirectory()
        let options = "size=\(mebibytes)m,nr_inodes=\(files),mode=0755"
        guard mount("tmpfs", directory.path.string, "tmpfs", 0, options) == 0 else {
            throw Errno(rawValue: errno)
        }
    }

    deinit { unmount() }

    /// Unmounts it, with everything in it.
    public func unmount() {
        _ = umount2(directory.path.string, Int32(MNT_DETACH))
    }

    /// Bytes that may still be written.
    public func freeBytes() throws -> Int64 {
        var space = statvfs()
        guard statvfs(path.string, &space) == 0 else { throw Errno(rawValue: errno) }
        return Int64(space.f_bavail) * Int64(space.f_frsize)
    }

    /// Fills it with a file called `filler` until only the given number of MiB is free.
    public func fill(leaving mebibytes: Int) throws {
        let bytes = try freeBytes() - Int64(mebibytes) << 20
        guard bytes > 0 else { return }
        let filler = try FileDescriptor.open(
            path.appending("filler"), .readWrite, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        try filler.closeAfter {
            let size = try filler.seek(offset: 0, from: .end)
            let code = posix_fallocate(filler.rawValue, off_t(size), off_t(bytes))
            guard code == 0 else { throw Errno(rawValue: code) }
        }
    }

    /// Deletes the `filler`.
    public func empty() throws {
        guard unlink(path.appending("filler").string) == 0 else { throw Errno(rawValue: errno) }
    }
}
