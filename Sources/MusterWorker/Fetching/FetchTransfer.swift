import MusterAPI
import MusterCore
import MusterCurl
import Synchronization

/// One request of a fetch on a transfer loop: judges the head before the first byte and writes the body.
final class FetchTransfer: TransferHandler {
    /// What the head was taken for.
    enum Judgement: Sendable {
        /// None came. Exits: `judged`.
        case waiting
        /// The verdict on it.
        case judged(ResponseVerdict)
    }

    /// How the transfer ended.
    struct Ending: Sendable {
        let judgement: Judgement
        let outcome: TransferOutcome
        /// The plan as the response left it.
        let plan: FetchPlan
    }

    private struct State {
        var plan: FetchPlan
        var judgement = Judgement.waiting
        var waiter: CheckedContinuation<Ending, Never>?
        var ending: Ending?
    }

    private let question: FetchQuestion
    private let writer: ChunkWriter
    private let onLearned: @Sendable (Report.Learned) -> Void
    private let received: @Sendable (Int) -> Void
    private let state: Mutex<State>

    /// A transfer of what `plan` asks for.
    ///
    /// - Parameters:
    ///   - onLearned: told on the loop's thread what the head taught, if the coordinator has to hear it at once.
    ///   - received: told how many body bytes came.
    init(
        _ question: FetchQuestion,
        plan: FetchPlan,
        writer: ChunkWriter,
        onLearned: @escaping @Sendable (Report.Learned) -> Void,
        received: @escaping @Sendable (Int) -> Void
    ) {
        self.question = question
        self.writer = writer
        self.onLearned = onLearned
        self.received = received
        state = Mutex(State(plan: plan))
    }

    /// Runs the transfer and waits for its end; for one caller only.
    func run(_ request: TransferRequest, on loop: CurlLoop, control: LeaseControl) async -> Ending? {
        do {
            control.attach(try loop.start(request, handler: self), on: loop)
        } catch {
            return nil
        }
        defer { control.detach() }
        return await withCheckedContinuation { continuation in
            let known = state.withLock { state -> Ending? in
                if state.ending == nil { state.waiter = continuation }
                return state.ending
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    /// Judges the response (`http.md`); nothing is written before that.
    func head(_ head: ResponseHead) -> HeadVerdict {
        let facts = ResponseFacts(
            status: head.status,
            headers: head.headers.fields.map { (name: $0.name, value: $0.value) }
        )
        let verdict = ResponseVerdict.judge(facts, to: question)
        let (answer, news) = state.withLock { state -> (HeadVerdict, Report.Learned?) in
            state.judgement = .judged(verdict)
            // The writer stands where the question began; a body for another place would be written to the wrong one.
            guard case .accept(let body) = verdict, body.offset == writer.offset else { return (.refuse, nil) }
            let limit = state.plan.settle(body, status: head.status, effectiveURL: head.effectiveURL)
            return (.accept(limit: limit), state.plan.isWorthTellingAtOnce ? state.plan.learned : nil)
        }
        if let news { onLearned(news) }
        return answer
    }

    /// Writes a piece, or holds the transfer when the trust has ended.
    func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        switch writer.write(bytes) {
        case .written:
            received(bytes.count)
            return .proceed
        case .deferred:
            received(bytes.count)
            return .pause
        case .failed, .unwanted: return .stop
        }
    }

    /// Hands the end to whoever waits.
    func finished(_ outcome: TransferOutcome) {
        let (ending, waiter) = state.withLock { state in
            let ending = Ending(judgement: state.judgement, outcome: outcome, plan: state.plan)
            state.ending = ending
            defer { state.waiter = nil }
            return (ending, state.waiter)
        }
        waiter?.resume(returning: ending)
    }
}
