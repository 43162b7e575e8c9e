import MusterAPI
import MusterCore

/// Puts complete parts in place (`docs/protocol.md`, "Files"), on the threads of a pool.
///
/// Each step can be repeated after a crash between any two (I8): verify; copy to a fresh inode if the lease is fenced;
/// sync the data; move without overwriting; sync the directories. Only then is there an outcome to be reported.
final class Finalizer: Sendable {
    private let sink: SinkDirectory
    private let pool: BlockingPool
    private let sync: DurableSync

    private let helpers: BlockingPool?

    /// A finalizer of one sink.
    ///
    /// - Parameters:
    ///   - pool: the threads that read and move files.
    ///   - helpers: threads that help to hash large files; without them each file has one thread.
    init(sink: SinkDirectory, pool: BlockingPool, helpers: BlockingPool? = nil, sync: DurableSync) {
        self.helpers = helpers
        self.sink = sink
        self.pool = pool
        self.sync = sync
    }

    /// Carries out one order, of any size.
    ///
    /// - Throws: what the sink or the destination failed with; `partLost` when there is neither the part nor the file.
    func finalize(
        _ order: FinalizeOrder,
        watch: FinalizeWatch = FinalizeWatch()
    ) async throws(StorageError) -> FinalizeOutcome {
        guard let result = await finalize([order], watch: watch).first else { return .stopped }
        return try result.get()
    }

    /// Whether the `held` file of an order exists and has the order's content. If it doesn't, carrying out the order tells why.
    func isThere(_ order: FinalizeOrder) async -> Bool {
        let found = try? await pool.run { [sink] () throws(StorageError) -> Bool in
            var placement = try Placement(sink: sink, watch: FinalizeWatch(), isSynchronized: false)
            return try placement.isThere(order)
        }
        return found ?? false
    }

    /// Carries out many orders, of small files, with one sync of their data and one of their directories.
    ///
    /// - Parameter watch: for all orders together; `verified` is called for each file on its own.
    /// - Returns: an outcome for each order, at its index. An order that failed does not hold up the others.
    func finalize(
        _ orders: [FinalizeOrder],
        watch: FinalizeWatch = FinalizeWatch()
    ) async -> [Result<FinalizeOutcome, StorageError>] {
        let isWhole = orders.count >= DurableSync.filesForWholeSync && DurableSync.wholeSyncReportsErrors
        var results: [Result<FinalizeOutcome, StorageError>] = []
        var failure: StorageError?
        do {
            let standing = isWhole ? try await synchronize(orders) : [:]
            while results.count < orders.count {
                let rest = Array(orders[results.count...])
                let placed = try await pool.run { [self] () -> [Placed] in
                    place(rest, isSynchronized: isWhole, standing, watch: watch)
                }
                results += await settle(placed)
            }
        } catch let error as StorageError {
            failure = error
        } catch {
            failure = .unavailable(.init("no thread for storage work: \(error)"))
        }
        if let failure { results += orders[results.count...].map { _ in .failure(failure) } }
        return results
    }

    /// Syncs all parts at once, after it has set their times and marks. Returns the status of the orders' `held` files before the sync.
    private func synchronize(
        _ orders: [FinalizeOrder]
    ) async throws(StorageError) -> [DestinationPath: FileStatus] {
        var standing: [DestinationPath: FileStatus] = [:]
        if orders.contains(where: { $0.modificationTime != nil || $0.held != nil || $0.mark != nil }) {
            standing = try await pool.run { [sink] () throws(StorageError) in
                var placement = try Placement(sink: sink, watch: FinalizeWatch(), isSynchronized: false)
                placement.prepare(orders)
                return placement.heldFiles(of: orders)
            }
        }
        try await sync.makeEverythingDurable()
        return standing
    }

    /// What is left to do for an order once its file has been moved.
    private struct Placed: Sendable {
        let result: Result<FinalizeOutcome, StorageError>
        /// The directories whose entries have to be durable before the outcome counts.
        let directories: [Directory]
    }

    /// Places the first orders, at least one: as many as there are descriptors for their directories.
    private func place(
        _ orders: [FinalizeOrder], isSynchronized: Bool, _ standing: [DestinationPath: FileStatus], watch: FinalizeWatch
    ) -> [Placed] {
        var placement: Placement
        do {
            placement = try Placement(
                sink: sink, watch: watch, helpers: helpers, isSynchronized: isSynchronized, standing: standing)
        } catch {
            return orders.map { _ in Placed(result: .failure(error), directories: []) }
        }
        var placed: [Placed] = []
        for order in orders where placed.isEmpty || !placement.walk.isFull {
            do throws(StorageError) {
                let outcome = try placement.carryOut(order)
                placed.append(Placed(result: .success(outcome), directories: placement.takeDirectories()))
            } catch {
                placed.append(
                    Placed(result: .failure(sink.judged(error)), directories: placement.takeDirectories()))
            }
        }
        return placed
    }

    private func settle(_ placed: [Placed]) async -> [Result<FinalizeOutcome, StorageError>] {
        var distinct: [ObjectIdentifier: Directory] = [:]
        for directory in placed.lazy.flatMap(\.directories) { distinct[ObjectIdentifier(directory)] = directory }
        do {
            try await sync.makeDurable(Array(distinct.values))
        } catch {
            // If the directories aren't synced, no move is sure to last; an order that moved nothing keeps its outcome.
            return placed.map { $0.directories.isEmpty ? $0.result : .failure(error) }
        }
        return placed.map(\.result)
    }
}
