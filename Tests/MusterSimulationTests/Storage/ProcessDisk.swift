import Glibc
import Logging
import Synchronization

@testable import MusterWorker

/// The disk as one process sees it: its descriptors, and what happens to the process at its calls.
final class ProcessDisk: FileSystem {
    let disk: SimulatedDisk
    let process: SimulatedProcess
    /// Called at each call that changes something or makes it durable, before the call.
    private let atCall: @Sendable (SimulatedProcess) -> CallFault?
    private let descriptors = Mutex(Descriptors())
    private let logger: Logger

    /// An open file: which, and how many failures of syncs its opener has been told of (errseq of Linux).
    struct Open {
        let node: Int
        var failures: Int
        var failuresOfDisk: Int
    }

    private struct Descriptors {
        var open: [Int32: Open] = [:]
        var next: Int32 = 3
    }

    /// What happens at a call.
    enum CallFault: Hashable, Sendable {
        /// The process is killed before the call (F1).
        case death
        /// It is stopped before the call, for so many milliseconds (F2).
        case stop(Int64)
        /// The call fails with an error number.
        case failure(Int32)
        /// A write takes the first byte only (F9).
        case shortWrite
    }

    /// The most descriptors that a process has; the simulation makes it small at times (F22).
    let limit = Mutex(Int.max)

    init(
        _ disk: SimulatedDisk, of process: SimulatedProcess,
        atCall: @escaping @Sendable (SimulatedProcess) -> CallFault? = { _ in nil }
    ) {
        self.disk = disk
        self.process = process
        self.atCall = atCall
        logger = SimulatedLog.logger(process.name)
    }

    /// Shows a call in a trace, with the milliseconds of the clock.
    func trace(_ call: @autoclosure () -> String) {
        logger.debug("\(process.simulation.now / 1_000_000 - 1_000_000) ms: \(call())")
    }

    /// Begins a call: returns whether a write is to be short. Throws if the call fails, or the process is dead.
    @discardableResult
    func begin() throws(SystemError) -> Bool {
        guard !process.isDead else { throw SystemError(EIO) }
        switch atCall(process) {
        case nil: return false
        case .death:
            process.kill()
            throw SystemError(EIO)
        case .stop(let milliseconds):
            process.noteStop()
            trace("stopped for \(milliseconds) ms")
            process.simulation.runOthers(than: process, for: milliseconds)
            guard !process.isDead else { throw SystemError(EIO) }
            return false
        case .failure(let number): throw SystemError(number)
        case .shortWrite: return true
        }
    }

    func node(_ descriptor: Int32) throws(SystemError) -> Int {
        guard !process.isDead else { throw SystemError(EIO) }
        guard let node = descriptors.withLock({ $0.open[descriptor]?.node }) else { throw SystemError(EBADF) }
        return node
    }

    /// Notes that the opener of a descriptor was told of all failures; returns what it knew of before.
    func tell(_ descriptor: Int32, failures: Int, ofDisk: Int) -> Open? {
        descriptors.withLock { descriptors in
            let before = descriptors.open[descriptor]
            descriptors.open[descriptor]?.failures = failures
            descriptors.open[descriptor]?.failuresOfDisk = ofDisk
            return before
        }
    }

    private func open(_ node: Int) throws(SystemError) -> Int32 {
        let limit = limit.withLock { $0 }
        // A failure that no process was told of is told to the next one that opens the file.
        let (failures, ofDisk) = disk.state.withLock { state in
            ((state.nodes[node].map { $0.failures - ($0.isFailureTold ? 0 : 1) }) ?? 0, state.failures)
        }
        let number = descriptors.withLock { descriptors -> Int32? in
            guard descriptors.open.count < limit else { return nil }
            descriptors.next += 1
            descriptors.open[descriptors.next] = Open(
                node: node, failures: failures, failuresOfDisk: ofDisk)
            return descriptors.next
        }
        guard let number else { throw SystemError(EMFILE) }
        return number
    }

    /// Makes a call on the disk.
    func call<Value: Sendable>(
        _ body: (inout SimulatedDisk.State) throws(SystemError) -> Value
    ) throws(SystemError) -> Value {
        let result = disk.state.withLock { state in
            Result { () throws(SystemError) in try body(&state) }
        }
        return try result.get()
    }

    private func entry(_ name: String, in directory: Int32) throws(SystemError) -> Int {
        let parent = try node(directory)
        guard let found = disk.state.withLock({ $0.nodes[parent]?.entries[name] }) else { throw SystemError(ENOENT) }
        return found
    }

    private func root(_ path: String) throws(SystemError) -> Int {
        guard !process.isDead else { throw SystemError(EIO) }
        guard path == SimulatedDisk.path || path == SimulatedDisk.path + "/." else { throw SystemError(ENOENT) }
        return 1
    }

    func openDirectory(at path: String) throws(SystemError) -> Int32 { try open(root(path)) }

    func openDirectory(_ name: String, in directory: Int32) throws(SystemError) -> Int32 {
        let found = name == "." ? try node(directory) : try entry(name, in: directory)
        guard disk.state.withLock({ $0.nodes[found]?.isDirectory == true }) else { throw SystemError(ENOTDIR) }
        return try open(found)
    }

    func openFile(_ name: String, in directory: Int32, _ creation: Directory.Creation) throws(SystemError) -> Int32 {
        guard creation == .always else { return try open(entry(name, in: directory)) }
        try begin()
        let parent = try node(directory)
        let made = try call { state throws(SystemError) in
            try state.checkParent(parent)
            guard state.nodes[parent]?.entries[name] == nil else { throw SystemError(EEXIST) }
            return state.make(name, in: parent, isDirectory: false)
        }
        return try open(made)
    }

    func isFree(_ path: String, in directory: Int32) -> Bool {
        guard let start = try? node(directory) else { return false }
        return disk.state.withLock { $0.find(path, from: start) == nil }
    }

    func close(_ descriptor: Int32) { descriptors.withLock { _ = $0.open.removeValue(forKey: descriptor) } }

    func status(of descriptor: Int32) throws(SystemError) -> FileStatus {
        let number = try node(descriptor)
        return try call { state throws(SystemError) in try state.status(number) }
    }

    func status(of name: String, in directory: Int32) throws(SystemError) -> FileStatus {
        let number = try entry(name, in: directory)
        return try call { state throws(SystemError) in try state.status(number) }
    }

    func status(at path: String) throws(SystemError) -> FileStatus {
        let number = try root(path)
        return try call { state throws(SystemError) in try state.status(number) }
    }

    func checkWritable(_ path: String) throws(SystemError) {
        _ = try root(path)
        guard !disk.state.withLock({ $0.isReadOnly }) else { throw SystemError(EROFS) }
    }

    func space(of descriptor: Int32) throws(SystemError) -> FileSystemSpace {
        _ = try node(descriptor)
        return disk.state.withLock { state in
            FileSystemSpace(
                free: max(0, state.capacity - state.occupied), whole: state.capacity, hasInodes: true,
                isReadOnly: state.isReadOnly)
        }
    }

    func makeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
        try begin()
        let parent = try node(directory)
        try call { state throws(SystemError) in
            guard state.nodes[parent]?.entries[name] == nil else { throw SystemError(EEXIST) }
            try state.checkParent(parent)
            _ = state.make(name, in: parent, isDirectory: true)
        }
    }

    func removeFile(_ name: String, in directory: Int32) throws(SystemError) {
        try begin()
        let (parent, number) = (try node(directory), try entry(name, in: directory))
        trace("remove \(name) of \(parent)")
        try call { state throws(SystemError) in
            guard state.nodes[number]?.isDirectory == false else { throw SystemError(EISDIR) }
            guard !state.isReadOnly else { throw SystemError(EROFS) }
            state.apply(.init(edits: [(parent, name, nil)]))
            state.link(number, -1)
        }
    }

    func removeDirectory(_ name: String, in directory: Int32) throws(SystemError) {
        try begin()
        let (parent, number) = (try node(directory), try entry(name, in: directory))
        try call { state throws(SystemError) in
            guard let node = state.nodes[number], node.isDirectory else { throw SystemError(ENOTDIR) }
            guard node.entries.isEmpty else { throw SystemError(ENOTEMPTY) }
            guard !state.isReadOnly else { throw SystemError(EROFS) }
            state.apply(.init(edits: [(parent, name, nil)]))
            state.link(number, -1)
        }
    }

    func move(
        _ name: String, in from: Int32, to newName: String, in to: Int32, _ move: Directory.Move
    ) throws(SystemError) {
        try begin()
        let (source, target) = (try node(from), try node(to))
        trace("move \(name) of \(source) to \(newName) of \(target)")
        try call { state throws(SystemError) in try state.move(name, in: source, to: newName, in: target, move) }
    }

    func link(_ name: String, in from: Int32, to newName: String, in to: Int32) throws(SystemError) {
        try begin()
        let (number, target) = (try entry(name, in: from), try node(to))
        trace("link \(name) as \(newName) of \(target)")
        try call { state throws(SystemError) in
            try state.checkParent(target)
            guard state.nodes[target]?.entries[newName] == nil else { throw SystemError(EEXIST) }
            state.apply(.init(edits: [(target, newName, number)]))
            state.link(number, 1)
        }
    }

    func names(in directory: Int32) throws(SystemError) -> [String] {
        let number = try node(directory)
        return disk.state.withLock { ($0.nodes[number]?.entries ?? [:]).keys.sorted() }
    }

    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int {
        let number = try node(descriptor)
        guard let content = disk.state.withLock({ $0.nodes[number]?.content }), offset < content.count else { return 0 }
        let range = Int(offset)..<min(content.count, Int(offset) + buffer.count)
        content.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[range])) }
        return range.count
    }

    func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int64) throws(SystemError) -> Int {
        let isShort = try begin()
        let number = try node(descriptor)
        let piece = Array(isShort ? bytes.prefix(1) : bytes[...])
        trace("write \(piece.count) bytes at \(offset) of \(number)")
        return try call { state throws(SystemError) in
            guard !state.isReadOnly else { throw SystemError(EROFS) }
            // The content is not held here: it is written to in place.
            guard let occupied = state.nodes[number]?.occupied else { throw SystemError(EIO) }
            let end = offset + Int64(piece.count)
            guard max(end, occupied) - occupied <= state.capacity - state.occupied else { throw SystemError(ENOSPC) }
            state.write(piece, to: number, at: Int(offset))
            return piece.count
        }
    }

    func reserve(_ size: Int64, for descriptor: Int32) throws(SystemError) {
        try begin()
        let number = try node(descriptor)
        try call { state throws(SystemError) in
            guard var node = state.nodes[number] else { throw SystemError(EIO) }
            let more = max(0, size - node.occupied)
            guard more <= state.capacity - state.occupied else { throw SystemError(ENOSPC) }
            node.reserved = max(node.reserved, size)
            state.occupied += more
            state.nodes[number] = node
        }
    }
}
