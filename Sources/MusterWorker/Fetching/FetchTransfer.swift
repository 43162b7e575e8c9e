import MusterCore
import MusterCurl
import Synchronization

/// One request of a fetch on a transfer loop: judges the head before the first byte and writes the body.
final class FetchTransfer: TransferHandler {
    /// How the head was judged.
    enum Judgement: Sendable {
        /// No head came yet. Exits: `judged`, `standing`.
        case waiting
        /// The verdict on it.
        case judged(ResponseVerdict)
        /// The head was accepted, but no body is taken before the file at the path is examined.
        case standing([ContentDigest], lastModified: Int64?)
    }

    /// How the transfer ended.
    struct Ending: Sendable {
        let judgement: Judgement
        let outcome: TransferOutcome
        /// The head, if one came.
        let head: ResponseHead?
        /// The plan as the response left it.
        let plan: FetchPlan
        /// Whether it was cut because a plain GET is faster.
        let wasCutForPlain: Bool
        /// Whether it was given up since it was silent while others were answered.
        let wasOvertaken: Bool

        /// Whether a body was taken.
        var wasAccepted: Bool {
            switch (judgement, outcome) {
            case (_, .refused): false
            case (.judged(.accept), _): true
            case (.judged, _), (.waiting, _), (.standing, _): false
            }
        }

        /// How many bytes of the body were stored already.
        var skipped: Int64 { if case .judged(.accept(let body)) = judgement { body.skipped } else { 0 } }

        /// Whether the origin said that the file is there, whether or not it sent it; `nil` where the answer says nothing about that.
        /// A failed transfer counts as `false`, unless its head was accepted.
        var tellsOfFile: Bool? {
            if case .standing = judgement { return true }
            if wasAccepted || head?.status == 304 { return true }
            return if case .failed = outcome { false } else { head.map { $0.status < 400 ? nil : false } ?? nil }
        }

        /// Whether what came instead of a head may be the rest of an earlier answer on a reused connection (range contract, row 28).
        var isOfOtherAnswer: Bool {
            guard head == nil, case .failed(let error, let statistics) = outcome else { return false }
            return error.isOfOtherAnswer(statistics)
        }
    }

    private struct State {
        var plan: FetchPlan
        /// Where the transfer runs.
        var loop: (any TransferLoop)?
        var lowSpeed: LowSpeedLimit?
        /// How far the body was when it was last seen to be slow, and how often in a row it was nearly silent; `nil` unless its speed is doubted.
        var slowness: (offset: Int64, silences: Int)?
        /// How far the body was when the time of a limit last ended, and for how many of these times in a row nothing, or hardly anything, came.
        var patience: (offset: Int64, times: Int) = (0, 0)
        var wasCutForPlain = false
        /// How often the time for the first byte has ended without one.
        var silences = 0
        var wasOvertaken = false
        var judgement = Judgement.waiting
        var head: ResponseHead?
        /// How many bytes of the body still come that are stored already.
        var unskipped: Int64 = 0
        var waiter: CheckedContinuation<Ending, Never>?
        var ending: Ending?
    }

    private let question: FetchQuestion
    private let writer: ChunkWriter
    private let refusal: @Sendable (_ effectiveURL: String) -> String?
    private let accepted: @Sendable (FetchPlan) -> Bool
    private let received: @Sendable (Int) -> Void
    private let waited: @Sendable (any TransferLoop) -> Void
    private let leavesSlow: @Sendable (_ hasStopped: Bool) -> Bool
    private let mayBeOnly: @Sendable () -> Bool
    private let looks: Int
    private let isOvertaken: @Sendable () -> Bool
    private let state: Mutex<State>
    /// Set when a body was accepted whose content is stored decoded.
    private let decoded = Mutex<DecodedBody?>(nil)

    /// A transfer of what `plan` asks for.
    ///
    /// - Parameters:
    ///   - refusal: why nothing may be taken from a URL that redirects led to; `nil` when it may.
    ///   - accepted: told on the loop's thread that a body is about to come, with the plan as the head left it; returns whether there is room.
    ///   - received: told how many body bytes came.
    ///   - waited: told each second that there is no answer, with the loop that the transfer runs on.
    ///   - leavesSlow: whether a body that is doubted for its speed, and comes slowly or has stopped, is to be left for a plain GET.
    ///   - mayBeOnly: whether the request may be the only one that is served, so that it has more than the usual patience.
    ///   - looks: how many of the request's times for the first byte the usual patience has.
    ///   - isOvertaken: whether a silent request is given up at the end of such a time, since others are answered.
    init(
        _ question: FetchQuestion,
        plan: FetchPlan,
        writer: ChunkWriter,
        refusal: @escaping @Sendable (String) -> String? = { _ in nil },
        accepted: @escaping @Sendable (FetchPlan) -> Bool,
        received: @escaping @Sendable (Int) -> Void,
        waited: @escaping @Sendable (any TransferLoop) -> Void = { _ in },
        leavesSlow: @escaping @Sendable (_ hasStopped: Bool) -> Bool = { _ in false },
        mayBeOnly: @escaping @Sendable () -> Bool = { false },
        looks: Int = 1,
        isOvertaken: @escaping @Sendable () -> Bool = { false }
    ) {
        self.question = question
        self.writer = writer
        self.refusal = refusal
        self.accepted = accepted
        self.received = received
        self.waited = waited
        self.leavesSlow = leavesSlow
        self.mayBeOnly = mayBeOnly
        self.looks = looks
        self.isOvertaken = isOvertaken
        state = Mutex(State(plan: plan))
    }

    /// Runs the transfer and waits for its end; for one caller only. `nil` if the end says nothing about the origin.
    func run(_ request: TransferRequest, on loop: any TransferLoop, control: LeaseControl) async -> Ending? {
        state.withLock { ($0.lowSpeed, $0.loop) = (request.lowSpeed, loop) }
        do {
            control.attach(try loop.start(request, handler: self), on: loop)
        } catch {
            return nil
        }
        defer { control.detach() }
        let ending = await withCheckedContinuation { continuation in
            let known = state.withLock { state -> Ending? in
                if state.ending == nil { state.waiter = continuation }
                return state.ending
            }
            if let known { continuation.resume(returning: known) }
        }
        guard case .failed(.noSocket, _) = ending.outcome else { return ending }
        await control.awaitSockets()
        return nil
    }

    /// Judges the response (`docs/range-contract.md`); nothing is written before that.
    func head(_ head: ResponseHead) -> HeadVerdict {
        let facts = ResponseFacts(head)
        let verdict = judge(facts, effectiveURL: head.effectiveURL)
        let (answer, plan) = state.withLock { state -> (HeadVerdict, FetchPlan?) in
            state.head = head
            state.judgement = .judged(verdict)
            state.patience = (writer.offset, 0)
            // No body follows, and the connection can serve the next request.
            if case .unmodified = verdict { return (.accept(limit: 0), nil) }
            // The writer stands where the question began; a body for another place would be written to the wrong one.
            guard case .accept(let body) = verdict, body.offset + body.skipped == writer.offset else {
                return (.refuse, nil)
            }
            state.unskipped = body.skipped
            state.plan.arrival.look = Appearance(facts, size: body.representation.size)
            state.plan.arrival.isElsewhere =
                question.range != nil && facts.mayBePageElsewhere(size: body.representation.size)
            let name = state.plan.wantsName ? SuggestedName(facts, effectiveURL: head.effectiveURL) : nil
            let limit = state.plan.settle(
                body,
                status: head.status,
                effectiveURL: head.effectiveURL,
                suggestedName: name?.description
            )
            if let standing = state.plan.standing,
                case .examine(let digests, let lastModified) = standing.judge(body.representation)
            {
                state.judgement = .standing(digests, lastModified: lastModified)
                return (.refuse, nil)
            }
            let patience = state.plan.patience(state.lowSpeed, from: body.offset)
            if patience?.isDoubt == true { state.slowness = (body.offset, 0) }
            guard let coding = body.coding else {
                return (.accept(limit: limit, lowSpeed: patience?.limit), state.plan)
            }
            decoded.withLock { $0 = DecodedBody(coding, stated: body.codedDigests, limit: limit) }
            return (.accept(limit: nil), state.plan)
        }
        return plan.map(accepted) == false ? .refuse : answer
    }

    private func judge(_ facts: ResponseFacts, effectiveURL: String) -> ResponseVerdict {
        if let reason = refusal(effectiveURL) { return .refuse(.refusedAddress, detail: reason, retryAfter: nil) }
        let verdict = ResponseVerdict.judge(facts, to: question)
        guard case .unmodified = verdict, !state.withLock({ $0.plan.canVouch(effectiveURL) }) else { return verdict }
        if facts.status == 304 { return .askPlainly }
        // An answer other than 304 brings the content.
        var plain = question
        plain.held = nil
        return ResponseVerdict.judge(facts, to: plain)
    }

    /// Writes a piece, or holds the transfer when the trust has ended.
    func body(_ piece: UnsafeRawBufferPointer) -> BodyVerdict {
        let bytes = question.kept > 0 ? unknown(of: piece) : piece
        guard !bytes.isEmpty else {
            received(piece.count)
            return .proceed
        }
        let decoded = question.decodes ? decoded.withLock { $0 } : nil
        switch decoded?.write(bytes, to: writer) ?? writer.write(bytes) {
        case .written:
            received(piece.count)
            return .proceed
        case .deferred:
            received(piece.count)
            return .pause
        case .complete:
            received(piece.count)
            return .stop
        case .failed, .unwanted: return .stop
        }
    }

    /// The bytes of a piece that are not stored yet.
    private func unknown(of piece: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let count = state.withLock { state in
            let count = min(Int64(piece.count), state.unskipped)
            state.unskipped -= count
            return Int(count)
        }
        return UnsafeRawBufferPointer(rebasing: piece[count...])
    }

    /// Closes idle connections while there is no answer: an idle one may occupy an origin that serves one connection at a
    /// time.
    func stalled() -> Bool {
        if let loop = state.withLock(\.loop) { waited(loop) }
        return true
    }

    /// Whether the body is given up for its speed. A body of doubted speed is tolerated until a plain GET is known to be faster, or until it was slower than
    /// the options allow for the whole of their time. Silence is tolerated for longer if this request may be the only one that is served.
    func isTooSlow() -> Bool {
        let offset = writer.offset
        let mayBeOnly = mayBeOnly()
        let isOvertaken = state.withLock { $0.head == nil } && isOvertaken()
        let (isOver, hasStopped) = state.withLock { state -> (Bool?, Bool) in
            guard state.head != nil else {
                state.silences += 1
                let most = looks * (mayBeOnly ? FetchPlan.timesOfOnly(beforeHead: true) : 1)
                state.wasOvertaken = isOvertaken
                return (state.wasOvertaken || state.silences >= most, false)
            }
            // A body that has kept its pace is tolerated for as long as any other.
            let isPaced = state.plan.pace(from: question.range?.start ?? 0) != nil
            let times =
                mayBeOnly
                ? FetchPlan.timesOfOnly(beforeHead: false)
                : isPaced && state.plan.hasKeptPace(at: offset) ? FetchPlan.timesOfPace : 1
            guard let before = state.slowness, let limit = state.lowSpeed, !state.plan.ladder.isServedPlainly else {
                let over = isPaced ? state.plan.secondsOfPace : state.lowSpeed?.over.components.seconds
                let least = (state.lowSpeed?.bytesPerSecond ?? 0) * (over ?? 0)
                let isSilent = offset - state.patience.offset < max(1, least)
                state.patience = (offset, isSilent ? state.patience.times + 1 : 1)
                return (state.patience.times >= times, false)
            }
            let least = limit.bytesPerSecond * limit.over.components.seconds / Int64(FetchPlan.shortPatience)
            let silences = offset - before.offset < max(1, least) ? before.silences + 1 : 0
            state.slowness = (offset, silences)
            if silences >= FetchPlan.shortPatience * times { return (true, true) }
            // Slow parts of a larger file come several at a time: one is given up for a plain GET only after a silence. No body is that has brought much.
            let isWorthIt =
                (state.plan.isWholeFile || silences > 0)
                && offset - (question.range?.start ?? 0) <= Ladder.mostToDoubt
            return (isWorthIt ? nil : false, silences > 0)
        }
        if let isOver { return isOver }
        guard leavesSlow(hasStopped) else { return false }
        state.withLock { $0.wasCutForPlain = true }
        return true
    }

    /// Hands the end to the waiter.
    func finished(_ outcome: TransferOutcome) {
        let outcome = decoded.withLock { $0 }?.outcome(outcome) ?? outcome
        let (ending, waiter) = state.withLock { state in
            let ending = Ending(
                judgement: state.judgement, outcome: outcome, head: state.head, plan: state.plan,
                wasCutForPlain: state.wasCutForPlain, wasOvertaken: state.wasOvertaken)
            state.ending = ending
            defer { state.waiter = nil }
            return (ending, state.waiter)
        }
        waiter?.resume(returning: ending)
    }
}
