import Logging
import MusterAPI
import MusterCore
import MusterCurl

/// The work on one fetch lease, from the look at what is there already to the durable chunk or the file in place.
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
        /// A file stands at the path that may be the content.
        case examine([ContentDigest], lastModified: Int64?)
        /// The content is that of a file which the sink has.
        case reuse(HeldFile)
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
        do {
            switch try await begin() {
            case .over(let ending): return ending
            case .ready(let plan, let settings, let part, let prefix):
                let budgets = context.budgets.enter(lease)
                defer { context.budgets.leave(lease) }
                let writer = ChunkWriter(part, after: prefix, gate: context.gate, control: control)
                context.checkpointer.watch(
                    lease.name,
                    writer,
                    known: max(lease.resume.offset, lease.start),
                    sync: equipment.sync
                )
                defer { context.checkpointer.forget(lease.name) }
                return await fetch(plan, settings, writer, budgets)
            }
        } catch {
            return ending(of: error, durable: nil, nil)
        }
    }

    private func fetch(
        _ initial: FetchPlan,
        _ settings: RequestSettings,
        _ writer: ChunkWriter,
        _ budgets: [ByteBudget]
    ) async -> JobEnding {
        var plan = initial
        for _ in 0..<Self.requestLimit {
            if let end = control.bound.agreedEnd { plan.shorten(to: end) }
            guard await context.gate.opened(unless: { control.wish != .work }) else { return await stop(plan, writer) }
            if let end = plan.end, writer.offset >= end, end > lease.start { return await complete(plan, writer) }
            switch await ask(&plan, settings, writer, budgets) {
            case .again: continue
            case .complete: return await complete(plan, writer)
            case .examine(let digests, let lastModified):
                return await adopt(plan, digests, lastModified: lastModified, writer)
            case .reuse(let held):
                if let ending = await reuse(held, plan, writer) { return ending }
                plan.askPlainly()
            case .failed(let kind, let detail, let retryAfter):
                return await fail(kind, settings.withoutSecrets(detail), retryAfter, plan, writer)
            case .restart(let what): return .restart(settings.withoutSecrets(what))
            case .stopped: return await stop(plan, writer)
            }
        }
        return await fail(.badRange, "the origin hands out too few bytes at a time", nil, plan, writer)
    }

    private func ask(
        _ plan: inout FetchPlan,
        _ settings: RequestSettings,
        _ writer: ChunkWriter,
        _ budgets: [ByteBudget]
    ) async -> Step {
        let question = plan.question(from: writer.offset)
        let origin = (try? SourceURL(validating: source.url))?.origin ?? source.url
        var request = plan.request(
            question,
            settings,
            fellBack: context.protocols.fellBack(origin),
            isPaced: budgets.contains { $0.bytesPerSecond != nil }
        )
        request.addressAllowed = { [sources = context.sources] in sources.allows($0) }
        request.budgets = budgets
        let transfer = FetchTransfer(
            question,
            plan: plan,
            writer: writer,
            refusal: { [sources = context.sources] in settings.isProxied ? sources.refusal(byProxyOf: $0) : nil },
            accepted: { plan in accepted(plan, writer) },
            received: { [context] in context.received($0) }
        )
        let before = writer.offset
        let ending = await context.loops.withLoop { [request, control] loop in
            await transfer.run(request, on: loop, control: control)
        }
        guard let ending else { return .stopped }
        plan = ending.plan
        plan.answer = OriginAnswer(ending.head, ending.outcome.statistics)
        if let event = ProtocolHistory.Event(ending.head, ending.outcome) {
            context.protocols.note(event, of: origin)
        }
        if writer.hasDeferred, await context.gate.opened(unless: { control.wish != .work }) {
            // A piece that came when the trust had ended was the last one.
            _ = try? await station.pool.run { writer.flush() }
        }
        if let end = control.bound.agreedEnd {
            plan.shorten(to: end)
            // However the transfer ended that was cut for it, and whatever it was about to say of the rest.
            if writer.offset >= end, control.wish == .work, writer.failure == nil { return .complete }
        }
        if let step = stepByHead(ending, at: writer.offset, &plan) { return step }
        guard control.wish == .work, writer.failure == nil, !writer.hasDeferred else { return .stopped }
        return FetchJob.step(after: ending, from: before, to: writer.offset, expectedSize: lease.expectedSize, &plan)
    }

    /// A body was accepted and its first byte is about to come. Called on the loop's thread.
    private func accepted(_ plan: FetchPlan, _ writer: ChunkWriter) {
        if plan.isWorthTellingAtOnce {
            context.tell(lease.name, .progress(nil, plan.learned))
        } else if let learned = resumable(plan) {
            context.checkpointer.note(learned, of: lease.name)
        }
        if plan.isSettled, !plan.isWholeFile, let end = plan.end { control.bound.divide(at: end) }
        let algorithms = plan.digestsOnTheWay(from: writer.offset)
        if !algorithms.isEmpty { writer.hash(algorithms, on: station.hashing) }
    }

    /// What the head alone decides; `nil` when a body was accepted.
    private func stepByHead(_ ending: FetchTransfer.Ending, at offset: Int64, _ plan: inout FetchPlan) -> Step? {
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
        case .askForEverything:
            plan.askForEverything()
            return .again
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
        case .restartAsStream(let what): return .restart(what)
        case .refuse(let kind, let detail, let retryAfter): return .failed(kind, detail, retryAfter: retryAfter)
        }
    }

    /// Whether a body that was accepted is complete (range contract, rows 3, 4, 14, 15).
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
        case .completed(_, .framed)
        where plan.end == nil && plan.digests.all.isEmpty && ending.head?.isEndUncertain == true:
            return .failed(
                .network,
                "the stream ended without a length, and nothing tells whether that was the end",
                retryAfter: nil
            )
        case .completed(_, .framed) where plan.end == nil:
            plan.ended(at: offset)
            return .complete
        case .completed(_, .framed) where announced == nil:
            return .failed(wrongSize, "the stream ended after \(offset) bytes", retryAfter: nil)
        case .completed(_, .framed) where offset - before == announced && offset > before,
            .completed(_, .surplus) where offset > before:
            return .again
        case .completed(_, .connectionClosed) where plan.end == nil && !plan.digests.all.isEmpty:
            plan.ended(at: offset)
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

extension ProtocolHistory.Event {
    /// What the end of a transfer tells about the origin's HTTP/2; `nil` when there was none, or nothing follows from it.
    init?(_ head: ResponseHead?, _ outcome: TransferOutcome) {
        let wasHTTP2 = head?.version == .http2
        switch outcome {
        case .failed(.streamReset, _): self = .reset
        case .completed where wasHTTP2 && head?.isEndUncertain == true: self = .endless
        // The connection went away under the stream.
        case .failed(.reset, _) where wasHTTP2, .failed(.truncated, _) where wasHTTP2: self = .reset
        case .completed where wasHTTP2: self = .served
        case .completed, .failed, .refused, .stopped, .cancelled: return nil
        }
    }
}
