import Logging
import MusterAPI
import MusterCore
import MusterCurl

extension FetchJob {
    /// All bytes are written: makes the chunk durable, or puts the whole file in place.
    func complete(_ plan: FetchPlan, _ writer: ChunkWriter) async -> JobEnding {
        // Comes first, while the lease still has its connection.
        await seeWhetherServedAgain(plan)
        let prefix = writer.prefix
        let learned = plan.isWorthTellingAtOnce && !plan.isCoded ? nil : plan.learned
        // The next transfer can begin; durability and report follow.
        context.tell(lease.name, .fetched)
        guard plan.isPlacedHere else {
            do {
                try await equipment.sync.makeDurable(writer.part)
            } catch {
                return ending(of: error, durable: nil, learned)
            }
            return .done(prefix, learned, nil)
        }
        let chunks = [ByteRange(first: prefix.offset)].filter { !$0.isEmpty }.map {
            FinishedChunk(range: $0, crc: prefix.crc)
        }
        let placing = Placing(lease: lease, equipment: equipment, context: context, control: control)
        let placed = await placing.place(
            size: prefix.offset,
            chunks: chunks,
            digests: plan.digests.all,
            known: await writer.digests(),
            representation: plan.known
        )
        switch placed {
        case .inPlace(let finished): return .done(prefix, learned, finished)
        // A file that differs from what was written, or from what was put in place before, says nothing about the origin.
        case .failed(let failure) where failure.kind == .changed: return .failed(failure, nil, nil)
        case .failed(let failure): return .failed(attributed(failure, plan), nil, nil)
        case .storage(let error): return JobEnding(placing: error, isAborted: control.wish == .abort)
        case .stopped: return await stop(plan, writer)
        }
    }

    /// Fails the lease. The bytes that came are made durable first, so that they are not fetched again.
    func fail(
        _ kind: FailureKind,
        _ detail: String,
        _ retryAfter: Int64?,
        _ plan: FetchPlan,
        _ writer: ChunkWriter
    ) async -> JobEnding {
        let loss = kind.rule == .retry ? plan.loss(at: writer.offset) : nil
        let failure = attributed(
            Report.Failure(kind: kind, detail: detail + (loss ?? ""), retryAfter: retryAfter), plan)
        context.logger.debug(
            "A transfer failed",
            metadata: .init([
                .task: "\(lease.task)", .chunk: "\(lease.chunk)", .kind: kind.rawValue, .reason: failure.detail,
                .offset: "\(writer.offset)",
            ])
        )
        do {
            let durable = plan.hasKeptPace(at: writer.offset) ? try await settled(writer) : nil
            let isBodyCut = durable != nil || kind.rule == .retry && !writer.lacksRoom
            // What the head stated is reported even if nothing came, or nothing can be resumed: later answers are checked against it (row 27).
            return .failed(failure, durable, isBodyCut ? plan.learnedSoFar : nil)
        } catch {
            return ending(of: error, durable: nil, nil)
        }
    }

    /// Ends the job because it was told to, or because the storage failed.
    func stop(_ plan: FetchPlan, _ writer: ChunkWriter) async -> JobEnding {
        if control.wish == .abort { return .aborted }
        let failure = writer.failure
        do {
            let durable = try await settled(writer)
            // What the head stated is reported even if nothing can be resumed: later answers are checked against it (row
            // 27).
            let learned = durable == nil && failure != nil ? nil : plan.learnedSoFar
            if let failure { return ending(of: failure, durable: durable, learned) }
            return .released(durable, learned)
        } catch {
            return ending(of: failure ?? error, durable: nil, nil)
        }
    }

    /// Makes the bytes durable that were written beyond the known durable offset; `nil` when there are none.
    private func settled(_ writer: ChunkWriter) async throws(StorageError) -> DurablePrefix? {
        let prefix = writer.prefix
        guard prefix.offset > max(lease.start, lease.resume.offset) else { return nil }
        try await equipment.sync.makeDurable(writer.part)
        return prefix
    }

    /// Adds the source of a failure, and the facts of the answer before it.
    private func attributed(_ failure: Report.Failure, _ plan: FetchPlan) -> Report.Failure {
        var failure = failure.following(plan.answer)
        failure.source = source.ordinal
        failure.isLimit = plan.turns.isLimit
        failure.unserved = plan.arrival.isUnserved ? true : nil
        if failure.kind == .network { failure.servedAtOnce = context.conduct.servedAtOnce(origin) }
        // Not for a body that broke off: the texts of such failures are compared word for word.
        if let there = plan.answer?.redirectedTo, there != origin, failure.status ?? 0 >= 300 {
            failure.elsewhere = true
            failure.detail += ", redirected to \(there)"
        }
        // The first source is the usual one and is not named.
        if source.ordinal > 0 || lease.isOtherMirror == true {
            failure.detail = "mirror \(source.ordinal): \(failure.detail)"
        }
        return failure
    }

    /// The job's ending for a storage failure.
    func ending(of error: StorageError, durable: DurablePrefix?, _ learned: Report.Learned?) -> JobEnding {
        if control.wish == .abort { return .aborted }
        return JobEnding(error, durable: durable, learned)
    }
}

extension JobEnding {
    /// A failing sink is parked, and the lease is released; a passing failure, such as a lack of descriptors, only releases the lease. Any other failure is
    /// the task's own.
    init(_ error: StorageError, durable: DurablePrefix? = nil, _ learned: Report.Learned? = nil) {
        if error.parksSink {
            self = .sinkTrouble(SinkTrouble(error), durable, learned)
        } else if error.isPassing {
            self = .released(durable, learned)
        } else {
            self = .failed(Report.Failure(kind: error.failureKind, detail: error.description), durable, learned)
        }
    }

    /// How a job ends that has failed to put a file in place or to delete one. Even if it was told to abort: files may be on storage where they were before.
    init(placing error: StorageError, isAborted: Bool) {
        if error.parksSink {
            self = .unsettled(SinkTrouble(error))
        } else {
            self = isAborted ? .aborted : JobEnding(error)
        }
    }
}

extension FetchJob {
    /// What the head alone decides; `nil` when a body was accepted.
    func stepByHead(_ ending: FetchTransfer.Ending, at offset: Int64, _ plan: inout FetchPlan) -> Step? {
        let verdict: ResponseVerdict
        switch ending.judgement {
        case .waiting: return nil
        case .standing(let digests, let lastModified): return .examine(digests, lastModified: lastModified)
        case .judged(let judged): verdict = judged
        }
        switch verdict {
        case .accept:
            if case .refused = ending.outcome {
                return .failed(.badRange, "the body belongs elsewhere", retryAfter: nil)
            }
            return nil
        case .askUnconditionally:
            plan.askUnconditionally()
            return .again
        case .askPlainly:
            plan.askPlainly()
            return .again
        case .unmodified:
            guard let held = plan.held else { return .again }
            plan.settleHeld(effectiveURL: ending.head?.effectiveURL)
            return .reuse(held)
        case .complete:
            plan.ended(at: offset)
            return .complete
        case .descend(let what, _): return .failed(.badRange, what, retryAfter: nil)
        case .refuse(let kind, let detail, let retryAfter): return .failed(kind, detail, retryAfter: retryAfter)
        }
    }
}
