import Glibc
import MusterCore

/// Deletes the files of tasks that are over, and no other files (adr/0014); blocks.
///
/// A name can lead to another file from one moment to the next, and no system call deletes a name only if it leads to a
/// certain file. So the file is first moved to a name that no other process uses, then checked again, and deleted or
/// moved back.
struct FileRemoval {
    private let parts: Directory
    /// The session's own directory; files are moved from their paths only into it (adr/0017).
    private let own: Directory
    private(set) var walk: SinkWalk
    /// Directories that files were moved out of, each once: many files share few directories.
    private var touched: [ObjectIdentifier: Directory] = [:]

    /// Opens the parts; throws if the sink can't be reached.
    init(_ sink: SinkDirectory) throws(StorageError) {
        do {
            parts = try sink.partsDirectory()
            own = sink.own
        } catch {
            throw error.inSink("opening the parts of \(sink.path)")
        }
        walk = SinkWalk(sink, isLooking: true)
    }

    /// Deletes the file of a task at its path. If no report said which of the numbered names the file has, also checks
    /// these up to the first gap.
    ///
    /// - Returns: what became of the file of a task that has succeeded; `nil` if it is unknown whether there was one.
    mutating func remove(_ file: PurgeOrder.File, of order: PurgeOrder) throws(StorageError) -> RemovedFile? {
        if walk.isFull {
            try synchronize()
            touched = [:]
            walk.startOver()
        }
        for number in 1...(file.size == nil ? 1 + Placement.numberedNames : 1) {
            guard let path = number == 1 ? file.path : file.path.numbered(number) else { return nil }
            let found: RemovedFile
            switch try look(for: path) {
            case .place(let place):
                do {
                    found = try visit(place, Wanted(file: file, order: order, isNumbered: number > 1))
                } catch {
                    let elsewhere = error.number == EXDEV ? ", which is in another mount than the sink" : ""
                    throw error.atDestination("deleting \(path)\(elsewhere)")
                }
            case .nothing(let became): found = became
            }
            if file.size != nil { return found }
            if found == .missing { return nil }
        }
        return nil
    }

    /// What there is at a path.
    private enum Look {
        case place(SinkPlace)
        /// No file that Muster left can be there.
        case nothing(RemovedFile)
    }

    /// Resolves a path. A symbolic link on the way may lead to any file, so the result is `changed`. Below a
    /// non-directory there can be no file, so the result is `missing`.
    private mutating func look(for path: DestinationPath) throws(StorageError) -> Look {
        do throws(StorageError) {
            return try walk.place(of: path, making: false).map(Look.place) ?? .nothing(.missing)
        } catch {
            switch error {
            case .symbolicLink(let detail): return .nothing(detail.errno == ELOOP ? .changed : .missing)
            case .destinationUnusable: return .nothing(.missing)
            default: throw error
            }
        }
    }

    /// Makes the deletions durable; call it once after all removals.
    func synchronize() throws(StorageError) {
        do {
            for directory in touched.values { try directory.descriptor.synchronize() }
            // Otherwise a file that was set aside may come back with a loss of power, when no purge asks for it any more.
            if !touched.isEmpty { try own.descriptor.synchronize() }
        } catch {
            throw error.inSink("syncing directories that files were deleted from")
        }
    }

    /// The file to look for at a name.
    private struct Wanted {
        let file: PurgeOrder.File
        let order: PurgeOrder
        let isNumbered: Bool

        /// The name that the file is moved to; only purges of this task use it.
        var aside: String { RemovedName.of(order.task, version: order.version) }

        /// Whether an open file is the wanted one.
        func matches(_ descriptor: Descriptor, _ status: FileStatus) -> Bool {
            guard file.size == nil || file.size == status.size else { return false }
            guard let owner = file.owner, let mark = FileMark.read(descriptor, path: file.path) else {
                return file.size != nil
            }
            return mark.owner == owner && (file.size != nil || mark.isIntact(status) && mark.version <= order.version)
        }
    }

    /// Deletes the file at a name if it is the wanted one. Returns what became of the file that was there.
    private mutating func visit(_ place: SinkPlace, _ wanted: Wanted) throws(SystemError) -> RemovedFile {
        var before = RemovedFile.missing
        // An earlier purge may have died midway. Its session was revoked since, which moved the file to the parts.
        if !wanted.isNumbered {
            if try parts.status(of: wanted.aside) != nil {
                try parts.move(wanted.aside, to: wanted.aside, in: own, .replacing)
            }
            before = try settle(wanted, from: place)
        }
        let standing: FileStatus?
        do {
            standing = try place.directory.status(of: place.name)
        } catch {
            // The name is too long for the file system, so no file has it.
            guard error.number == ENAMETOOLONG else { throw error }
            standing = nil
        }
        guard let status = standing else { return before }
        guard status.kind == .file, try isWanted(place.name, in: place.directory, wanted) else {
            return before == .deleted ? .deleted : .changed
        }
        try setAside(place, as: wanted.aside)
        touched[ObjectIdentifier(place.directory)] = place.directory
        return try settle(wanted, from: place)
    }

    private func isWanted(_ name: String, in directory: Directory, _ wanted: Wanted) throws(SystemError) -> Bool {
        let (descriptor, status) = try directory.file(name, creation: .never)
        return wanted.matches(descriptor, status)
    }

    private func setAside(_ place: SinkPlace, as aside: String) throws(SystemError) {
        do {
            try place.directory.move(place.name, to: aside, in: own, .exclusive)
        } catch {
            switch error.number {
            case ENOENT: try own.refuseIfRemoved()
            // The kernel compares the mounts before it checks for write access.
            case EXDEV where try place.directory.descriptor.space().isReadOnly: throw SystemError(EROFS)
            // Replacing is safe: only this session uses the name.
            case EINVAL, ENOSYS, EOPNOTSUPP: try place.directory.move(place.name, to: aside, in: own, .replacing)
            default: throw error
            }
        }
    }

    /// Deletes the file that was set aside if it is the wanted one. Otherwise links it back to its place, unless that is
    /// taken by now. Returns what became of it. If it can't be deleted, it goes to the parts, where the next purge looks, whichever session's that is.
    private func settle(_ wanted: Wanted, from place: SinkPlace) throws(SystemError) -> RemovedFile {
        do {
            return try settleNow(wanted, from: place)
        } catch {
            try? own.handBack(wanted.aside, to: parts)
            throw error
        }
    }

    private func settleNow(_ wanted: Wanted, from place: SinkPlace) throws(SystemError) -> RemovedFile {
        guard try own.status(of: wanted.aside) != nil else { return .missing }
        let isIt = try isWanted(wanted.aside, in: own, wanted)
        if !isIt {
            do {
                try own.link(wanted.aside, to: place.name, in: place.directory)
            } catch {
                guard error.number == EEXIST else { throw error }
                guard try isReplaced(wanted, at: place) else {
                    try own.handBack(wanted.aside, to: parts)
                    return .changed
                }
            }
        }
        _ = try own.remove(wanted.aside)
        return isIt ? .deleted : .changed
    }

    /// Whether the owner of the file that was set aside has another file at the path by now. A task that adopts a file
    /// checks once more that the file is still at its path, and puts its own file there if it isn't.
    private func isReplaced(_ wanted: Wanted, at place: SinkPlace) throws(SystemError) -> Bool {
        guard let (there, status) = try? place.directory.file(place.name, creation: .never), status.kind == .file else {
            return false
        }
        let (aside, _) = try own.file(wanted.aside, creation: .never)
        guard let owner = FileMark.read(aside, path: wanted.file.path)?.owner else { return false }
        return FileMark.read(there, path: wanted.file.path)?.owner == owner
    }
}
