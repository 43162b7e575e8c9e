import Glibc
import SystemPackage

/// Room on the disk that is kept for the server: a file of allocated blocks without content.
///
/// Files that are fetched next to a cluster may fill its disk to the last byte. A server that can't extend its log stops
/// at once, and can't start again before there is room. So the room is taken first, and given to the server when the rest
/// of the disk is used up. It is not a promise: another process may take what was given back before the server does.
struct SpaceReserve: Sendable {
    /// The file.
    let path: FilePath
    /// Its size when there is room for it, in bytes.
    let size: Int64

    /// What the files of a new cluster take: 40 MiB in PostgreSQL 15, of which 16 MiB are the first segment of its log. In a copy of
    /// a template the server takes these only when it writes.
    static let clusterBytes: Int64 = 48 << 20
    /// The files of a new cluster and its directories: 1,150 with Muster's tables in it, in PostgreSQL 15.
    static let clusterFiles: Int64 = 1_200
    /// The files that a server makes when it is started.
    static let leastFiles: Int64 = 16
    /// What a server must find to be started: two segments of its log.
    static let leastBytes: Int64 = 32 << 20
    /// With less than a segment of its log, the server is in danger.
    static let dangerBytes: Int64 = 16 << 20

    /// Takes the room that is available before a start.
    ///
    /// - Throws: ``EmbeddedPostgresError/diskFull(directory:neededBytes:freeBytes:)`` or
    ///   ``EmbeddedPostgresError/filesFull(directory:neededFiles:freeFiles:)`` when there is not even room for the server; then
    ///   nothing is kept.
    func begin(isNew: Bool) throws {
        guard size > 0 else { return }
        let directory = path.removingLastComponent()
        let files = Self.leastFiles + (isNew ? Self.clusterFiles : 0)
        if let free = try Self.freeFiles(in: directory), free < files {
            throw EmbeddedPostgresError.filesFull(directory: directory, neededFiles: files, freeFiles: free)
        }
        let needed = Self.leastBytes + (isNew ? Self.clusterBytes : 0)
        let free = try Self.freeBytes(in: directory)
        let available = free + (try keptBytes())
        guard available >= needed else {
            release()
            throw EmbeddedPostgresError.diskFull(
                directory: directory, neededBytes: needed, freeBytes: available)
        }
        let target = min(size, available - needed)
        if try keptBytes() > target { release() }
        if target > 0 { keep(target) }
    }

    /// Gives the room to the server when the disk is nearly full, and takes it again when there is enough of it.
    func tend() throws -> EmbeddedPostgres.Space {
        let directory = path.removingLastComponent()
        let free = try Self.freeBytes(in: directory)
        let kept = try keptBytes()
        if kept > 0, free < Self.dangerBytes {
            release()
        } else if kept < size, free - (size - kept) >= Self.leastBytes + Self.dangerBytes {
            keep(size)
        }
        let now = try keptBytes()
        return EmbeddedPostgres.Space(
            directory: directory, freeBytes: try Self.freeBytes(in: directory), keptBytes: now,
            owedBytes: max(0, size - now), freeFiles: try Self.freeFiles(in: directory))
    }

    /// Gives the room back.
    func release() {
        // A file that can't be deleted is found again by the next start.
        _ = unlink(path.string)
    }

    /// The statistics of the file system of a directory.
    private static func space(in directory: FilePath) throws -> statvfs {
        var space = statvfs()
        while statvfs(directory.string, &space) != 0 {
            guard errno == EINTR else {
                throw EmbeddedPostgresError.fileOperation("statvfs", path: directory, errno: Errno(rawValue: errno))
            }
        }
        return space
    }

    /// Files that this process may still make in the file system of a directory; `nil` where they are not counted.
    static func freeFiles(in directory: FilePath) throws -> Int64? {
        let space = try space(in: directory)
        return space.f_files == 0 ? nil : Int64(clamping: space.f_favail)
    }

    /// Bytes that this process may still write in the file system of a directory.
    static func freeBytes(in directory: FilePath) throws -> Int64 {
        let space = try space(in: directory)
        let (bytes, overflow) = UInt64(space.f_bavail).multipliedReportingOverflow(by: UInt64(space.f_frsize))
        return overflow ? .max / 4 : Int64(clamping: min(bytes, UInt64(Int64.max / 4)))
    }

    /// The bytes that the file takes on the disk.
    private func keptBytes() throws -> Int64 {
        try PrivateFiles.status(path)?.sizeAllocated ?? 0
    }

    /// Allocates `bytes`. Where the file system can't, or another process was faster, the file is removed: the server works
    /// without.
    private func keep(_ bytes: Int64) {
        do {
            let descriptor = try FileDescriptor.open(
                path, .readWrite, options: [.create, .noFollow, .closeOnExec], permissions: .ownerReadWrite)
            try descriptor.closeAfter {
                let code = posix_fallocate(descriptor.rawValue, 0, off_t(bytes))
                guard code == 0 else { throw Errno(rawValue: code) }
            }
        } catch {
            release()
        }
    }
}
