import Glibc

@testable import MusterWorker

/// Attributes, copies and syncs.
extension ProcessDisk {
    func setModificationTime(_ seconds: Int64, of descriptor: Int32) throws(SystemError) {
        try begin()
        let number = try node(descriptor)
        disk.change { $0.nodes[number]?.modified = seconds * 1_000_000_000 }
    }

    func attribute(_ name: String, of descriptor: Int32, limit: Int) throws(SystemError) -> [UInt8] {
        let number = try node(descriptor)
        return try call { state throws(SystemError) in
            guard let value = state.nodes[number]?.attributes[name] else { throw SystemError(ENODATA) }
            guard value.count <= limit else { throw SystemError(ERANGE) }
            return value
        }
    }

    func setAttribute(_ name: String, of descriptor: Int32, to value: [UInt8]) throws(SystemError) {
        try begin()
        let number = try node(descriptor)
        trace("mark \(number): \(String(decoding: value, as: UTF8.self))")
        try call { state throws(SystemError) in
            guard !state.isReadOnly else { throw SystemError(EROFS) }
            state.nodes[number]?.attributes[name] = value
        }
    }

    /// The disk can't clone: `copy` shows more.
    func clone(_ source: Int32, to copy: Int32) throws(SystemError) -> Bool {
        _ = (try node(source), try node(copy))
        return false
    }

    func copy(_ source: Int32, to copy: Int32, at offset: Int64, length: Int) throws(SystemError) -> Int {
        try begin()
        let (from, to) = (try node(source), try node(copy))
        return try call { state throws(SystemError) in
            guard !state.isReadOnly else { throw SystemError(EROFS) }
            guard let content = state.nodes[from]?.content, let occupied = state.nodes[to]?.occupied,
                offset < content.count
            else { return 0 }
            let piece = Array(content[Int(offset)..<min(content.count, Int(offset) + length)])
            let end = offset + Int64(piece.count)
            guard max(end, occupied) - occupied <= state.capacity - state.occupied else { throw SystemError(ENOSPC) }
            state.write(piece, to: to, at: Int(offset))
            return piece.count
        }
    }

    func synchronize(_ descriptor: Int32, _ extent: FileSystemSync) throws(SystemError) {
        try begin()
        let number = try node(descriptor)
        trace("sync \(number)")
        try call { state throws(SystemError) in
            if state.failingSyncs > 0, state.hasDirtyFile(extent == .everything ? nil : number) {
                state.failingSyncs -= 1
                state.failures += 1
                for other in extent == .everything ? state.nodes.keys.sorted() : [number] {
                    guard var node = state.nodes[other], !node.isDirectory, node.content != node.durable else {
                        continue
                    }
                    node.fail()
                    state.nodes[other] = node
                }
            }
            let failures = state.nodes[number]?.failures ?? 0
            let known = tell(descriptor, failures: failures, ofDisk: state.failures)
            let isNew =
                extent == .everything
                ? known?.failuresOfDisk != state.failures : known?.failures != failures
            state.nodes[number]?.isFailureTold = true
            if isNew { throw SystemError(EIO) }
            switch state.sabotage {
            case .syncs: break
            case .earlySyncs: settleLater(number, extent)
            case _: state.settle(number, extent)
            }
        }
    }

    /// Makes it durable half a second after the sync has ended.
    private func settleLater(_ number: Int, _ extent: FileSystemSync) {
        let disk = disk
        process.simulation.after(500) { disk.change { $0.settle(number, extent) } }
    }
}

extension SimulatedDisk.State {
    /// Makes durable what a sync writes.
    fileprivate mutating func settle(_ number: Int, _ extent: FileSystemSync) {
        switch extent {
        case .data, .file:
            if nodes[number]?.isDirectory == true { settleEntries(of: number) } else { settleContent(of: number) }
        case .everything:
            for change in pending { settle(change) }
            pending = []
            for other in nodes.keys { settleContent(of: other) }
        }
    }

    /// Loses the last third of a part that is put in place, if that rule is broken.
    private mutating func tear(_ number: Int, _ name: String, _ newName: String) {
        let isPart = { (name: String) in name.hasSuffix(".part") || name.hasSuffix(".copy") }
        guard sabotage == .chunks, isPart(name), !isPart(newName), var node = nodes[number] else { return }
        for index in node.content.count * 2 / 3..<node.content.count { node.content[index] = 0 }
        node.durable = node.content
        nodes[number] = node
    }

    /// Whether a file, or any file, has content that no sync has written.
    func hasDirtyFile(_ number: Int?) -> Bool {
        (number.map { [$0] } ?? Array(nodes.keys)).contains { other in
            nodes[other].map { !$0.isDirectory && $0.content != $0.durable } ?? false
        }
    }

    /// Throws unless entries can be made in a directory.
    func checkParent(_ number: Int) throws(SystemError) {
        guard !isReadOnly else { throw SystemError(EROFS) }
        guard let node = nodes[number], node.isDirectory else { throw SystemError(ENOTDIR) }
        guard node.links > 0 else { throw SystemError(ENOENT) }
    }

    /// Makes a file or a directory.
    mutating func make(_ name: String, in directory: Int, isDirectory: Bool) -> Int {
        let number = nextNode
        nextNode += 1
        ticks += 1_000_000
        nodes[number] = SimulatedDisk.Node(isDirectory: isDirectory)
        nodes[number]?.links = isDirectory ? 2 : 1
        nodes[number]?.modified = ticks
        apply(.init(edits: [(directory, name, number)]))
        return number
    }

    /// The status of a node.
    func status(_ number: Int) throws(SystemError) -> FileStatus {
        guard let node = nodes[number] else { throw SystemError(EIO) }
        var status = stat()
        status.st_dev = 7
        status.st_ino = UInt(number)
        status.st_mode = node.isDirectory ? S_IFDIR | 0o755 : S_IFREG | 0o644
        status.st_size = Int(node.size)
        status.st_blocks = Int((node.occupied + 511) / 512)
        status.st_nlink = UInt(node.links)
        status.st_mtim = timespec(
            tv_sec: Int(node.modified / 1_000_000_000), tv_nsec: Int(node.modified % 1_000_000_000))
        return FileStatus(status)
    }

    /// Moves an entry.
    mutating func move(
        _ name: String, in source: Int, to newName: String, in target: Int, _ move: Directory.Move
    ) throws(SystemError) {
        guard let number = nodes[source]?.entries[name] else { throw SystemError(ENOENT) }
        tear(number, name, newName)
        try checkParent(source)
        try checkParent(target)
        let other = nodes[target]?.entries[newName]
        switch move {
        case .exclusive where other != nil: throw SystemError(EEXIST)
        case .exchanging:
            guard let other else { throw SystemError(ENOENT) }
            apply(.init(edits: [(source, name, other), (target, newName, number)]))
        case .exclusive, .replacing:
            guard other != number else { return }
            if let other {
                guard nodes[other]?.isDirectory == nodes[number]?.isDirectory else { throw SystemError(EISDIR) }
                guard nodes[other]?.entries.isEmpty ?? true else { throw SystemError(ENOTEMPTY) }
                link(other, -1)
            }
            apply(.init(edits: [(source, name, nil), (target, newName, number)]))
        }
    }
}
