import Glibc
import Synchronization

@testable import MusterWorker

/// The kernel, but one call, given by its number, does not do what it is asked to.
///
/// Calls are counted that change something or make it durable: between two of them a death leaves the same files behind.
final class FaultyKernel: FileSystem {
    /// What happens at the call.
    enum Fault: Hashable, Sendable {
        /// The process is killed before the call: this call and all later ones change nothing.
        case death
        /// The call fails with this error number, once.
        case failure(Int32)
        /// A write takes the first byte only; any other call is made as asked.
        case shortWrite
    }

    private let kernel = Kernel()
    private let fault: Fault
    private let step: Int
    /// Called before each sync, with the file or directory that was asked for; may fail it.
    private let atSync: @Sendable (FileSystemSync, FileIdentity) throws(SystemError) -> Void
    private let count = Atomic<Int>(0)
    private let names = Mutex<[String]>([])

    /// A kernel with a fault at the counted call `step`, from 0 on.
    init(_ fault: Fault, at step: Int) {
        self.fault = fault
        self.step = step
        atSync = { (_, _) throws(SystemError) in }
    }

    /// A kernel without a fault of its own, in which something happens before each sync.
    init(atSync: @escaping @Sendable (FileSystemSync, FileIdentity) throws(SystemError) -> Void) {
        fault = .death
        step = .max
        self.atSync = atSync
    }

    /// Whether the fault has come.
    var hasCome: Bool { count.load(ordering: .sequentiallyConsistent) > step }
    /// The counted calls so far, by name.
    var calls: [String] { names.withLock { $0 } }

    private var isDead: Bool { fault == .death && hasCome }

    /// Throws if the process is dead: it makes no call any more.
    private func look() throws(SystemError) {
        guard !isDead else { throw SystemError(EIO) }
    }

    /// Counts a call; returns whether it is the one with the fault. Throws if it must not be made.
    @discardableResult
    private func begin(_ name: String = #function) throws(SystemError) -> Bool {
        try look()
        names.withLock { $0.append(String(name.prefix { $0 != "(" })) }
        guard count.add(1, ordering: .sequentiallyConsistent).oldValue == step else { return false }
        switch fault {
        case .death: throw SystemError(EIO)
        case .failure(let number): throw SystemError(number)
        case .shortWrite: return true
        }
    }

    // MARK: - Calls that change something

    func openFile(_ name: String, in directory: Int32, _ creation: Directory.Creation) throws(SystemError) -> Int32 {
        if creation == .always { try begin() } else { try look() }
        return try kernel.openFile(name, in: directory, creation)
    }

    func makeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
        try begin()
        try kernel.makeDirectory(name, in: directory)
    }

    func removeFile(_ name: String, in directory: Int32) throws(SystemError) {
        try begin()
        try kernel.removeFile(name, in: directory)
    }

    func removeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
        try begin()
        try kernel.removeDirectory(name, in: directory)
    }

    func move(
        _ name: String, in from: Int32, to newName: String, in to: Int32, _ move: Directory.Move
    ) throws(SystemError) {
        try begin()
        try kernel.move(name, in: from, to: newName, in: to, move)
    }

    func link(_ name: String, in from: Int32, to newName: String, in to: Int32) throws(SystemError) {
        try begin()
        try kernel.link(name, in: from, to: newName, in: to)
    }

    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int64) throws(SystemError) -> Int {
        let isShort = try begin()
        let taken = isShort ? UnsafeRawBufferPointer(rebasing: bytes.prefix(1)) : bytes
        return try kernel.write(taken, to: descriptor, at: offset)
    }

    func reserve(_ size: Int64, for descriptor: Int32) throws(SystemError) {
        try begin()
        try kernel.reserve(size, for: descriptor)
    }

    func setModificationTime(_ seconds: Int64, of descriptor: Int32) throws(SystemError) {
        try begin()
        try kernel.setModificationTime(seconds, of: descriptor)
    }

    func setAttribute(_ name: String, of descriptor: Int32, to value: [UInt8]) throws(SystemError) {
        try begin()
        try kernel.setAttribute(name, of: descriptor, to: value)
    }

    func clone(_ source: Int32, to copy: Int32) throws(SystemError) -> Bool {
        try begin()
        return try kernel.clone(source, to: copy)
    }

    func copy(_ source: Int32, to copy: Int32, at offset: Int64, length: Int) throws(SystemError) -> Int {
        let isShort = try begin()
        return try kernel.copy(source, to: copy, at: offset, length: isShort ? 1 : length)
    }

    func synchronize(_ descriptor: Int32, _ extent: FileSystemSync) throws(SystemError) {
        try begin()
        try atSync(extent, kernel.status(of: descriptor).identity)
        try kernel.synchronize(descriptor, extent)
    }

    // MARK: - Calls that only look

    func openDirectory(at path: String) throws(SystemError) -> Int32 {
        try look()
        return try kernel.openDirectory(at: path)
    }

    func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
        try look()
        return try kernel.openDirectory(name, in: directory)
    }

    func isFree(_ path: String, in directory: Int32) -> Bool { !isDead && kernel.isFree(path, in: directory) }

    /// The kernel closes what a dead process has open.
    func close(_ descriptor: Int32) { kernel.close(descriptor) }

    func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
        try look()
        return try kernel.status(of: descriptor)
    }

    func status(of name: String, in directory: Int32) throws(SystemError) -> FileStatus {
        try look()
        return try kernel.status(of: name, in: directory)
    }

    func status(at path: String) throws(SystemError) -> FileStatus {
        try look()
        return try kernel.status(at: path)
    }

    func checkWritable(_ path: String) throws(SystemError) {
        try look()
        try kernel.checkWritable(path)
    }

    func space(of descriptor: Int32) throws(SystemError) -> FileSystemSpace {
        try look()
        return try kernel.space(of: descriptor)
    }

    func names(in directory: Int32) throws(SystemError) -> [String] {
        try look()
        return try kernel.names(in: directory)
    }

    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int {
        try look()
        return try kernel.read(descriptor, into: buffer, at: offset)
    }

    func attribute(_ name: String, of descriptor: Int32, limit: Int) throws(SystemError) -> [UInt8] {
        try look()
        return try kernel.attribute(name, of: descriptor, limit: limit)
    }
}
