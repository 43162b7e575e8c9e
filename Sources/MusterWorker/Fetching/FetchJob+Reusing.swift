import Logging
import MusterAPI
import MusterCore

extension FetchJob {
    /// Makes the task's file of a file in the sink: the origin said that the content is the same.
    ///
    /// - Returns: `nil` when the file is not what it was, or can't be shared: then the content has to be fetched. That is no failure of
    ///   the task.
    func reuse(_ held: HeldFile, _ plan: FetchPlan, _ writer: ChunkWriter) async -> JobEnding? {
        guard let path = try? DestinationPath(validating: held.path), let size = held.representation.size, size > 0
        else { return nil }
        let placing = Placing(lease: lease, equipment: equipment, context: context, control: control)
        let chunk = FinishedChunk(range: ByteRange(first: size), crc: held.crc)
        let digests = ExpectedDigests(given: lease.expectedDigests, stated: held.digests).all
        // The next transfer can begin: many small files are put in place together.
        let isFetched = await placing.isThere(path, chunk, digests: digests)
        if isFetched { context.tell(lease.name, .fetched) }
        let placed = await placing.place(
            size: size,
            chunks: [chunk],
            digests: digests,
            representation: held.representation,
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
            // The file was changed since that check. The slot is gone, so nothing can be fetched now: the next content version is fetched, without that file.
            return isFetched ? .failed(Report.Failure(kind: .changed, detail: failure.detail), nil, nil) : nil
        case .storage(let error): return JobEnding(placing: error, isAborted: control.wish == .abort)
        case .stopped: return await stop(plan, writer)
        }
    }
}
