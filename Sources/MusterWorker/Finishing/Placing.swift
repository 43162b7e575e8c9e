import MusterAPI
import MusterCore
import Synchronization

/// Puts a complete part in place, for a fetch of a whole file as well as for a finalize lease.
struct Placing: Sendable {
    /// How it ended.
    enum Ending: Sendable {
        /// The file stands at its path (I8).
        case inPlace(Report.Finished)
        /// The content is not what it should be.
        case failed(Report.Failure)
        /// The storage failed, or the path is not to be had.
        case storage(StorageError)
        /// Somebody wants the job to end, or a later lease took over.
        case stopped
    }

    let lease: LeaseDocument
    let equipment: SinkStation.Equipment
    let context: JobContext
    let control: LeaseControl

    /// How often a long verification says that it is alive.
    private static let liveness: Int64 = 2_000_000_000

    /// Verifies `size` bytes in `chunks` against `digests` and moves the file to the lease's path.
    func place(size: Int64, chunks: [FinishedChunk], digests: [ContentDigest]) async -> Ending {
        let path: DestinationPath
        do {
            path = try DestinationPath(validating: lease.path)
        } catch {
            return .failed(Report.Failure(kind: .storage, detail: error.description))
        }
        let order = FinalizeOrder(
            task: lease.task,
            version: lease.version,
            epoch: lease.epoch,
            path: path,
            size: size,
            chunks: chunks,
            expected: digests,
            fenced: lease.fenced
        )
        // When the trust ended in the middle, nothing was moved: it is done again once it is renewed.
        while await context.gate.opened(unless: { control.wish != .work }) {
            do throws(StorageError) {
                switch try await carryOut(order) {
                case .inPlace(let finished): return .inPlace(finished)
                case .corrupt(_, let reason): return .failed(Report.Failure(kind: .changed, detail: reason))
                case .digestMismatch(let expected, let found):
                    let detail = "\(expected.algorithm.rawValue) is \(found.hexadecimal), not \(expected.hexadecimal)"
                    return .failed(Report.Failure(kind: .digestMismatch, detail: detail))
                case .stopped: if context.gate.isOpen { return .stopped }
                }
            } catch {
                return .storage(error)
            }
        }
        return .stopped
    }

    private func carryOut(_ order: FinalizeOrder) async throws(StorageError) -> FinalizeOutcome {
        guard order.size > SinkStation.batchedBytes else {
            guard let result = await equipment.placements.submit(order) else { return .stopped }
            return try result.get()
        }
        let pulse = Pulse()
        let watch = FinalizeWatch(
            mayContinue: { [context, control] in context.gate.isOpen && control.wish == .work },
            verified: { [context, lease] _ in
                if pulse.isDue() { context.tell(lease.name, .progress(nil, nil)) }
            }
        )
        return try await equipment.finalizer.finalize(order, watch: watch)
    }

    /// Says now and then, to whichever thread asks first, that a word is due.
    private final class Pulse: Sendable {
        private let last = Atomic<Int64>(MonotonicClock.now())

        func isDue() -> Bool {
            let now = MonotonicClock.now()
            let before = last.load(ordering: .relaxed)
            guard now - before >= Placing.liveness else { return false }
            return last.compareExchange(expected: before, desired: now, ordering: .relaxed).exchanged
        }
    }
}
