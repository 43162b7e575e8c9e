import Logging
import MusterAPI
import MusterCore
import MusterCurl

/// The work on one fetch lease, from the look at what is there already to the durable chunk or the file in place.
struct FetchJob: Sendable {
    let lease: LeaseDocument
    let source: LeaseSource
    /// The parsed URL of the source; `nil` when it can't be parsed, which the transfer then reports.
    let address: SourceURL?
    let equipment: SinkStation.Equipment
    let station: SinkStation
    let context: JobContext
    let control: LeaseControl

    /// What follows from the end of one transfer.
    enum Step: Sendable {
        /// Ask again, as the plan says now.
        case again
        /// All bytes of the lease have come.
        case complete
        /// The body has come to an end that nothing proves: read it again.
        case readAgain
        /// A file stands at the path that may be the content.
        case examine([ContentDigest], lastModified: Int64?)
        /// The content is that of a file which the sink has.
        case reuse(HeldFile)
        /// The lease fails.
        case failed(FailureKind, String, retryAfter: Int64?)
        /// Start over on a lower rung.
        case restart(String, on: Rung)
        /// The job was told to end.
        case stopped
    }

    /// The most requests of one lease, whatever a server answers; each further request must have brought bytes.
    private static let requestLimit = 100_000

    /// Scheme, host and port of the source.
    var origin: String { address?.origin ?? source.url }

    /// Fetches the chunk, and returns how the job ended.
    func run() async -> JobEnding {
        do {
            switch try await begin() {
            case .over(let ending): return ending
            case .ready(var plan, let settings, let part, let prefix):
                let budgets = context.budgets.enter(lease)
                defer { context.budgets.leave(lease) }
                plan.keepsToBudget = budgets.contains { $0.bytesPerSecond != nil }
                let redirects = ProxiedRedirects(settings.isProxied ? context.sources : nil)
                let writer = ChunkWriter(part, after: prefix, gate: context.gate, control: control)
                watch(writer, plan)
                defer { context.checkpointer.forget(lease.name) }
                let ending = await fetch(plan, settings, writer, budgets, redirects)
                await drop(part)
                return ending
            }
        } catch {
            return ending(of: error, durable: nil, nil)
        }
    }

    private func fetch(
        _ initial: FetchPlan,
        _ settings: RequestSettings,
        _ writer: ChunkWriter,
        _ budgets: [ByteBudget],
        _ redirects: ProxiedRedirects
    ) async -> JobEnding {
        var plan = initial
        plan.doubtsSpeed = lease.looks != nil && lease.start == 0 && !plan.keepsToBudget
        for _ in 0..<Self.requestLimit {
            if let end = control.bound.agreedEnd { plan.setEnd(to: end) }
            guard await context.gate.opened(unless: { control.wish != .work }) else { return await stop(plan, writer) }
            if let end = plan.end, writer.offset >= end, end > lease.start, !plan.doubtsEnd {
                guard let ending = await finish(&plan, writer, settings, budgets) else { continue }
                return ending
            }
            switch await ask(&plan, settings, writer, budgets, redirects) {
            case .again:
                // A plain GET begins at the first byte, unless the bytes of the one before can be resumed.
                if plan.ladder.rung == .whole, writer.offset > lease.start, !plan.goesOn {
                    writer.restart(at: lease.start)
                }
            case .readAgain:
                switch plan.confirm(writer.prefix) {
                case true?:
                    if let ending = await finish(&plan, writer, settings, budgets) { return ending }
                case false?: await readAgain(plan, writer)
                case nil:
                    return await fail(
                        .badRange, "the body ends with its connection, and is another one each time", nil, plan, writer)
                }
            case .complete:
                if let visit = plan.arrival.visit { context.conduct.served(visit, of: origin) }
                if plan.doubtsEnd { continue }
                if let ending = await finish(&plan, writer, settings, budgets) { return ending }
            case .examine(let digests, let lastModified):
                return await adopt(plan, digests, lastModified: lastModified, writer)
            case .reuse(let held):
                if let ending = await reuse(held, plan, writer) { return ending }
                plan.askPlainly()
            case .failed(let kind, let detail, let retryAfter):
                let isUnproven = plan.isProvingEnd && kind.rule == .nextSource
                let context =
                    isUnproven ? "the body ends with its connection, and can't be read again to prove its end: " : ""
                return await fail(kind, context + settings.withoutSecrets(detail), retryAfter, plan, writer)
            case .restart(let what, let rung): return .restart(settings.withoutSecrets(what), on: rung)
            case .stopped: return await stop(plan, writer)
            }
        }
        return await fail(.badRange, "the origin hands out too few bytes at a time", nil, plan, writer)
    }

    private func ask(
        _ plan: inout FetchPlan,
        _ settings: RequestSettings,
        _ writer: ChunkWriter,
        _ budgets: [ByteBudget],
        _ redirects: ProxiedRedirects
    ) async -> Step {
        let question = plan.question(from: writer.offset)
        let origin = origin
        if let step = await provePositions(question, &plan, settings) { return step }
        guard let visit = await context.conduct.admit(origin, for: control) else { return .stopped }
        if let step = stepAtSilentLimit(&plan) {
            _ = context.conduct.isOver(visit, origin)
            return step
        }
        var request = request(question, plan, settings, redirects, budgets)
        let looks = Self.dividePatience(of: &request)
        let transfer = FetchTransfer(
            question,
            plan: plan,
            writer: writer,
            refusal: { [sources = context.sources] in settings.isProxied ? sources.refusal(byProxyOf: $0) : nil },
            accepted: { [request] in accepted($0, writer, request, visit) },
            received: noting(kept: question.kept),
            waited: { [loops = context.loops, request] in loops.closeIdle(like: request, besides: $0) },
            leavesSlow: { hasStopped in
                (hasStopped || control.bound.agreedEnd == nil) && context.conduct.isFasterPlainly(origin)
            },
            mayBeOnly: { [plan] in plan.mayBeOnly && !context.witnesses.servesAgain(origin) },
            looks: looks,
            isOvertaken: { [plan] in isOvertaken(visit, plan, looks) }
        )
        let before = writer.offset
        let isBeyondEnd = plan.doubtsEnd && before == plan.end
        let ending = await context.loops.withLoop(for: request.url, at: control.seat) { [request, control] loop in
            await transfer.run(request, on: loop, control: control)
        }
        let wasShared = context.conduct.isOver(visit, origin, url: source.url, isThere: ending?.tellsOfFile)
        guard let ending else { return .stopped }
        if ending.wasAccepted {
            noteWait(plan)
            context.conduct.leave(origin)
            if let part { context.conduct.leave(part) }
            noteWitness(request, ending.plan, came: writer.offset, isOver: true)
        }
        if !ending.wasOvertaken { noteSilence(ending, to: question) }
        let isShared = context.conduct.isBusy(origin)
        let asked = plan
        plan = ending.plan
        (plan.arrival.request, plan.arrival.visit, plan.arrival.isShared) = (request, visit, wasShared)
        plan.answer = OriginAnswer(ending.head, ending.outcome)
        if let step = stepAfterSilence(ending, &plan) { return step }
        // An origin that breaks off while other files come from it is up. An origin that accepts no connection may have gone down a moment ago.
        if isShared, ending.outcome.isBrokenOff { plan.answer?.wasUnanswered = false }
        if noteProtocol(ending, of: request, settings, asked, &plan) { return .again }
        if writer.hasDeferred, await context.gate.opened(unless: { control.wish != .work }) {
            // The piece that came when the trust had ended was the last one of the body.
            _ = try? await station.pool.run { writer.flush() }
        }
        if let end = control.bound.agreedEnd {
            plan.setEnd(to: end)
            // The chunk is complete, however the transfer ended that was cut for this, and whatever it would have said about the rest.
            if writer.offset >= end, control.wish == .work, writer.failure == nil { return .complete }
        }
        if isBeyondEnd, control.wish == .work {
            // The plan keeps what the answer before has shown of the file and of its arrival.
            plan = asked
            plan.doubtsEnd = false
            return Self.stepBeyondEnd(ending.head, of: plan.known, at: before, plan.ladder.rung.next)
        }
        if case .failed(.refusedRedirect(let detail), _) = ending.outcome, control.wish == .work {
            guard let url = redirects.next() else {
                return .failed(.refusedAddress, detail.message, retryAfter: nil)
            }
            // The target of the redirect was not checked yet: after the check, the source is asked again.
            let reason = await refusal(byProxyOf: url)
            return reason.map { .failed(.refusedAddress, $0, retryAfter: nil) } ?? .again
        }
        if request.authentication == .preemptive, request.hasCredentials, ending.head?.wantsDigest(of: origin) == true {
            context.conduct.challenged(by: origin)
            return .again
        }
        if plan.isProvingEnd, case .judged(.refuse(.network, _, _)) = ending.judgement, control.wish == .work {
            // The body was refused because of what an earlier read brought: it counts as a read that differs.
            return .readAgain
        }
        if control.wish == .work, writer.failure == nil, asksOtherwise(ending, to: question, &plan) { return .again }
        if writer.failure == nil, let step = await takeTurn(after: ending, to: question, &plan) { return step }
        if writer.lacksRoom, question.range != nil, asked.isUntouched, control.wish == .work {
            // A size that does not fit fails the file only if a plain GET states it, too.
            writer.forgiveLack()
            plan = asked
            plan.askWhole("a size that the sink has no room for")
            return .again
        }
        if let contradiction = Ladder.Contradiction(ending), control.wish == .work, writer.failure == nil {
            if case .refusal(.network, _, _) = contradiction, question.conditional, ending.head == nil {
                // Some origins close the connection for an If-Range (row 22a).
                plan.askUnconditionally()
                return .again
            }
            return await step(
                after: contradiction, to: question, isShared: isShared, ending, settings, budgets, &plan)
        }
        guard writer.failure == nil else { return .stopped }
        if let step = stepByHead(ending, at: writer.offset, &plan) { return step }
        guard control.wish == .work, writer.failure == nil, !writer.hasDeferred else { return .stopped }
        let received = writer.offset - before
        if plan.mayBePart(ending, of: question, count: received) {
            plan.askWhole("200 with as many bytes as the part has that was asked for")
            return .again
        }
        let step = FetchJob.step(
            after: ending, from: before, to: writer.offset, expectedSize: lease.expectedSize, &plan)
        let contradiction: Ladder.Contradiction
        switch step {
        case .failed(_, let detail, _) where ending.wasCutForPlain:
            plan.leftRungs += Rung.allCases.filter { $0 >= plan.ladder.rung && $0 < .whole }
            rememberLeftRungs(plan)
            return .restart("\(detail), and a plain GET comes faster", on: .whole)
        case .again where plan.noteAnswer(of: received, to: question):
            contradiction = .answer("the origin hands out \(received) bytes at a time", to: .whole)
        case .failed(let kind, let detail, _)
        where question.range != nil && ending.endsPart(after: received, on: plan.ladder.rung):
            contradiction = .ending(kind, detail, .init(first: before, count: received, size: plan.known.size))
        default: return step
        }
        return await self.step(
            after: contradiction, to: question, isShared: isShared, ending, settings, budgets, &plan)
    }

    /// The step after an answer, or a missing one, that contradicts the way in which the source was asked (range contract, "The ladder").
    private func step(
        after contradiction: Ladder.Contradiction,
        to question: FetchQuestion,
        isShared: Bool,
        _ ending: FetchTransfer.Ending,
        _ settings: RequestSettings,
        _ budgets: [ByteBudget],
        _ plan: inout FetchPlan
    ) async -> Step {
        let rung = plan.ladder.rung
        if let head = ending.head, head.status == 206, !head.headers.contains("Content-Encoding") {
            plan.claimedSize = head.headers["Content-Range"].flatMap { ContentRange($0)?.size }
        }
        let isHTTP2 = ending.head?.version == .http2
        var move = plan.move(after: contradiction, to: question, isShared: isShared, isHTTP2: isHTTP2)
        if case .look = move {
            switch await look(plan, settings, budgets) {
            case .served: move = plan.looked(refused: nil)
            case .refused(let what): move = plan.looked(refused: what)
            case .changed(let what): return .failed(.changed, what, retryAfter: nil)
            case .stopped: return .stopped
            }
        }
        plan.leftRungs += Rung.allCases.filter { $0 >= rung && $0 < plan.ladder.rung }
        switch move {
        case .ask, .look: return .again
        case .startOver(let what, let rung):
            rememberLeftRungs(plan)
            return .restart(what, on: rung)
        case .fail(let kind, let detail, let retryAfter): return .failed(kind, detail, retryAfter: retryAfter)
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
        if case .completed = ending.outcome, let what = plan.doubtfulEnd(at: offset) {
            return plan.isProvingEnd ? .readAgain : .failed(.network, what, retryAfter: nil)
        }
        switch ending.outcome {
        case .completed(_, .surplus) where plan.end == offset && announced == nil:
            return .failed(wrongSize, "there is more than \(offset) bytes", retryAfter: nil)
        case .completed where plan.end == offset, .failed where plan.end == offset: return .complete
        // Nothing but the end of the connection, or of an HTTP/2 stream, marked the end of the body.
        case .completed where plan.end == nil && ending.head?.isEndUncertain == true && !plan.believesAnyEnd:
            return .readAgain
        case .completed(_, .framed) where plan.end == nil:
            plan.ended(at: offset)
            return .complete
        case .completed(_, .framed) where announced == nil:
            let rest = expectedSize.map { ", and \($0) were expected" } ?? ""
            return .failed(wrongSize, "the stream ended after \(offset) bytes\(rest)", retryAfter: nil)
        case .completed(_, .framed) where offset - before == announced && offset > before,
            .completed(_, .surplus) where offset > before:
            return .again
        case .completed(_, .connectionClosed) where plan.end == nil:
            plan.ended(at: offset)
            return .complete
        case .completed(_, .connectionClosed):
            return .failed(
                .network,
                "the connection was closed after \(offset - before) bytes, \((plan.end ?? offset) - offset) too early",
                retryAfter: nil
            )
        case .completed, .refused:
            return .failed(.network, "the body ended after \(offset - before) bytes", retryAfter: nil)
        case .stopped, .cancelled: return .stopped
        case .failed(let error, _):
            var detail = error.description
            // Shows the user whether it breaks off at the same byte each time.
            switch error {
            case .truncated, .reset: detail += ", after \(offset - before) bytes"
            default: break
            }
            return .failed(error.failureKind, detail, retryAfter: nil)
        }
    }
}
