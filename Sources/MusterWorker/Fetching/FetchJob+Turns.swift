import MusterAPI
import MusterCore
import MusterCurl
import MusterSystem

/// How far it is decided whether the refusal of a file is a limit of its origin (row 24; adr/0033).
enum Turns: Sendable, Hashable {
    /// A witness was served this many times, each time after a refusal of the file, and the file was refused again since.
    case taken(Int)
    /// A witness was served since the last refusal, which makes this many times, and the file is being asked for again.
    case begun(Int)
    /// It is decided, or can't be.
    case over(isLimit: Bool?)

    /// Whether the refusal was seen to be a limit; `nil` when that is unknown.
    var isLimit: Bool? {
        if case .over(let isLimit) = self { isLimit } else { nil }
    }

    /// How often a witness was served; `nil` when it is decided.
    var count: Int? {
        switch self {
        case .taken(let count), .begun(let count): count
        case .over: nil
        }
    }
}

extension FetchJob {
    /// After a refusal that may mean too much at once, asks for a file that the origin has served (a witness), before this file is asked for again. Returns
    /// the next step; `nil` when the refusal is to be handled as it is.
    func takeTurn(
        after ending: FetchTransfer.Ending, to question: FetchQuestion, _ plan: inout FetchPlan
    ) async -> Step? {
        guard control.wish == .work, plan.isUntouched, let count = plan.turns.count,
            let (kind, detail, status) = mayBeLimit(ending, to: question, plan.arrival), let address
        else { return nil }
        if plan.turns == .begun(count) {
            plan.turns = .taken(count)
            context.witnesses.tookTurn(address, status: status)
        }
        let refused = context.witnesses.shared.moment
        if plan.arrival.isShared, turns(of: address, status: status) == OriginWitnesses.turns,
            context.witnesses.isLimit(status, of: origin) || !context.conduct.servesTogether(origin)
        {
            context.conduct.refusesTogether(origin)
        }
        // Other requests may have been made at the same time.
        if await context.conduct.servesNobody(origin, for: control) {
            // Where nothing is served, an error of the server is an outage.
            guard status != OriginWitnesses.silence, !Self.isOfServer(status) else { return nil }
            plan.arrival.isUnserved = context.conduct.isRefusedForItself(origin, isShared: plan.arrival.isShared)
            guard !plan.arrival.isUnserved, plan.waits < Self.mostWaits else { return nil }
            // Many requests at once may have been more than the origin allows: the file is asked for alone.
            plan.waits += 1
            return .again
        }
        // If nothing has come for longer than a limit lasts, the refusal of a witness shows nothing.
        guard
            !context.witnesses.isLimit(status, of: address.origin)
                || context.conduct.isServing(origin, despite: status)
        else {
            plan.turns = .over(isLimit: nil)
            return nil
        }
        let witness = await context.witnesses.witness(
            for: address, turn: count, isServing: { context.conduct.isServing($0, despite: status) },
            while: { control.wish == .work })
        guard let witness, witness.request.url != source.url else {
            return await waitForOthers(kind, detail, status, &plan)
        }
        if status != OriginWitnesses.silence {
            await context.witnesses.waitForTurns(of: address, status: status, for: control)
        }
        guard count < turns(of: address, status: status) else {
            context.witnesses.told(isLimit: false, address, status: status, isPartClosed: witness.isElsewhere)
            plan.turns = .over(isLimit: false)
            return nil
        }
        // Spreads the turns over a time in which connections open and close.
        try? await MonotonicClock.sleep(for: Self.pause * count)
        switch await testimony(of: witness, for: address, status: status, after: refused) {
        case .served:
            context.witnesses.servedAgain(address.origin)
            guard status != OriginWitnesses.silence else {
                plan.turns = .over(isLimit: nil)
                return nil
            }
            plan.turns = .begun(count + 1)
            // The place that was free for the witness may be free again only a moment later: the pauses differ.
            try? await MonotonicClock.sleep(for: Self.pause * (count % 3))
            return .again
        case .refused:
            context.witnesses.told(isLimit: true, address, status: status)
            plan.turns = .over(isLimit: true)
            return .failed(kind, detail, retryAfter: nil)
        case .other, .nothing:
            guard control.wish == .work else { return .stopped }
            if let step = await waitForOthers(kind, detail, status, &plan) { return step }
            plan.turns = .over(isLimit: nil)
            return nil
        }
    }

    /// Asks for a refused file again for some seconds if no witness tells anything, since there is none, or since its URL may work only once. This is done
    /// only if the coordinator knows this status as no sign of a limit, and as long as the origin sends other files. A file that is then served shows that
    /// the status is a limit.
    private func waitForOthers(
        _ kind: FailureKind, _ detail: String, _ status: Int, _ plan: inout FetchPlan
    ) async -> Step? {
        guard status != OriginWitnesses.silence, kind.limitSignal(status: status) == .none else { return nil }
        // If nothing has come for longer than a limit lasts, the refusal is no limit any more.
        guard context.conduct.isServing(origin, despite: status) else { return nil }
        if context.witnesses.isLimit(status, of: origin) {
            plan.turns = .over(isLimit: true)
            return .failed(kind, detail, retryAfter: nil)
        }
        guard plan.waits < Self.mostWaits, plan.waits < 2 || context.conduct.isBusy(origin) else { return nil }
        plan.waits += 1
        try? await MonotonicClock.sleep(for: min(Self.wait * plan.waits, .seconds(1)))
        return .again
    }

    private static let wait: Duration = .milliseconds(250)
    private static let mostWaits = 12

    /// Notes that a file was served, and what its waits or turns have shown.
    func noteWait(_ plan: FetchPlan) {
        guard let address else { return }
        if plan.isUntouched { context.witnesses.leave(address) }
        guard let status = plan.answer?.status else { return }
        if plan.waits > 0 {
            context.witnesses.told(isLimit: true, address, status: status)
        } else if plan.turns.count ?? 0 > 0 {
            context.witnesses.forgetTurns(address, status: status)
        }
    }

    /// The pause before the second turn; each further one is longer by as much.
    static let pause: Duration = .milliseconds(40)

    /// How many turns decide about a refusal. While others are served, another request may take the connection of the witness before the file is asked for
    /// again.
    func turns(of address: SourceURL, status: Int) -> Int {
        context.witnesses.turns(of: address, status: status, isBusy: context.conduct.isBusy(origin))
    }

    /// The testimony of a witness. Where one turn is enough, jobs share a testimony that was asked for after the refusal.
    private func testimony(
        of witness: OriginWitnesses.Witness, for address: SourceURL, status: Int, after refused: Int
    ) async -> Examination.Testimony {
        guard turns(of: address, status: status) == OriginWitnesses.oneTurn else {
            return await testimony(of: witness, status: status)
        }
        return await context.witnesses.shared.testimony(
            of: "\(status) \(witness.request.url)", after: refused, for: control,
            ask: { await testimony(of: witness, status: status) }) ?? .nothing
    }

    /// Asks for a file that was served, to see whether it is refused with this status as well; for status 200, whether something else comes in its place.
    ///
    /// - Parameter patience: how long its answer may take, if that is less than usual.
    func testimony(
        of witness: OriginWitnesses.Witness, status: Int, patience: Duration? = nil
    ) async -> Examination.Testimony {
        var request = witness.request
        if let patience { request.firstByteTimeout = min(request.firstByteTimeout, patience) }
        guard let visit = await context.conduct.admit(origin, for: control) else { return .nothing }
        let collector = AnswerCollector(limitBytes: 1, keepsBody: false)
        let ending = await context.loops.withLoop(for: request.url, at: control.seat) { [control, request] loop in
            await collector.run(request, on: loop, control: control)
        }
        _ = context.conduct.isOver(visit, origin)
        switch ending {
        case .answered(let head, _, _), .tooLarge(let head):
            let isOther = witness.isOther(head)
            // An empty file has no first byte.
            if !isOther, (200..<300).contains(head.status) || head.status == 416 { return .served }
            // While nothing comes from the origin, a refusal has another reason, such as an expired token. A URL may also be used up.
            let isOfLimit = (head.status == status || status == 200 && isOther) && showsLimit(witness, status)
            return isOfLimit ? .refused : isOther ? .other : .nothing
        case .failed(let error, let statistics) where error.saidAsStatus(statistics) == status:
            return showsLimit(witness, status) ? .refused : .nothing
        case .failed, .cancelled: return .nothing
        }
    }

    /// The key of the part of the origin that the file is in, as `OriginConduct` uses it.
    var part: String? { address.map(OriginWitnesses.key(ofPart:)) }

    /// Whether a witness that is refused with this status shows a limit.
    private func showsLimit(_ witness: OriginWitnesses.Witness, _ status: Int) -> Bool {
        context.conduct.isServing(origin, despite: status)
            && (!witness.mayBeUsedUp || lease.asksForAll != true || context.witnesses.servesAgain(origin))
    }

    /// Checks now and then, after a file has come, whether the origin serves a file more than once. This is done if the first request brought all of the
    /// file, and if that is not known yet: without it, a later refusal of a witness shows nothing, and a silent request is not made once more.
    func seeWhetherServedAgain(_ plan: FetchPlan) async {
        guard lease.asksForAll == true, plan.isWholeFile, let address, control.wish == .work,
            let witness = context.witnesses.fileCame(address, besideOthers: context.conduct.leavesMany(origin))
        else { return }
        // A page may come in its place.
        guard case .served = await testimony(of: witness, status: 200, patience: Self.timeToSee) else { return }
        context.witnesses.servedAgain(address.origin)
    }

    /// The longest time that a finished file waits for that check: another file may show it.
    private static let timeToSee: Duration = .seconds(2)

    /// Notes a request that was served, to ask for it again when others are refused; not as long as it may have brought a page in the place of the file.
    func noteWitness(_ request: TransferRequest, _ plan: FetchPlan, came offset: Int64 = 0, isOver: Bool) {
        guard let address, let look = plan.arrival.look?.of(max(plan.known.size ?? 0, offset)),
            !look.isSmall || context.beliefs.knows(look, of: origin)
        else { return }
        context.witnesses.served(request, of: address, look, mayBeUsedUp: lease.asksForAll == true, isOver: isOver)
    }

    /// The failure of a transfer that may mean too much at once: a refusal, or a silence.
    private func mayBeLimit(
        _ ending: FetchTransfer.Ending, to question: FetchQuestion, _ arrival: Arrival
    ) -> (kind: FailureKind, detail: String, status: Int)? {
        switch (ending.judgement, ending.outcome) {
        case (.judged(.refuse(let kind, let detail, nil)), _):
            // 429 states a limit itself, and each further request may count; but an origin may also answer this file with
            // it every time.
            guard let status = ending.head?.status, status != 429 || [.failed, .atOnce].contains(lease.looks),
                kind.limitSignal(status: status) != .none || isUnusualLimit(kind, status, question, arrival)
            else { return nil }
            return (kind, detail, status)
        case (.waiting, .failed(let error, let statistics)):
            guard let status = error.saidAsStatus(statistics),
                status == OriginWitnesses.silence || isUnusualLimit(error.failureKind, status, question, arrival)
            else { return nil }
            return (error.failureKind, error.description, status)
        case (.judged, _), (.standing, _), (.waiting, _): return nil
        }
    }

    /// Whether a status says that the server has failed, without naming a limit.
    private static func isOfServer(_ status: Int) -> Bool { [500, 502, 504].contains(status) }

    /// Whether a refusal that usually has another meaning may be a limit: the origin serves other requests, or may, and the file would be given up for the
    /// refusal, or loses a try by it. A source that was not asked yet is asked first.
    private func isUnusualLimit(
        _ kind: FailureKind, _ status: Int, _ question: FetchQuestion, _ arrival: Arrival
    ) -> Bool {
        guard lease.mayMoveOn != true else { return false }
        // A proxy before a server that takes one request at a time answers the others so. By itself such an answer is a try.
        if Self.isOfServer(status) { return arrival.isShared && context.conduct.isServing(origin, despite: status) }
        guard kind.rule == .nextSource || kind == .network, status != 407 else { return false }
        // After a redirect to an unreachable host, no request without the range follows.
        return (question.range == nil || !kind.mayBeForRange && kind != .badRange || kind == .network)
            && (arrival.isShared || context.conduct.isServing(origin, despite: status))
    }
}

extension TransferError {
    /// The status that stands for a missing head, if that may mean too much at once: no answer in time, an answer that is no HTTP, or a redirect that leads
    /// nowhere, to an unreachable host, or in a circle.
    fileprivate func saidAsStatus(_ statistics: TransferStatistics) -> Int? {
        switch self {
        case .firstByteTimeout: OriginWitnesses.silence
        case .protocolViolation: OriginWitnesses.noHTTP
        case .tooManyRedirects: 302
        case .connect where statistics.redirectCount > 0, .dns where statistics.redirectCount > 0: 302
        default: nil
        }
    }
}
