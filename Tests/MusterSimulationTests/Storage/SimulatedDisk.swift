import Glibc
import Synchronization

@testable import MusterWorker

/// The bytes that are written to storage together.
private let pageBytes = 4_096

/// A file system in memory that knows what of it is on storage. Several processes, of several installations, use it at once.
///
/// A change of a directory is durable once the directory was synced, with all changes of these directories before it; a change of a file's
/// content once the file was synced. A loss of power keeps a random part of the rest.
final class SimulatedDisk: Sendable {
    /// A file or a directory.
    struct Node {
        let isDirectory: Bool
        var content: [UInt8] = []
        var attributes: [String: [UInt8]] = [:]
        /// What is on storage.
        var durable: [UInt8] = []
        var durableAttributes: [String: [UInt8]] = [:]
        /// Pages that no later sync writes, unless something is written to them again: a sync of them has failed, and they count as clean (F9).
        var lostPages: Set<Int> = []
        /// How often a sync has failed, and whether a process was told of the last time.
        var failures = 0
        var isFailureTold = true
        var entries: [String: Int] = [:]
        var durableEntries: [String: Int] = [:]
        var links = 0
        var reserved: Int64 = 0
        /// Nanoseconds since 1970.
        var modified: Int64 = 0

        /// What is on storage after a sync.
        var settled: [UInt8] {
            var settled = content
            for page in lostPages {
                for index in page * pageBytes..<min((page + 1) * pageBytes, content.count) {
                    settled[index] = index < durable.count ? durable[index] : 0
                }
            }
            return settled
        }

        /// Loses what the next sync would have written.
        mutating func fail() {
            for page in 0..<(content.count + pageBytes - 1) / pageBytes {
                let range = page * pageBytes..<min((page + 1) * pageBytes, content.count)
                if range.contains(where: { $0 >= durable.count || durable[$0] != content[$0] }) {
                    lostPages.insert(page)
                }
            }
            failures += 1
            isFailureTold = false
        }

        var size: Int64 { Int64(content.count) }
        var occupied: Int64 { max(size, reserved) }
    }

    /// Entries that change together.
    struct Change {
        var edits: [(directory: Int, name: String, node: Int?)]
        var directories: Set<Int> { Set(edits.map(\.directory)) }
    }

    struct State {
        var nodes: [Int: Node]
        var nextNode = 2
        /// The changes of directories that no sync has made durable, in order.
        var pending: [Change] = []
        var occupied: Int64 = 0
        var capacity: Int64
        var isReadOnly = false
        /// The rule of disks that is broken.
        var sabotage: Plan.Sabotage?
        /// The files that reports say to be in place, and where (I8).
        var placed: [Int: String] = [:]
        /// The parts that they are made of, where those are other inodes: a writer that was stopped may still have them open.
        var outlived: Set<Int> = []
        /// How often something was written to one of these parts, or to a file that has no name any more.
        var lateWrites = 0
        /// Writes to files in place.
        var problems: [String] = []
        /// How many of the next syncs fail.
        var failingSyncs = 0
        /// How often a sync of any file has failed.
        var failures = 0
        var ticks: Int64 = 1_700_000_000_000_000_000
    }

    /// The directory at which the disk is mounted: the sink.
    static let path = "/sink"
    fileprivate static let root = 1
    let state: Mutex<State>

    /// An empty disk of so many bytes.
    init(capacity: Int64) {
        var node = Node(isDirectory: true)
        node.links = 2
        state = Mutex(State(nodes: [Self.root: node], capacity: capacity))
    }

    /// The directory or file at a path below the sink, as whatever reads the disk sees it now.
    func content(at path: String) -> [UInt8]? {
        state.withLock { state in
            state.find(path, from: Self.root).flatMap { state.nodes[$0] }.flatMap { $0.isDirectory ? nil : $0.content }
        }
    }

    /// What a loss of power would leave at a path, if nothing is kept that no sync has made durable; `nil` if there would be no file.
    func durableContent(at path: String) -> [UInt8]? {
        state.withLock { state in
            var node = Self.root
            for name in path.split(separator: "/") {
                guard let next = state.nodes[node]?.durableEntries[String(name)] else { return nil }
                node = next
            }
            return state.nodes[node].flatMap { $0.isDirectory ? nil : $0.durable }
        }
    }

    /// Notes that a task's file is said to be in place: nothing is written to it from now on (I8).
    ///
    /// - Parameter part: the part that the file is made of.
    func notePlaced(_ path: String, part: PartName) {
        state.withLock { state in
            guard let placed = state.find(path, from: Self.root) else { return }
            state.placed[placed] = path
            let parts = state.walk(Self.root, "").filter { $0.hasPrefix(".muster/") && Self.isPart($0, part) }
            state.outlived.formUnion(parts.compactMap { state.find($0, from: Self.root) })
            state.outlived.remove(placed)
        }
    }

    /// Whether a path leads to a part.
    static func isPart(_ path: String, _ part: PartName) -> Bool {
        path.hasSuffix("/" + part.string)
    }

    /// How often a writer that was too late wrote to a part that is no part of a file any more.
    var lateWrites: Int { state.withLock { $0.lateWrites } }

    /// What was wrong with writes.
    var problems: [String] { state.withLock { $0.problems } }

    /// All paths of files below the sink, but not those of Muster's own directory.
    var files: [String] {
        state.withLock { state in state.walk(Self.root, "").filter { !$0.hasPrefix(".muster/") }.sorted() }
    }

    /// All paths in Muster's own directory.
    var ownFiles: [String] {
        state.withLock { state in state.walk(Self.root, "").filter { $0.hasPrefix(".muster/") }.sorted() }
    }

    /// Fills a file as another program would (F19).
    func overwrite(_ path: String, with content: [UInt8]) {
        state.withLock { state in
            guard let node = state.find(path, from: Self.root) else { return }
            state.write(content, to: node, at: 0)
        }
    }

    /// Loses power: a random part of what no sync has made durable is gone. All processes that used the disk are dead (F20).
    func losePower(_ isKept: () -> Bool) {
        state.withLock { state in
            var torn: Set<Int> = []
            for change in state.pending {
                if torn.isDisjoint(with: change.directories), isKept() {
                    state.settle(change)
                } else {
                    torn.formUnion(change.directories)
                }
            }
            state.pending = []
            for number in state.nodes.keys.sorted() {
                guard var node = state.nodes[number] else { continue }
                node.entries = node.durableEntries
                if !node.isDirectory, node.content != node.durable || node.attributes != node.durableAttributes {
                    node.content = isKept() ? node.settled : node.durable
                    node.attributes = node.durableAttributes
                }
                node.lostPages = []
                node.durable = node.content
                node.reserved = 0
                state.nodes[number] = node
            }
            state.recount(Self.root)
        }
    }

    /// Sets what the disk does from now on.
    func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }
}

extension SimulatedDisk.State {
    /// The node at a path.
    func find(_ path: String, from start: Int) -> Int? {
        var node = start
        for name in path.split(separator: "/") where name != "." {
            guard let next = nodes[node]?.entries[String(name)] else { return nil }
            node = next
        }
        return node
    }

    /// The paths of all files below a directory.
    func walk(_ directory: Int, _ prefix: String) -> [String] {
        (nodes[directory]?.entries ?? [:]).flatMap { name, node in
            nodes[node]?.isDirectory == true ? walk(node, prefix + name + "/") : [prefix + name]
        }
    }

    /// Changes entries, and remembers that no sync has made the change durable.
    mutating func apply(_ change: SimulatedDisk.Change) {
        for edit in change.edits { nodes[edit.directory]?.entries[edit.name] = edit.node }
        pending.append(change)
    }

    /// Makes a change durable.
    mutating func settle(_ change: SimulatedDisk.Change) {
        for edit in change.edits { nodes[edit.directory]?.durableEntries[edit.name] = edit.node }
    }

    /// Makes the entries of a directory durable, with the changes that come before in the same directories.
    mutating func settleEntries(of directory: Int) {
        var touched: Set<Int> = [directory]
        var settled: [Int] = []
        for index in pending.indices.reversed() where !touched.isDisjoint(with: pending[index].directories) {
            touched.formUnion(pending[index].directories)
            settled.append(index)
        }
        for index in settled.reversed() { settle(pending[index]) }
        for index in settled { pending.remove(at: index) }
    }

    /// Makes the content of a file durable.
    mutating func settleContent(of number: Int) {
        guard var node = nodes[number], !node.isDirectory else { return }
        guard node.durable != node.content || node.durableAttributes != node.attributes else { return }
        node.durable = node.settled
        node.durableAttributes = node.attributes
        nodes[number] = node
    }

    /// Writes bytes to a file.
    mutating func write(_ bytes: [UInt8], to number: Int, at offset: Int) {
        noteWrite(to: number)
        guard var node = nodes.removeValue(forKey: number) else { return }
        let before = node.occupied
        if node.content.count < offset { node.content += [UInt8](repeating: 0, count: offset - node.content.count) }
        let end = min(node.content.count, offset + bytes.count)
        node.content.replaceSubrange(offset..<end, with: bytes)
        if !node.lostPages.isEmpty, !bytes.isEmpty {
            node.lostPages.subtract(offset / pageBytes...(offset + bytes.count - 1) / pageBytes)
        }
        ticks += 1_000_000
        node.modified = ticks
        occupied += node.occupied - before
        nodes[number] = node
    }

    /// I8: nothing is written to a file that a report says to be in place, whatever the bytes.
    private mutating func noteWrite(to number: Int) {
        if outlived.contains(number) || nodes[number]?.links == 0 { lateWrites += 1 }
        guard let path = placed[number], find(path, from: SimulatedDisk.root) == number else { return }
        problems.append("I8: something was written to \(path) after it was in place")
    }

    /// Adds to the number of names of a node.
    mutating func link(_ number: Int, _ more: Int) {
        guard var node = nodes[number] else { return }
        node.links += more
        if node.links == 0 || node.isDirectory && more < 0 { occupied -= node.occupied }
        if node.isDirectory, more < 0 { node.links = 0 }
        nodes[number] = node
    }

    /// Counts names and bytes anew, and forgets what has no name.
    mutating func recount(_ root: Int) {
        for number in nodes.keys { nodes[number]?.links = 0 }
        var (open, found) = ([root], Set<Int>())
        nodes[root]?.links = 2
        while let directory = open.popLast() {
            for node in (nodes[directory]?.entries ?? [:]).values {
                let isDirectory = nodes[node]?.isDirectory == true
                nodes[node]?.links += isDirectory ? 2 : 1
                if isDirectory, found.insert(node).inserted { open.append(node) }
            }
        }
        nodes = nodes.filter { $0.value.links > 0 }
        occupied = nodes.values.reduce(0) { $0 + $1.occupied }
    }
}
