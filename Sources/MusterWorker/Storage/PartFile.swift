import Glibc
import MusterCore
import Synchronization

/// The open part file of one content version of a task.
///
/// Chunks of the same file share it. Every call blocks on the file system.
final class PartFile: Sendable {
    /// Its name among the parts when it was opened here.
    let name: PartName
    /// Which file it is.
    let identity: FileIdentity

    /// The open file.
    let descriptor: Descriptor
    private let sink: SinkDirectory
    private let place: Mutex<Place>
    /// The end of the bytes written through this instance: a shorter file was truncated by another process.
    private let writtenEnd = Atomic<Int64>(0)
    /// Whether its storage was reserved.
    private let isReserved = Atomic<Bool>(false)
    /// Whether the name in the directory was made durable through this instance.
    private let nameIsDurable = Atomic<Bool>(false)
    /// Why this instance can't be used any more. After a failed sync the kernel forgets which bytes it could not write,
    /// and the next sync succeeds: so a failure has to stick (I4).
    private let trouble = Mutex<StorageError?>(nil)
    private let isSpoiled = Atomic<Bool>(false)

    /// Where its name is.
    enum Place: Sendable {
        /// In the session's own directory, under this name: no other session knows of it, and nothing of it is durable.
        /// Exits: `taken`, `parts`, `gone`.
        case own(Directory, String)
        /// In the session's own directory, about to be put in place. Exits: `own`, `gone`.
        case taken(Directory, String)
        /// Among the parts of all sessions.
        case parts(Directory)
        /// It was put in place, or deleted.
        case gone
    }

    /// Takes over an open part; only the sink makes these.
    init(
        _ name: PartName,
        descriptor: Descriptor,
        identity: FileIdentity,
        place: Place,
        sink: SinkDirectory
    ) {
        self.name = name
        self.descriptor = descriptor
        self.identity = identity
        self.place = Mutex(place)
        self.sink = sink
    }

    deinit {
        sink.registry.forget(name)
    }

    /// Whether it is in the session's own directory.
    var isOwn: Bool {
        place.withLock {
            switch $0 {
            case .own, .taken: true
            case .parts, .gone: false
            }
        }
    }

    /// Moves it to the parts of all sessions, where other sessions find it. To be called before they learn of it, and
    /// before anything of it counts as durable (adr/0017).
    ///
    /// - Returns: the directory that it is in.
    /// - Throws: why it can't be moved, now and at every later use; `busy` while it is being put in place.
    @discardableResult
    func share() throws(StorageError) -> Directory {
        try refuseIfSpoiled()
        do {
            return try moveToParts()
        } catch {
            switch error.number {
            case EBUSY: throw .busy(.init("\(name.string) is being put in place", errno: error.number))
            case EEXIST: throw spoil(.partLost(.init("another session has made \(name.string)", errno: error.number)))
            default: throw spoil(error.inSink("moving \(name.string) to the parts"))
            }
        }
    }

    /// Moves it to the parts of all sessions, unless it is there; EEXIST if another session has made one, EBUSY while it is being put in place.
    func moveToParts() throws(SystemError) -> Directory {
        try place.withLock { place throws(SystemError) in
            switch place {
            case .parts(let parts): return parts
            case .taken: throw SystemError(EBUSY)
            case .gone: throw SystemError(ENOENT)
            case .own(let own, let fresh):
                let parts = try sink.partsDirectory()
                do throws(SystemError) {
                    try own.moveExclusively(fresh, to: name.string, in: parts)
                } catch {
                    throw own.cause(of: error)
                }
                place = .parts(parts)
                return parts
            }
        }
    }

    /// Reserves it for being put in place, if it is in the session's own directory. Returns its name there, or `nil`.
    func take() -> String? {
        place.withLock { place in
            guard case .own(let own, let fresh) = place else { return nil }
            place = .taken(own, fresh)
            return fresh
        }
    }

    /// Undoes `take()`: it was not put in place.
    func giveBack() {
        place.withLock { place in
            if case .taken(let own, let fresh) = place { place = .own(own, fresh) }
        }
    }

    /// Notes that the file is in place and the part is not needed any more: opening the part from now on makes a new one.
    func leave() {
        place.withLock { $0 = .gone }
        spoil(.partLost(.init("the file of \(name.string) was put in place")))
    }

    /// Deletes it if no other session knows of it and it is not being put in place; returns whether it did.
    @discardableResult
    func drop() -> Bool {
        let isDropped = place.withLock { place in
            guard case .own(let own, let fresh) = place else { return false }
            // A file that can't be deleted now is deleted together with the session's directory.
            _ = try? own.remove(fresh)
            place = .gone
            return true
        }
        if isDropped { spoil(.partLost(.init("\(name.string) was given up"))) }
        return isDropped
    }

    /// Writes all of `bytes` at `offset`. Nothing of it is durable yet.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) {
        try refuseIfSpoiled()
        // Reserved storage takes no more room.
        if !isReserved.load(ordering: .relaxed) { try sink.keptRoom.use(bytes.count, descriptor) }
        do {
            try descriptor.write(bytes, at: offset)
        } catch {
            throw error.inPart("writing \(bytes.count) bytes at \(offset) of \(name.string)")
        }
        writtenEnd.max(offset + Int64(bytes.count), ordering: .relaxed)
    }

    /// Reserves the storage of a file of `size` bytes, if the file system can; throws `noRoom` if there is not enough.
    ///
    /// Worth its cost for files of several chunks; small ones are written as fast as they are reserved.
    func reserve(_ size: Int64) throws(StorageError) {
        // Several files that fit one by one may not fit together.
        try sink.keptRoom.inTurn { () throws(StorageError) in try reserveNow(size) }
    }

    private func reserveNow(_ size: Int64) throws(StorageError) {
        // Another instance may have reserved it, as before a restart.
        guard try checkRoom(size) > 0 else { return isReserved.store(true, ordering: .relaxed) }
        do {
            try descriptor.reserve(size)
            isReserved.store(true, ordering: .relaxed)
        } catch {
            switch error.number {
            // A file system that can't reserve can still be written.
            case EOPNOTSUPP, ENOSYS, EINVAL: return
            // The file system can't hold a file this large, a quota is reached, or another file took the room first.
            case EFBIG, ENOSPC, EDQUOT:
                try checkRoom(size)
                throw .noRoom(
                    .init("\(name.string) can't get the \(ByteCount(bytes: size)) that it needs", errno: error.number))
            default: throw error.inPart("reserving \(size) bytes for \(name.string)")
            }
        }
    }

    /// Throws `noRoom` if a file of `size` bytes needs more than is free, and `full` if not even a probe has room.
    /// Returns the bytes that the file does not occupy yet.
    @discardableResult
    func checkRoom(_ size: Int64) throws(StorageError) -> Int64 {
        try refuseIfSpoiled()
        let missing: Int64
        let (free, whole): (Int64, Int64)
        do {
            missing = size - (try descriptor.status().allocated)
            guard missing > 0 else { return 0 }
            (free, whole) = try sink.keptRoom.left(descriptor)
        } catch {
            throw error.inPart("looking for \(size) bytes for \(name.string)")
        }
        guard free < missing else { return missing }
        let lack = Self.lack(of: missing, free: free)
        // No cleanup can make room for the file then; the coordinator finds that by the text.
        let isHopeless = missing > whole && whole > 0
        let detail = StorageError.Detail(
            isHopeless ? "\(lack), the whole file system has \(ByteCount(bytes: whole))" : lack, errno: ENOSPC)
        // With less than a probe writes, there is no room for any other file either.
        throw free < SinkDirectory.probeBytes ? .full(detail) : .noRoom(detail)
    }

    /// What is needed and what is free, as text; in exact bytes only if the rounded numbers are equal.
    private static func lack(of missing: Int64, free: Int64) -> String {
        let (needed, there) = ("\(ByteCount(bytes: missing))", "\(ByteCount(bytes: free))")
        return needed == there
            ? "the file needs \(missing) bytes more, \(free) are free"
            : "the file needs \(needed) more, \(there) are free"
    }

    /// Makes everything that was written before durable (`fdatasync`), and the file's name too (I4).
    ///
    /// - Throws: the first failure, now and at every later use: the kernel forgets what it failed to write.
    func synchronize() throws(StorageError) {
        let directory = try share()
        do {
            try descriptor.synchronizeData()
            if !nameIsDurable.load(ordering: .relaxed) {
                try directory.descriptor.synchronize()
                nameIsDurable.store(true, ordering: .relaxed)
            }
        } catch {
            throw spoil(error.inSink("syncing \(name.string)"))
        }
        try confirm()
    }

    /// Notes that a sync of the whole file system succeeded. Throws `partLost` if the part was deleted, replaced or cut
    /// short (F19).
    func confirmSynchronized() throws(StorageError) {
        try refuseIfSpoiled()
        nameIsDurable.store(true, ordering: .relaxed)
        try confirm()
    }

    private func confirm() throws(StorageError) {
        let end = writtenEnd.load(ordering: .relaxed)
        guard try stillNamed(size: end) else {
            throw .partLost(.init("\(name.string) was deleted, replaced or cut short of \(end) bytes"))
        }
    }

    /// Whether the part's name still leads to this file, and the file has at least `size` bytes.
    func stillNamed(size: Int64) throws(StorageError) -> Bool {
        do {
            guard case .parts(let parts) = place.withLock({ $0 }) else { return false }
            guard let status = try parts.status(of: name.string), status.identity == identity else { return false }
            return status.size >= size
        } catch {
            throw error.inSink("looking at \(name.string)")
        }
    }

    /// CRC32C of the bytes in `range`, read back.
    ///
    /// - Parameter mayContinue: asked before each piece; reading stops when it returns `false`.
    /// - Returns: `nil` when it was stopped.
    /// - Throws: `partLost` when the file ends before the range does.
    func checksum(
        of range: ByteRange,
        while mayContinue: () -> Bool = { true }
    ) throws(StorageError) -> UInt32? {
        var crc = CRC32C.empty
        return try read(range, while: mayContinue) { crc = CRC32C.extend(crc, $0) } ? crc : nil
    }

    /// Hands the bytes of `range` to `consume`, in order, read back in pieces.
    ///
    /// - Parameter mayContinue: asked before each piece; reading stops when it returns `false`.
    /// - Returns: whether all of it was read.
    /// - Throws: `partLost` when the file ends before the range does.
    func read(
        _ range: ByteRange,
        while mayContinue: () -> Bool,
        _ consume: (UnsafeRawBufferPointer) -> Void
    ) throws(StorageError) -> Bool {
        try refuseIfSpoiled()
        return try ContentReader(descriptor).read(range, of: name.string, while: mayContinue, consume)
    }

    /// Makes this instance unusable for all its users. The first reason sticks and is returned.
    @discardableResult
    func spoil(_ reason: StorageError) -> StorageError {
        let first = trouble.withLock { trouble in
            if let trouble { return trouble }
            trouble = reason
            return reason
        }
        isSpoiled.store(true, ordering: .releasing)
        return first
    }

    /// Whether a failure made this instance unusable, so that the part has to be opened anew.
    var isUseless: Bool { isSpoiled.load(ordering: .acquiring) }

    /// Throws the reason if this instance is unusable.
    func refuseIfSpoiled() throws(StorageError) {
        guard isUseless, let trouble = trouble.withLock({ $0 }) else { return }
        throw trouble
    }
}
