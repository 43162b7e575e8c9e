import Glibc
import MusterAPI
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

/// A sink in a temporary directory of its own, deleted with everything in it when the test drops it.
final class ScratchSink: Sendable {
    let path: String
    let sink: SinkDirectory
    let pool: BlockingPool
    let sync: DurableSync
    let finalizer: Finalizer

    /// A sink in which a session has begun: the first one, unless the test has several.
    init(at given: String? = nil, session: SinkSession? = nil) throws {
        path = try given ?? Self.makeDirectory()
        sink = try Self.begin(try session ?? Self.session(1), at: path)
        pool = try BlockingPool(threads: 2)
        sync = DurableSync(sink: sink, pool: pool)
        finalizer = Finalizer(sink: sink, pool: pool, sync: sync)
    }

    /// The installation (the database) that all orders belong to unless they name another.
    static let installation = "3f0c6a52-8d0e-4a3b-9a0f-6f2f0f6f1c11"
    /// The directory that all sessions of the installation share in the sink.
    static let home = ".muster/\(installation)"
    /// Where the parts are, below the sink.
    static let parts = "\(home)/parts"
    /// The directory of the first session alone, for what it is about to put in place or to delete.
    static let own = "\(home)/1"

    /// Begins a session in a directory, whatever mark the directory has.
    static func begin(_ session: SinkSession, at path: String) throws -> SinkDirectory {
        let mark = try SinkDirectory.mark(at: path)
        return try SinkDirectory(name: "test", path: path, session: session, mark: mark)
    }

    /// Begins another session here, on a file system of the test's own.
    func begin(_ number: Int64, on system: any FileSystem) throws -> SinkDirectory {
        try SinkDirectory(
            name: "test", path: path, session: Self.session(number), mark: SinkDirectory.mark(at: path, on: system),
            on: system)
    }

    /// A session of that installation, or of another one.
    static func session(_ number: Int64, of installation: String = installation) throws -> SinkSession {
        try #require(SinkSession(installation: installation, session: SessionID(number)))
    }

    /// Ends the pool's threads and deletes the directory.
    func close() async {
        await pool.shutdown()
        Self.remove(path)
    }

    /// Runs `body` with a sink of its own.
    static func with<Value>(
        at path: String? = nil,
        _ body: (ScratchSink) async throws -> Value
    ) async throws -> Value {
        let scratch = try ScratchSink(at: path)
        do {
            let value = try await body(scratch)
            await scratch.close()
            return value
        } catch {
            await scratch.close()
            throw error
        }
    }

    static func makeDirectory() throws -> String {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(base)/muster-storage.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError.last }
        return template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }

    static func remove(_ path: String) {
        // Depth first; links are removed, not followed.
        if let directory = try? Directory(path: path), let names = try? directory.names() {
            for name in names {
                if (try? directory.status(of: name))??.kind == .directory {
                    remove(path + "/" + name)
                } else {
                    _ = try? directory.remove(name)
                }
            }
        }
        rmdir(path)
    }

    // MARK: - Files by path, as other processes see them

    func open(_ name: String, _ flags: Int32) throws -> Descriptor {
        let number = Glibc.open(path + "/" + name, flags, 0o644)
        guard number >= 0 else { throw SystemError.last }
        return Descriptor(owning: number)
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try open(name, O_WRONLY | O_CREAT | O_TRUNC).write(bytes, at: 0)
    }

    func read(_ name: String) throws -> [UInt8] {
        let file = try open(name, O_RDONLY)
        let size = Int(try file.status().size)
        var bytes = [UInt8](repeating: 0, count: size)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
        return Array(bytes.prefix(count))
    }

    func exists(_ name: String) -> Bool { inode(name) != nil }

    func inode(_ name: String) -> UInt64? {
        var status = stat()
        return lstat(path + "/" + name, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    /// Gives a file a modification time, in seconds since 1970.
    func setModificationTime(_ seconds: Int64, of name: String) throws {
        try open(name, O_RDONLY).setModificationTime(seconds)
    }

    /// The modification time of a file, in seconds since 1970.
    func modificationTime(_ name: String) -> Int64? {
        var status = stat()
        return lstat(path + "/" + name, &status) == 0 ? Int64(status.st_mtim.tv_sec) : nil
    }

    /// The names of everything in the sink itself, except Muster's own directory.
    func fileNames() throws -> [String] { try sink.root.names().filter { $0 != ".muster" }.sorted() }

    func partNames() throws -> [String] { try sink.parts.names().sorted() }

    /// The names of what the session is about to put in place or to delete.
    func ownNames() throws -> [String] { try sink.own.names().sorted() }

    // MARK: - Parts and orders

    /// Makes the part of `task` with `bytes`, as a worker leaves it when all of it is fetched.
    func makePart(_ task: Int64, version: Int32 = 1, _ bytes: [UInt8]) throws {
        let part = try sink.part(task: TaskID(task), version: version)
        try part.write(bytes, at: 0)
    }

    /// The order that fits `bytes` in chunks of `chunkSize`.
    func order(
        _ task: Int64,
        version: Int32 = 1,
        epoch: Int64 = 10,
        path: String,
        _ bytes: [UInt8],
        chunkSize: Int = 1_000,
        expected: [ContentDigest] = [],
        recorded: Set<DigestAlgorithm> = [],
        fenced: Bool = false,
        ifExists: ExistingFileRule = .verify,
        modificationTime: Int64? = nil,
        knownDigests: [ContentDigest] = [],
        held: DestinationPath? = nil,
        installation: String? = ScratchSink.installation
    ) throws -> FinalizeOrder {
        FinalizeOrder(
            task: TaskID(task),
            version: version,
            epoch: LeaseEpoch(epoch),
            path: try DestinationPath(validating: path),
            size: Int64(bytes.count),
            chunks: Self.chunks(of: bytes, size: chunkSize),
            expected: expected,
            recorded: recorded,
            fenced: fenced,
            ifExists: ifExists,
            modificationTime: modificationTime,
            knownDigests: knownDigests,
            held: held,
            installation: installation
        )
    }

    static func chunks(of bytes: [UInt8], size: Int) -> [FinishedChunk] {
        stride(from: 0, to: bytes.count, by: size).compactMap { start in
            let end = min(bytes.count, start + size)
            guard let range = ByteRange(start: Int64(start), end: Int64(end)) else { return nil }
            return FinishedChunk(range: range, crc: CRC32C.extend(CRC32C.empty, bytes[start..<end]))
        }
    }

    /// Bytes that look random and are the same for the same seed.
    static func content(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        return (0..<count).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 24)
        }
    }
}

extension PartFile {
    /// Writes an array.
    func write(_ bytes: [UInt8], at offset: Int64) throws {
        try bytes.withUnsafeBytes { try write($0, at: offset) }
    }
}

extension FinalizeOutcome {
    /// Whether the file is in place.
    var isInPlace: Bool { finished != nil }

    /// The report on the file that is in place.
    var finished: Report.Finished? {
        if case .inPlace(let finished) = self { finished } else { nil }
    }
}

/// A temporary file system of a given size, for tests that run as root; unmounted by `unmount`.
struct ScratchMount {
    let path: String

    /// Whether this process may mount, tried once.
    static let isPermitted: Bool = {
        guard geteuid() == 0, let path = try? ScratchSink.makeDirectory() else { return false }
        defer { rmdir(path) }
        guard mount("tmpfs", path, "tmpfs", 0, "size=64k") == 0 else { return false }
        return umount2(path, Int32(MNT_DETACH)) == 0
    }()

    init(size: String) throws {
        path = try ScratchSink.makeDirectory()
        try mountAgain(size: size)
    }

    func mountAgain(size: String) throws {
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(size)") == 0 else { throw SystemError.last }
    }

    func unmount() {
        umount2(path, Int32(MNT_DETACH))
    }
}

/// Counts calls from any thread.
final class CallCount: Sendable {
    private let count = Atomic<Int>(0)

    /// The number of calls so far.
    var value: Int { count.load(ordering: .sequentiallyConsistent) }

    /// Counts one more call; returns the count before it.
    @discardableResult
    func add() -> Int { count.add(1, ordering: .sequentiallyConsistent).oldValue }
}
