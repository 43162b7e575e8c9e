import Glibc
import Synchronization

/// Room on a sink's file system that is kept free of files because the private database needs it (adr/0023): without it,
/// files that arrive at hundreds of megabytes a second fill the disk before anything can be done for the database.
final class KeptRoom: Sendable {
    /// After this many written bytes the free room is checked again.
    private static let period: Int64 = 1 << 20

    private let bytes: Int64
    private let used = Atomic<Int64>(0)
    private let turn = Mutex(())

    /// - Parameter bytes: how many are kept; 0 for none.
    init(bytes: Int64) {
        self.bytes = bytes
    }

    /// The bytes that files may still occupy, and the total bytes of the file system.
    func left(_ descriptor: Descriptor) throws(SystemError) -> (free: Int64, whole: Int64) {
        let room = try descriptor.space()
        return (max(0, room.free - bytes), room.whole)
    }

    /// Throws `full` if no more is free than is kept.
    func check(_ descriptor: Descriptor) throws(StorageError) {
        guard bytes > 0, let room = try? left(descriptor), room.free == 0 else { return }
        throw .full(.init("what is free is kept for the database", errno: ENOSPC))
    }

    /// Counts bytes without reserved storage that are about to be written, and checks the room once per `period`.
    func use(_ count: Int, _ descriptor: Descriptor) throws(StorageError) {
        guard bytes > 0, used.add(Int64(count), ordering: .relaxed).newValue >= Self.period else { return }
        used.store(0, ordering: .relaxed)
        do throws(StorageError) {
            try check(descriptor)
        } catch {
            // The next write checks as well.
            used.store(Self.period, ordering: .relaxed)
            throw error
        }
    }

    /// Runs one body at a time: each checks the room and then takes it.
    func inTurn(_ body: () throws(StorageError) -> Void) throws(StorageError) {
        guard bytes > 0 else { return try body() }
        try turn.withLock { (_) throws(StorageError) in try body() }
    }
}
