import MusterAPI
import MusterCore
import MusterCurl
import MusterSystem

/// The facts about a body's arrival that help to decide whether it is the file.
struct Arrival: Sendable {
    /// The request that brought it.
    var request: TransferRequest?
    /// The same request, as the origin's other requests see it.
    var visit: OriginConduct.Visit?
    /// How its answer looks.
    var look: Appearance?
    /// Whether other requests were under way at the origin meanwhile.
    var isShared = false
    /// Whether the file was asked for anew, since a first body differed from the next one.
    var isSecond = false
    /// Whether the request had a Range and was redirected, and the body may be a page.
    var isElsewhere = false
    /// Whether a refusal came while the origin served nothing.
    var isUnserved = false
    /// Whether a request for it was given up since it was silent while others were answered.
    var wasSilent = false
}

/// A body that is larger than the one before, with its content as far as that was read.
private struct LargerBody: Hashable {
    let size: Int64
    let read: DurablePrefix?
}

extension FetchJob {
    /// Starts the checkpoints of the part.
    func watch(_ writer: ChunkWriter, _ plan: FetchPlan) {
        context.checkpointer.watch(
            lease.name, writer, known: max(lease.resume.offset, plan.endOfPace), sync: equipment.sync)
    }

    /// Completes a lease whose bytes have all come, unless they may not be the file. `nil` when the source is to be asked again.
    func finish(
        _ plan: inout FetchPlan, _ writer: ChunkWriter, _ settings: RequestSettings, _ budgets: [ByteBudget]
    ) async -> JobEnding? {
        guard let step = await doubt(&plan, writer, settings, budgets) else { return await complete(plan, writer) }
        writer.restart(at: lease.start)
        var told = plan
        told.askPlainly()
        switch step {
        case .failed(let kind, let detail, let retryAfter):
            return await fail(kind, settings.withoutSecrets(detail), retryAfter, told, writer)
        case .again: return nil
        case .stopped, .complete, .readAgain, .examine, .reuse, .restart: return await stop(told, writer)
        }
    }

    /// Decides whether a body may be a page in the place of the file (range contract, rows 24 and 27; adr/0036). Returns the next step; `nil` when the body
    /// is taken for the file. A small body is examined, by one job of the origin at a time, unless files were seen to come from the origin in answers that
    /// look like this one, or nothing else was asked of the origin. The body is kept meanwhile.
    private func doubt(
        _ plan: inout FetchPlan, _ writer: ChunkWriter, _ settings: RequestSettings, _ budgets: [ByteBudget]
    ) async -> Step? {
        guard let address, let look = plan.arrival.look?.of(writer.offset), look.isSmall, plan.isWholeFile,
            lease.start == 0, lease.expectedSize == nil, plan.digests.all.isEmpty, settings.isHTTP
        else { return nil }
        let read = writer.prefix
        // No progress is reported of bytes that may not be the file, however long the body waits for other examinations.
        context.checkpointer.forget(lease.name)
        defer { watch(writer, plan) }
        while true {
            let rings = context.beliefs.examined.rings
            let isPage = look.mayBeNotice && !look.hasValidator || look.isHTML && address.namesNoPage
            switch context.beliefs.standing(of: read, as: look, isPage: isPage, from: source.url, of: origin) {
            case .file: return nil
            case .limit: return refusal(look, ", as of others", isLimit: true, &plan)
            case .unknown: break
            }
            guard control.wish == .work else { return .stopped }
            if context.beliefs.begin(origin) { break }
            guard await control.wait(at: context.beliefs.examined, since: rings) else { return .stopped }
        }
        defer { context.beliefs.end(origin) }
        var examination = Examination(
            of: Examination.Body(
                look: look, namesNoText: address.namesNoText, isShared: plan.arrival.isShared,
                answersRange: plan.arrival.request?.range != nil, isSecond: plan.arrival.isSecond,
                isElsewhere: plan.arrival.isElsewhere, mayMoveOn: lease.mayMoveOn == true,
                isRepeated: isRepeated(read, look)))
        var step = examination.begin()
        while control.wish == .work {
            switch step {
            case .askForWitness(let turn):
                step = examination.hear(await testimony(turn: turn, waits: examination.isAskedAgain))
            case .askAgain:
                let isIdle = context.conduct.isIdle(origin)
                let second = await second(plan, look, read, settings, budgets, isServed: examination.hasWitness)
                if second == .same {
                    context.witnesses.servedAgain(origin)
                    if examination.hasWitness { context.witnesses.tookTurn(address, status: 200) }
                }
                step = examination.hear(
                    second, isAlone: isIdle && !isRepeated(read, look),
                    turns: turns(of: address, status: 200)
                ) {
                    lease.looks != .failed && context.beliefs.leaves(source.url, as: look, of: origin)
                }
            case .over(.file(let isTold)):
                if isTold { context.witnesses.told(isLimit: false, address, status: 200) }
                if !(examination.mayBePage && examination.isVaried) {
                    context.beliefs.believe(
                        read, as: look, mayBePage: examination.mayBePage || examination.isVaried, from: source.url,
                        of: origin)
                }
                if let request = plan.arrival.request { noteWitness(request, plan, came: read.offset, isOver: true) }
                return nil
            case .over(.limit(let how)):
                context.beliefs.disprove(read, as: look, of: origin)
                return refusal(look, how, isLimit: true, &plan)
            case .over(.unclear(let why)): return refusal(look, why, isLimit: nil, &plan)
            case .over(.another):
                beginAnew(&plan)
                return .again
            }
        }
        return .stopped
    }

    /// The body is not taken for the file, which counts as a refusal.
    private func refusal(_ look: Appearance, _ more: String, isLimit: Bool?, _ plan: inout FetchPlan) -> Step {
        if isLimit == true, let address { context.witnesses.told(isLimit: true, address, status: 200) }
        plan.turns = .over(isLimit: isLimit)
        return .failed(.httpStatus(200), "\(look.words) in the place of the file\(more)", retryAfter: nil)
    }

    /// The testimony of a witness, which is a file that the origin served before. If there is none and `waits` is set, waits until the origin is idle: the
    /// page may have come because other requests were under way, and the file is not asked for beside others again.
    private func testimony(turn: Int, waits: Bool) async -> Examination.Testimony {
        guard let address else { return .nothing }
        var known = await witness(for: address, turn: turn)
        if known == nil, waits {
            context.conduct.refusesTogether(origin)
            await context.conduct.becomesIdle(origin, for: control)
            // An origin counts a request for a moment after its last byte.
            try? await MonotonicClock.sleep(for: Self.pause * Self.pausesAfterOthers)
            known = await witness(for: address, turn: turn)
        }
        guard let witness = known, witness.request.url != source.url else { return .nothing }
        // Spreads the requests over a time in which connections open and close.
        try? await MonotonicClock.sleep(for: Self.pause * turn)
        return await testimony(of: witness, status: 200)
    }

    private static let pausesAfterOthers = 3

    private func witness(for address: SourceURL, turn: Int) async -> OriginWitnesses.Witness? {
        await context.witnesses.witness(
            for: address, turn: turn, isServing: context.conduct.isServing, while: { control.wish == .work })
    }

    /// Whether the same body has come for another file too.
    private func isRepeated(_ read: DurablePrefix, _ look: Appearance) -> Bool {
        context.beliefs.isRepeated(read, as: look, of: origin)
    }

    /// The most bytes of a second body that are read to learn its size, if its head does not state it.
    private static let mostOfASecond: Int64 = 1 << 20

    /// Compares the body that came with that of a second request for the file. If the origin serves files more than once (`isServed`, as far as is known), a
    /// larger body that comes twice is the file rather than a body that came once: a page may differ each time.
    private func second(
        _ plan: FetchPlan, _ look: Appearance, _ read: DurablePrefix, _ settings: RequestSettings,
        _ budgets: [ByteBudget], isServed: Bool
    ) async -> Examination.Second {
        let (second, larger) = await askAgain(plan, look, read, settings, budgets)
        guard let larger, control.wish == .work else { return second }
        // The second body may have been cut short.
        try? await MonotonicClock.sleep(for: Self.pause * Self.pausesAfterOthers)
        let (_, third) = await askAgain(plan, look, read, settings, budgets)
        guard third == larger else { return second }
        if isServed { return .better }
        return await isSeenToServeAgain() ? .better : second
    }

    /// Whether the origin is seen to serve a file more than once. While that is unknown, the bodies of other jobs are examined first.
    private func isSeenToServeAgain() async -> Bool {
        let (beliefs, witnesses) = (context.beliefs, context.witnesses)
        if witnesses.servesAgain(origin) { return true }
        guard beliefs.mayLetOthersPass(origin) else { return false }
        let end = SteadyClock.now + Self.othersTime
        beliefs.end(origin)
        while !witnesses.servesAgain(origin), SteadyClock.now < end {
            let rings = beliefs.examined.rings
            // It may have been seen since the last look.
            if witnesses.servesAgain(origin) { break }
            guard await control.wait(at: beliefs.examined, since: rings, limit: end - .now) else { break }
        }
        while true {
            let rings = beliefs.examined.rings
            if beliefs.begin(origin) { break }
            await beliefs.examined.wait(since: rings)
        }
        return witnesses.servesAgain(origin)
    }

    /// How long the examinations of other jobs may go first.
    private static let othersTime: Duration = .seconds(5)

    /// Asks for the file once more, with a plain GET, and compares the second body with the first. Also returns the second body if it is larger and as
    /// plausible.
    private func askAgain(
        _ plan: FetchPlan, _ look: Appearance, _ read: DurablePrefix, _ settings: RequestSettings,
        _ budgets: [ByteBudget]
    ) async -> (Examination.Second, larger: LargerBody?) {
        let visit = context.conduct.ask(origin)
        let answer = await answer(
            to: plan.look, plan, settings,
            bytes: max(read.offset, min(8 * read.offset, Self.mostOfASecond)) + 1, within: .seconds(5), budgets)
        _ = context.conduct.isOver(visit, origin)
        let (head, end, isLate): (ResponseHead, DurablePrefix?, Bool)
        switch answer {
        case .came(let came, _, let read): (head, end, isLate) = (came, read, false)
        // The head tells a file from a page, however slowly the file comes.
        case .failed(_, _, let came?): (head, end, isLate) = (came, nil, true)
        case .failed(_, _, nil), .cancelled: return (.unheard, nil)
        }
        guard [200, 203, 206, 226].contains(head.status) else {
            return (head.status >= 500 || [408, 429].contains(head.status) ? .unheard : .none, nil)
        }
        let facts = ResponseFacts(head)
        // A coded body is stored decoded.
        let isDecoded = lease.options?.decode == true && facts.contentCoding != nil
        let stated = facts.contentCoding == nil ? (try? facts.contentLength()) ?? nil : nil
        let size = isDecoded ? read.offset : end?.offset ?? stated ?? .max
        let other = Appearance(facts, size: size)
        guard isLate || !isDecoded && end != read else { return (.same, nil) }
        let namesNoPage = address?.namesNoPage == true
        let isRather = { (isRepeated: Bool) in
            plan.arrival.isElsewhere
                ? other.isRatherTheFile(thanElsewhere: look, namesNoPage: namesNoPage)
                : other.isRatherTheFile(than: look, isRepeated: isRepeated, namesNoPage: namesNoPage)
        }
        if isRather(isRepeated(read, look)) { return (.better, nil) }
        guard !isLate else { return (.unheard, nil) }
        let isRepeatedToo = end.map { isRepeated($0, other) } ?? false
        let larger = isRather(true) && !isRepeatedToo && size < .max ? LargerBody(size: size, read: end) : nil
        // Two pages in the place of one file may differ in size.
        return (other.isOther(than: look) && !(other.isHTML && look.isHTML && namesNoPage) ? .none : .alike, larger)
    }

    /// Starts over with a plain GET: the body is not the file, or not its present content, and a plain GET brought a
    /// different body.
    private func beginAnew(_ plan: inout FetchPlan) {
        var next = FetchPlan(lease, source: source, from: plan.ladder.rung)
        next.askPlainly()
        (next.manner, next.standing, next.answer, next.arrival) = (plan.manner, plan.standing, plan.answer, Arrival())
        next.arrival.isSecond = true
        next.askWhole("another body than without a range")
        plan = next
    }
}
