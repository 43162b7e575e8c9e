import Glibc
import MusterCore
import Synchronization
import Testing

@testable import MusterWorker

/// A name lasts once its directory is synced, and that has to come after the change (I8, I13).
@Suite struct DirectorySyncTests {
    private static let bytes = ScratchSink.content(2_500)

    /// The directories that were synced while a condition held, by inode.
    private final class SyncedDirectories: Sendable {
        private let inodes = Mutex<Set<UInt64>>([])
        private let everything = Mutex(false)

        /// A kernel that notes each sync that comes while `condition` holds.
        func kernel(while condition: @escaping @Sendable () -> Bool) -> FaultyKernel {
            FaultyKernel { (extent, file) throws(SystemError) in
                guard condition() else { return }
                if extent == .everything { self.everything.withLock { $0 = true } }
                self.note(file.inode)
            }
        }

        func note(_ inode: UInt64) { inodes.withLock { _ = $0.insert(inode) } }

        func forget() { inodes.withLock { $0 = [] } }

        func contains(_ inode: UInt64?) -> Bool {
            everything.withLock { $0 } || inode.map { inode in inodes.withLock { $0.contains(inode) } } ?? false
        }
    }

    @Test(arguments: [false, true])
    func everyDirectoryOnTheWayIsSyncedOnceTheFileIsInPlace(isFenced: Bool) async throws {
        try await ScratchSink.with { scratch in
            let synced = SyncedDirectories()
            let sink = try scratch.begin(2, on: synced.kernel { scratch.exists("d/e/f") })
            let sync = DurableSync(sink: sink, pool: scratch.pool)
            try scratch.makePart(1, Self.bytes)
            let order = try scratch.order(1, path: "d/e/f", Self.bytes, fenced: isFenced)
            let finalizer = Finalizer(sink: sink, pool: scratch.pool, sync: sync)
            #expect(try await finalizer.finalize(order).isInPlace)
            for name in [".", "d", "d/e"] { #expect(synced.contains(scratch.inode(name)), "\(name)") }
        }
    }

    @Test func bothDirectoriesOfADeletionAreSyncedOnceTheFileIsGone() async throws {
        try await ScratchSink.with { scratch in
            try scratch.makePart(1, Self.bytes)
            #expect(try await scratch.finalizer.finalize(try scratch.order(1, path: "d/f", Self.bytes)).isInPlace)
            let (synced, own) = (SyncedDirectories(), "\(ScratchSink.home)/2")
            let sink = try scratch.begin(
                2,
                on: synced.kernel {
                    !scratch.exists("d/f") && !scratch.exists("\(own)/\(RemovedName.of(TaskID(1), version: 1))")
                })
            let owner = FileMark.Owner(installation: ScratchSink.installation, task: TaskID(1))
            let file = PurgeOrder.File(
                path: try DestinationPath(validating: "d/f"), size: Int64(Self.bytes.count), owner: owner)
            let results = try sink.purge([PurgeOrder(task: TaskID(1), version: 1, file: file)])
            #expect(try results.first?.get() == .deleted)
            for name in ["d", own] { #expect(synced.contains(scratch.inode(name)), "\(name)") }
        }
    }

    /// The sync of a removal fails, and the part is gone when the purge is repeated: a loss of power would bring it back.
    @Test func purgeThatFindsNothingSyncsTheDirectoriesOfEarlierRemovals() async throws {
        try await ScratchSink.with { scratch in
            let synced = SyncedDirectories()
            let isBroken = Atomic(false)
            let kernel = FaultyKernel { (_, file) throws(SystemError) in
                if isBroken.load(ordering: .relaxed) { throw SystemError(EIO) }
                synced.note(file.inode)
            }
            let sink = try scratch.begin(2, on: kernel)
            isBroken.store(true, ordering: .relaxed)
            try scratch.makePart(1, Self.bytes)
            #expect(throws: StorageError.self) { try sink.purge(task: TaskID(1)) }
            isBroken.store(false, ordering: .relaxed)
            synced.forget()
            #expect(try sink.purge(task: TaskID(1)) == 0)
            for name in [ScratchSink.parts, "\(ScratchSink.home)/2"] {
                #expect(synced.contains(scratch.inode(name)), "\(name)")
            }
        }
    }

    /// Leases are given back after it that could not be settled before.
    @Test func probeSyncsTheDirectoriesOfPartsFirst() async throws {
        try await ScratchSink.with { scratch in
            let synced = SyncedDirectories()
            let isBroken = Atomic(false)
            let kernel = FaultyKernel { (_, file) throws(SystemError) in
                if isBroken.load(ordering: .relaxed) { throw SystemError(ENOSPC) }
                synced.note(file.inode)
            }
            let sink = try scratch.begin(2, on: kernel)
            synced.forget()
            try sink.probe()
            for name in [ScratchSink.parts, "\(ScratchSink.home)/2"] {
                #expect(synced.contains(scratch.inode(name)), "\(name)")
            }
            isBroken.store(true, ordering: .relaxed)
            // Not `full`: after that the directories count as synced.
            #expect { try sink.probe() } throws: { error in
                if case StorageError.unavailable = error { true } else { false }
            }
        }
    }
}
