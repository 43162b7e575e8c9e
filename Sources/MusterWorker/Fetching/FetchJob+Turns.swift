import MusterAPI
import MusterCore
import MusterCurl

/// How far it is told whether the refusal of a file is a limit of its origin (row 24; adr/0033).
enum Turns: Sendable, Hashable {
    /// A witness was served so many times, each time after a refusal of the file.
    case taken(Int)
    /// It is told, or can't be.
    case over(isLimit: Bool?)

    /// Whether the refusal was seen to be a limit, or seen to be none; `nil` when nobody knows.
    var isLimit: Bool? {
        if case .over(let isLimit) = self { isLimit } else { nil }
    }
}

extension FetchJob {
    /// What an answer to the request for a witness says.
    private enum Testimony: Sendable {
        case served
        case refused
        case nothing
    }

    /// After a refusal that may be for too much at once: asks for a file that the origin has served, before this one is asked for again. Returns what
    /// follows; `nil` when the refusal is to be dealt with as it is.
    func takeTurn(after ending: FetchTransfer.Ending, _ plan: inout FetchPlan) async -> Step? {
        guard control.wish == .work, plan.isUntouched, case .taken(let count) = plan.turns,
            case .judged(.refuse(let kind, let detail, nil)) = ending.judgement, let status = ending.head?.status,
            kind.limitSignal(status: status) != .none, let address,
            let witness = await context.witnesses.witness(for: address, turn: count, while: { control.wish == .work }),
            witness.request.url != source.url
        else { return nil }
        guard count < context.witnesses.turns(of: address, status: status) else {
            context.witnesses.told(isLimit: false, address, status: status)
            plan.turns = .over(isLimit: false)
            // A page that comes in turns with other files is the file (row 27).
            return kind == .httpStatus(200) ? .again : nil
        }
        // Spread over a time in which connections come and go.
        try? await Task.sleep(for: Self.pause * count)
        switch await testimony(of: witness, status: status) {
        case .served:
            context.witnesses.servedAgain(address.origin)
            plan.turns = .taken(count + 1)
            return .again
        case .refused:
            context.witnesses.told(isLimit: true, address, status: status)
            plan.turns = .over(isLimit: true)
            return .failed(kind, detail, retryAfter: nil)
        case .nothing:
            plan.turns = .over(isLimit: nil)
            return control.wish == .work ? nil : .stopped
        }
    }

    /// The pause before the second turn; each further one is longer by as much.
    private static let pause: Duration = .milliseconds(40)

    private func testimony(of witness: OriginWitnesses.Witness, status: Int) async -> Testimony {
        let collector = AnswerCollector(limitBytes: 1, keepsBody: false)
        let ending = await context.loops.withLoop(at: control.seat) { [control] loop in
            await collector.run(witness.request, on: loop, control: control)
        }
        switch ending {
        case .answered(let head, _, _), .tooLarge(let head):
            let isPage = status == 200 && ResponseFacts(head).mayBeNotice
            // An empty file has no first byte.
            if !isPage, (200..<300).contains(head.status) || head.status == 416 { return .served }
            // What is refused while nothing comes from there is refused for another reason: a token has expired. A URL may be used up.
            let isOfLimit =
                (head.status == status || isPage) && context.conduct.isServing(origin)
                && (!witness.mayBeUsedUp || lease.asksForAll != true || context.witnesses.servesAgain(origin))
            return isOfLimit ? .refused : .nothing
        case .failed, .cancelled: return .nothing
        }
    }

    /// Notes a request that was served, to ask for it again where others are refused; not a page in the place of a file, which may be a refusal.
    func noteWitness(_ request: TransferRequest, _ plan: FetchPlan, isOver: Bool) {
        guard let address, !(plan.isPage && address.namesNoText) else { return }
        context.witnesses.served(request, of: address, mayBeUsedUp: lease.asksForAll == true, isOver: isOver)
    }
}
