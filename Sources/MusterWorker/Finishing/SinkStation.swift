import MusterAPI
import MusterCore
import Synchronization

/// A sink with the threads and batches that serve it. A sink that hangs holds up nothing but itself.
final class SinkStation: Sendable {
    /// What works on a sink once its directory could be opened.
    struct Equipment: Sendable {
        let directory: SinkDirectory
        let sync: DurableSync
        let finalizer: Finalizer
        let existing: ExistingFile
        let placements: Batcher<FinalizeOrder, Result<FinalizeOutcome, StorageError>>
        let purges: Batcher<PurgeOrder, Result<Void, StorageError>>
    }

    /// Files up to this many bytes are put in place in batches.
    static let batchedBytes: Int64 = 8 << 20

    /// The sink's name.
    let name: String
    /// For opening, reading back and syncing.
    let pool: BlockingPool
    /// For hashing what is in memory or was just written, beside those who read and write it.
    let hashing: BlockingPool
    private let finalizing: BlockingPool
    private let path: String
    private let gate: TrustGate
    private let equipment = Mutex<Equipment?>(nil)

    /// A sink that was not looked at yet. Throws when the system has no threads for it.
    init(_ configuration: SinkConfiguration, gate: TrustGate) throws(BlockingPool.Refusal) {
        name = configuration.name
        path = configuration.path
        self.gate = gate
        pool = try BlockingPool(threads: 4)
        // Long verifications must not hold up the syncs of running transfers.
        finalizing = try BlockingPool(threads: 2)
        hashing = try BlockingPool(threads: CoreBudget.shared.helpers)
    }

    /// The equipment; throws as long as the directory could not be opened.
    func equipped() throws(StorageError) -> Equipment {
        guard let equipment = equipment.withLock({ $0 }) else {
            throw .unavailable(.init("the sink was never reached"))
        }
        return equipment
    }

    /// Tries whether the sink can be used, opening it if that did not succeed before. Returns its state.
    func probe() async -> ProbeResult {
        do {
            let free = try await pool.run { [self] () throws(StorageError) -> Int64? in
                if let known = equipment.withLock({ $0 }) {
                    try known.directory.probe()
                } else {
                    open(try SinkDirectory(name: name, path: path))
                }
                return try? equipped().directory.freeBytes()
            }
            return .well(freeBytes: free)
        } catch {
            return .trouble(SinkTrouble(error))
        }
    }

    private func open(_ directory: SinkDirectory) {
        let sync = DurableSync(sink: directory, pool: pool)
        let finalizer = Finalizer(sink: directory, pool: finalizing, helpers: hashing, sync: sync)
        let existing = ExistingFile(sink: directory, pool: finalizing, helpers: hashing)
        let gate = gate
        let pool = pool
        let new = Equipment(
            directory: directory,
            sync: sync,
            finalizer: finalizer,
            existing: existing,
            placements: Batcher(lanes: 2, limit: 256) { orders in
                await finalizer.finalize(orders, watch: FinalizeWatch(mayContinue: { gate.isOpen }))
            },
            purges: Batcher(lanes: 1, limit: 1_024) { orders in
                do throws(StorageError) {
                    try await pool.run { () throws(StorageError) in try directory.purge(orders) }
                    return orders.map { _ in .success(()) }
                } catch {
                    return orders.map { _ in .failure(error) }
                }
            }
        )
        equipment.withLock { $0 = new }
    }

    /// Ends the threads after what they were given.
    func shutdown() async {
        await pool.shutdown()
        await finalizing.shutdown()
        await hashing.shutdown()
    }
}

extension SinkTrouble {
    /// What a storage failure means for the sink.
    init(_ error: StorageError) {
        self.init(kind: error.failureKind, detail: error.description)
    }
}
