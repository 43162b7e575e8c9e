import CLibisal
import Glibc
import MusterSystem

/// The file systems that the kernel has mounted.
struct Kernel: FileSystem {
    func openDirectory(at path: String) throws(SystemError) -> Int32 {
        try Self.patiently { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    }

    func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
        try Self.patiently { openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
    }

    func openFile(_ name: String, in directory: Int32, _ creation: Directory.Creation) throws(SystemError) -> Int32 {
        // O_NONBLOCK means nothing to a regular file, and keeps a pipe with this name from blocking us forever.
        let common = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK
        let flags =
            switch creation {
            case .never: common | O_RDONLY
            case .neverForWriting: common | O_RDWR
            case .always: common | O_RDWR | O_CREAT | O_EXCL
            }
        return try Self.patiently {
            openat(directory, name, flags, 0o644)
        } undo: {
            // The next try makes the file once more.
            if creation == .always { unlinkat(directory, name, 0) }
        }
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
            BlockingPool.beat()
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

    func isFree(_ path: String, in directory: Int32) -> Bool {
        BlockingPool.beat()
        let number = muster_open_unlinked(directory, path)
        guard number < 0 else {
            close(number)
            return false
        }
        return errno == ENOENT
    }

    func close(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

    func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .last }
        return FileStatus(status)
    }

    func status(of name: String, in directory: Int32) throws(SystemError) -> FileStatus {
        var status = stat()
        BlockingPool.beat()
        guard fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { throw .last }
        return FileStatus(status)
    }

    func status(at path: String) throws(SystemError) -> FileStatus {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .last }
        return FileStatus(status)
    }

    func checkWritable(_ path: String) throws(SystemError) {
        guard access(path, W_OK | X_OK) == 0 else { throw .last }
    }

    func space(of descriptor: Int32) throws(SystemError) -> FileSystemSpace {
        var space = statvfs()
        try Self.repeating { fstatvfs(descriptor, &space) }
        let bytes = { (blocks: UInt64) -> Int64 in
            let (bytes, overflow) = blocks.multipliedReportingOverflow(by: UInt64(space.f_frsize))
            return overflow ? .max : Int64(clamping: bytes)
        }
        return FileSystemSpace(
            free: bytes(UInt64(space.f_bavail)), whole: bytes(UInt64(space.f_blocks)),
            hasInodes: space.f_files == 0 || space.f_favail > 0, isReadOnly: space.f_flag & UInt(ST_RDONLY) != 0)
    }

    func makeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
        BlockingPool.beat()
        guard mkdirat(directory, name, 0o777) == 0 else { throw .last }
    }

    func removeFile(_ name: String, in directory: Int32) throws(SystemError) {
        BlockingPool.beat()
        guard unlinkat(directory, name, 0) == 0 else { throw .last }
    }

    func removeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
        BlockingPool.beat()
        guard unlinkat(directory, name, AT_REMOVEDIR) == 0 else { throw .last }
    }

    func move(
        _ name: String, in from: Int32, to newName: String, in to: Int32, _ move: Directory.Move
    ) throws(SystemError) {
        BlockingPool.beat()
        let result =
            switch move {
            case .exclusive: muster_renameat2(from, name, to, newName, MUSTER_RENAME_NOREPLACE)
            case .replacing: renameat(from, name, to, newName)
            case .exchanging: muster_renameat2(from, name, to, newName, MUSTER_RENAME_EXCHANGE)
            }
        guard result == 0 else { throw .last }
    }

    func link(_ name: String, in from: Int32, to newName: String, in to: Int32) throws(SystemError) {
        BlockingPool.beat()
        guard linkat(from, name, to, newName, 0) == 0 else { throw .last }
    }

    func names(in directory: Int32) throws(SystemError) -> [String] {
        // A descriptor of its own, since reading moves the position of all users of a shared one.
        let number = try Self.patiently { openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
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

    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int {
        BlockingPool.beat()
        return try Self.repeating { pread(descriptor, buffer.baseAddress, buffer.count, Int(offset)) }
    }

    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int64) throws(SystemError) -> Int {
        try Self.repeating { pwrite(descriptor, bytes.baseAddress, bytes.count, Int(offset)) }
    }

    func reserve(_ size: Int64, for descriptor: Int32) throws(SystemError) {
        try Self.repeating { muster_fallocate(descriptor, MUSTER_FALLOC_FL_KEEP_SIZE, 0, size) }
    }

    func setModificationTime(_ seconds: Int64, of descriptor: Int32) throws(SystemError) {
        // UTIME_OMIT, a macro that Swift does not import, leaves the time of the last access as it is.
        let unchanged = timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2)
        let times = [unchanged, timespec(tv_sec: Int(seconds), tv_nsec: 0)]
        guard futimens(descriptor, times) == 0 else { throw .last }
    }

    func attribute(_ name: String, of descriptor: Int32, limit: Int) throws(SystemError) -> [UInt8] {
        BlockingPool.beat()
        var value = [UInt8](repeating: 0, count: limit)
        let count = muster_fgetxattr(descriptor, name, &value, limit)
        guard count >= 0 else { throw .last }
        return Array(value.prefix(count))
    }

    func setAttribute(_ name: String, of descriptor: Int32, to value: [UInt8]) throws(SystemError) {
        BlockingPool.beat()
        guard muster_fsetxattr(descriptor, name, value, value.count, 0) == 0 else { throw .last }
    }

    func clone(_ source: Int32, to copy: Int32) throws(SystemError) -> Bool {
        do {
            try Self.repeating { muster_clone(copy, source) }
            return true
        } catch {
            switch error.number {
            case EOPNOTSUPP, ENOTTY, EINVAL, EXDEV, ENOSYS, EPERM, ETXTBSY: return false
            default: throw error
            }
        }
    }

    func copy(_ source: Int32, to copy: Int32, at offset: Int64, length: Int) throws(SystemError) -> Int {
        try Self.repeating {
            var (from, to) = (offset, offset)
            return muster_copy_file_range(source, &from, copy, &to, length, 0)
        }
    }

    func synchronize(_ descriptor: Int32, _ extent: FileSystemSync) throws(SystemError) {
        try Self.repeating {
            switch extent {
            case .data: fdatasync(descriptor)
            case .file: fsync(descriptor)
            case .everything: muster_syncfs(descriptor)
            }
        }
    }

    /// Makes a call until no signal interrupts it.
    @discardableResult
    private static func repeating<Count: BinaryInteger>(_ call: () -> Count) throws(SystemError) -> Count {
        while true {
            let result = call()
            if result >= 0 { return result }
            guard errno == EINTR else { throw .last }
        }
    }
}
