import Logging
import MusterAPI
import MusterCore
import MusterCurl

/// The work on one fetch lease, from the check of what a predecessor left to the durable chunk or the file in place.
struct FetchJob: Sendable {
    let lease: LeaseDocument
    let source: LeaseSource
    let equipment: SinkStation.Equipment
    let station: SinkStation
    let context: JobContext
    let control: LeaseControl

    /// What follows from the end of one transfer.
    enum Step: Sendable {
        /// Ask again, as the plan says now.
        case again
        /// All that the lease is for has come.
        case complete
        /// The lease fails.
        case failed(FailureKind, String, retryAfter: Int64?)
        /// Start over as one stream.
        case restart(String)
        /// Somebody wants the job to end.
        case stopped
    }

    /// Whatever a server answers, a lease asks no more often than this; each further request must have brought bytes.
    private static let requestLimit = 100_000

    /// Does the work.
    func run() async -> JobEnding {
        let plan = FetchPlan(lease, source: source, version: context.configuration.version)
        do {
            let (part, prefix) = try await open(plan)
            let writer = ChunkWriter(part, after: prefix, gate: context.gate, control: control)
            context.checkpointer.watch(
                lease.name,
                writer,
                known: max(lease.resume.offset, lease.start),
                sync: equipment.sync
            )
            defer { context.checkpointer.forget(lease.name) }
            return await fetch(plan, writer)
        } catch {
            return ending(of: error, durable: nil, nil)
        }
    }

    /// Opens the part and checks what a predecessor left durable (F1, F19): on another host, or after a crash of this one,
    /// it may not be what the coordinator was told.
    private func open(_ plan: FetchPlan) async throws(StorageError) -> (PartFile, DurablePrefix) {
        let directory = equipment.directory
        return try await station.pool.run { [lease, control] () throws(StorageError) -> (PartFile, DurablePrefix) in
            let part = try directory.part(task: lease.task, version: lease.version)
            if lease.planned, let size = lease.representation.size, size > SinkStation.batchedBytes {
                try part.reserve(size)
            }
            let fresh = DurablePrefix(offset: lease.start, crc: CRC32C.empty)
            guard plan.mayResume, let range = ByteRange(start: lease.start, end: lease.resume.offset) else {
                return (part, fresh)
            }
            do throws(StorageError) {
                let crc = try part.checksum(of: range) { control.wish == .work }
                return (part, crc == lease.resume.crc ? lease.resume : fresh)
            } catch {
                // Shorter than it should be: the bytes are fetched again, into the same part.
                guard case .partLost = error, !part.isUseless else { throw error }
                return (part, fresh)
            }
        }
    }

    private func fetch(_ initial: FetchPlan, _ writer: ChunkWriter) async -> JobEnding {
        var plan = initial
        for _ in 0..<Self.requestLimit {
            guard await context.gate.opened(unless: { control.wish != .work }) else { return await stop(plan, writer) }
            if let end = plan.end, writer.offset >= end, end > lease.start { return await complete(plan, writer) }
            switch await ask(&plan, writer) {
            case .again: continue
            case .complete: return await complete(plan, writer)
            case .failed(let kind, let detail, let retryAfter):
                return await fail(kind, detail, retryAfter, plan, writer)
            case .restart(let what): return .restart(what)
            case .stopped: return await stop(plan, writer)
            }
        }
        return await fail(.badRange, "the origin hands out too few bytes at a time", nil, plan, writer)
    }

    private func ask(_ plan: inout FetchPlan, _ writer: ChunkWriter) async -> Step {
        let question = plan.question(from: writer.offset)
        var request = plan.request(question)
        request.caFile = context.configuration.caFile
        request.addressAllowed = context.configuration.addressAllowed
        let transfer = FetchTransfer(
            question,
            plan: plan,
            writer: writer,
            onLearned: { [context, lease] in context.tell(lease.name, .progress(nil, $0)) },
            received: { [context] in context.received($0) }
        )
        let before = writer.offset
        let ending = await context.loops.withLoop { [request, control] loop in
            await transfer.run(request, on: loop, control: control)
        }
        guard let ending else { return .stopped }
        plan = ending.plan
        if writer.hasDeferred, await context.gate.opened(unless: { control.wish != .work }) {
            // A piece that came when the trust had ended was the last one.
            _ = try? await station.pool.run { writer.flush() }
        }
        if let step = stepByHead(ending, &plan) { return step }
        guard control.wish == .work, writer.failure == nil, !writer.hasDeferred else { return .stopped }
        return FetchJob.step(after: ending, from: before, to: writer.offset, expectedSize: lease.expectedSize, &plan)
    }

    /// What the head alone decides; `nil` when a body was accepted.
    private func stepByHead(_ ending: FetchTransfer.Ending, _ plan: inout FetchPlan) -> Step? {
        guard case .judged(let verdict) = ending.judgement else { return nil }
        switch verdict {
        case .accept:
            if case .refused = ending.outcome {
                return .failed(.badRange, "the body belongs elsewhere", retryAfter: nil)
            }
            return nil
        case .askForEverything:
            plan.askForEverything()
            return .again
        case .askUnconditionally:
            plan.askUnconditionally()
            return .again
        case .restartAsStream(let what): return .restart(what)
        case .refuse(let kind, let detail, let retryAfter): return .failed(kind, detail, retryAfter: retryAfter)
        }
    }

    /// Whether a body that was accepted is complete (`http.md` rows 3, 4, 14, 15).
    static func step(
        after ending: FetchTransfer.Ending,
        from before: Int64,
        to offset: Int64,
        expectedSize: Int64?,
        _ plan: inout FetchPlan
    ) -> Step {
        let announced: Int64? = if case .judged(.accept(let body)) = ending.judgement { body.count } else { nil }
        let wrongSize: FailureKind = expectedSize == nil ? .changed : .sizeMismatch
        switch ending.outcome {
        case .completed(_, .surplus) where plan.end == offset && announced == nil:
            return .failed(wrongSize, "there is more than \(offset) bytes", retryAfter: nil)
        case .completed where plan.end == offset, .failed where plan.end == offset: return .complete
        case .completed(_, .framed) where plan.end == nil:
            plan.streamEnded(at: offset)
            return .complete
        case .completed(_, .framed) where announced == nil:
            return .failed(wrongSize, "the stream ended after \(offset) bytes", retryAfter: nil)
        case .completed(_, .framed) where offset - before == announced && offset > before,
            .completed(_, .surplus) where offset > before:
            return .again
        case .completed(_, .connectionClosed) where plan.end == nil && !plan.digests.isEmpty:
            plan.streamEnded(at: offset)
            return .complete
        case .completed(_, .connectionClosed):
            return .failed(
                .network,
                "the connection was closed, and nothing tells whether that was the end",
                retryAfter: nil
            )
        case .completed, .refused:
            return .failed(.network, "the body ended after \(offset - before) bytes", retryAfter: nil)
        case .stopped, .cancelled: return .stopped
        case .failed(let error, _): return .failed(error.failureKind, error.description, retryAfter: nil)
        }
    }
}
