import MusterAPI
import MusterCore

/// Puts a complete part in place, for a fetch of a whole file as well as for a finalize lease.
struct Placing: Sendable {
    /// How it ended.
    enum Ending: Sendable {
        /// The file stands at its path (I8).
        case inPlace(Report.Finished)
        /// The content is not what it should be.
        case failed(Report.Failure)
        /// The storage failed, or the path can't be used.
        case storage(StorageError)
        /// The engine asked the job to end, or a later lease took over.
        case stopped
    }

    let lease: LeaseDocument
    let equipment: SinkStation.Equipment
    let context: JobContext
    let control: LeaseControl

    /// Verifies `size` bytes in `chunks` against `digests` and moves the file to the lease's path, as the lease's policy says.
    ///
    /// - Parameters:
    ///   - digests: expected digests, given by the caller or stated by the origin; two of one algorithm must both match.
    ///   - known: digests that `ChunkWriter.digests()` computed as the bytes arrived; they are not computed again.
    ///   - representation: what is known of the content: for the mark, and for the modification time if the policy keeps it.
    ///   - held: a file of the sink to make the new file from instead of the part; `failed` means that this can't be done.
    func place(
        size: Int64,
        chunks: [FinishedChunk],
        digests: [ContentDigest],
        known: [ContentDigest] = [],
        representation: Representation,
        held: DestinationPath? = nil
    ) async -> Ending {
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
            recorded: Set(lease.policy?.computeDigests ?? []),
            fenced: lease.fenced,
            ifExists: lease.policy?.ifExists ?? .verify,
            modificationTime: modificationTime(representation.lastModified),
            knownDigests: known,
            held: held,
            installation: equipment.directory.session.installation,
            representation: representation
        )
        // If the trust ended midway, nothing was moved: try again once it is renewed.
        while await context.gate.opened(unless: { control.wish != .work }) {
            do throws(StorageError) {
                switch try await carryOut(order) {
                case .inPlace(let finished): return .inPlace(finished)
                case .corrupt(_, let reason), .overtaken(let reason):
                    return .failed(Report.Failure(kind: .changed, detail: reason))
                case .digestMismatch(let expected, let found):
                    let known = ExpectedDigests(given: lease.expectedDigests, stated: lease.representation.digests)
                    let detail = known.mismatch(expected: expected, found: found)
                    return .failed(Report.Failure(kind: .digestMismatch, detail: detail))
                case .stopped: if context.gate.isOpen { return .stopped }
                }
            } catch {
                return .storage(error)
            }
        }
        return .stopped
    }

    /// Whether a small file of the sink exists and has the content that another file needs. `false` for a file over
    /// `SinkStation.batchedBytes`: such a file is read only once, when the new one is made from it.
    func isThere(_ held: DestinationPath, _ chunk: FinishedChunk, digests: [ContentDigest]) async -> Bool {
        guard chunk.range.count <= SinkStation.batchedBytes else { return false }
        return await equipment.finalizer.isThere(
            FinalizeOrder(
                task: lease.task, version: lease.version, epoch: lease.epoch, path: held, size: chunk.range.count,
                chunks: [chunk], expected: digests, fenced: lease.fenced, held: held))
    }

    private func modificationTime(_ lastModified: String?) -> Int64? {
        guard lease.policy?.keepModificationTime == true, let lastModified else { return nil }
        return HTTPDate(lastModified)?.secondsSince1970
    }

    private func carryOut(_ order: FinalizeOrder) async throws(StorageError) -> FinalizeOutcome {
        guard order.size > SinkStation.batchedBytes else {
            guard let result = await equipment.placements.submit(order) else { return .stopped }
            return try result.get()
        }
        return try await equipment.finalizer.finalize(order, watch: context.watch(lease.name, control))
    }
}
