import Logging
import MusterAPI
import MusterCore

extension FetchJob {
    /// The origin said that the content is that of a file which the sink has: makes the task's file of that one.
    ///
    /// - Returns: `nil` when the file is not what it was, or can't be shared: then the content has to be fetched. That is no failure of
    ///   the task.
    func reuse(_ held: HeldFile, _ plan: FetchPlan, _ writer: ChunkWriter) async -> JobEnding? {
        guard let path = try? DestinationPath(validating: held.path), let size = held.representation.size, size > 0
        else { return nil }
        let placing = Placing(lease: lease, equipment: equipment, context: context, control: control)
        let placed = await placing.place(
            size: size,
            chunks: [FinishedChunk(range: ByteRange(first: size), crc: held.crc)],
            digests: ExpectedDigests(given: lease.expectedDigests, stated: held.digests).all,
            lastModified: held.representation.lastModified,
            held: path
        )
        switch placed {
        case .inPlace(var finished):
            finished.reusedFrom = held.path
            return .done(DurablePrefix(offset: size, crc: held.crc), plan.learned, finished)
        case .failed(let failure):
            context.logger.debug(
                "A file that was there could not be used",
                metadata: .init([.task: "\(lease.task)", .chunk: "\(lease.chunk)", .reason: failure.detail])
            )
            return nil
        case .storage(let error): return ending(of: error, durable: nil, nil)
        case .stopped: return await stop(plan, writer)
        }
    }
}
