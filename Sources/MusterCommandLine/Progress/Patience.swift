import MusterAPI
import MusterCore
import MusterSystem
import Synchronization

/// Repeats requests to a coordinator that is away: usually it is being restarted, and the work goes on meanwhile. The user is told within
/// seconds that there is no answer, and again when there is one.
///
/// A command that waits for something repeats requests from the first one on. Any other command fails at once if no coordinator is there,
/// unless one has answered before or may have carried out the request: then it repeats the request for `MusterClient.answerTime`.
final class Patience: Sendable {
    private static let backoff = Backoff(first: .milliseconds(250), longest: .seconds(5), jitter: 0.5)
    /// How much longer than usual an answer may take before the user is told: longer than a silent server is given while another server may answer.
    private static let usualSilence: Duration = .milliseconds(4_500)
    /// How often a command that does not wait sends a request to a server that closes connections without an answer.
    private static let tries = 3
    private static let steps = 8
    /// How often a rejected token is tried again after a coordinator was away: it publishes its own token a moment after it begins to listen.
    private static let refusals = 3

    /// Why there is no answer.
    private enum Absence: Hashable {
        /// It can't be reached.
        case away
        /// It does not answer in time.
        case silent
        /// It answers 503, with the reason.
        case unable(String)

        /// The absence that an error shows; `nil` for an error that does not pass with time.
        init?(_ error: any Error) {
            switch error {
            case let unreachable as Unreachable: self = unreachable.isTimeout ? .silent : .away
            case let problem as Problem where problem.status == 503:
                self = problem.detail.isEmpty ? .away : .unable(problem.detail)
            default: return nil
            }
        }
    }

    /// What is asked, as messages name it.
    enum Asked: Sendable {
        /// The coordinator.
        case coordinator
        /// The coordinator inside this command, which the user does not know of. It waits for its database, which is named instead.
        case ownDatabase

        fileprivate var name: String {
            switch self {
            case .coordinator: "the coordinator"
            case .ownDatabase: "the private database"
            }
        }
    }

    private struct State {
        var hasAnswered = false
        /// What was reported since its last answer, in order.
        var said: [Absence] = []
    }

    private let console: Console
    private let asked: Asked
    private let waits: Bool
    private let silence: Duration
    private let state = Mutex(State())

    /// Patience of a command.
    ///
    /// - Parameters:
    ///   - asked: what is asked, as messages name it.
    ///   - waits: whether the command waits for something, and so repeats requests before the first answer too.
    ///   - silence: how much longer than usual an answer may take before the user is told.
    init(console: Console, asked: Asked = .coordinator, waits: Bool = true, silence: Duration = usualSilence) {
        self.console = console
        self.asked = asked
        self.waits = waits
        self.silence = silence
    }

    /// A client whose requests are repeated until there is an answer.
    func asking(by client: MusterClient) -> MusterClient {
        client.passing { [self] request, send in
            // A request with a long timeout is waited for that long. A change is sent again soon (`Attendance`), a list once the server
            // takes no more of it.
            let isShort = request.timeout.map { $0 <= MusterClient.answerTime } ?? false
            let isList = if case .stream = request.body { true } else { false }
            let progress = isList ? BodyProgress() : nil
            let usual: Duration =
                isShort || request.manner == .change ? .zero : request.timeout ?? .seconds(86_400)
            return try await persist(until: nil, usual: usual, isProbe: request.manner == .probe, progress: progress) {
                let answer = try await send(progress?.noting(request) ?? request)
                if let problem = answer.problem, problem.code == .unauthorized { throw problem }
                return answer
            }
        }
    }

    /// Repeats a request until there is an answer, and reports what keeps the answer from coming.
    ///
    /// - Parameters:
    ///   - usual: how long an answer takes where nothing is wrong.
    ///   - isProbe: whether the answer says no more than that a server is there.
    ///   - progress: the progress of a list that is sent; its answer is late only once the server takes no more of the list.
    /// - Throws: what the question throws, but `Unreachable` and 503 only if the command does not wait; `CommandFailure.timedOut` at the deadline.
    func persist<Answer>(
        until deadline: ContinuousClock.Instant?, usual: Duration = .zero, isProbe: Bool = false,
        progress: BodyProgress? = nil, _ question: () async throws -> Answer
    ) async throws -> Answer {
        let clock = ContinuousClock()
        let start = clock.now
        var (failures, refusals) = (0, 0)
        var mayBeDone = false
        while true {
            do {
                let answer = try await withThrowingTaskGroup(of: Void.self) { tasks in
                    let asked = Timestamp.ofThisMachine
                    tasks.addTask { [self] in
                        // In steps: the time for which this process is stopped (Ctrl-Z) counts as one step.
                        for _ in 0..<Self.steps { try await clock.sleep(for: (usual + silence) / Self.steps) }
                        try await progress?.rest(for: BodyProgress.usualPause)
                        say(.silent, since: asked)
                    }
                    defer { tasks.cancelAll() }
                    return try await question()
                }
                answered(isProbe: isProbe)
                return answer
            } catch {
                let hasAnswered = state.withLock(\.hasAnswered)
                guard let absence = Absence(error) else {
                    guard let problem = error as? Problem else { throw error }
                    if failures > 0, refusals < Self.refusals, problem.code == .unauthorized {
                        refusals += 1
                        try await clock.sleep(for: Self.backoff.bound(failures: refusals))
                        continue
                    }
                    // A refusal is an answer too.
                    answered(isProbe: isProbe)
                    throw error
                }
                failures += 1
                let unreachable = error as? Unreachable
                if unreachable?.mayBeDone == true { mayBeDone = true }
                let isWaitedFor =
                    waits || (hasAnswered || mayBeDone) && clock.now < start + MusterClient.answerTime
                if !waits {
                    // A silent server has used up the timeout of the request.
                    guard unreachable?.isTimeout != true else { throw error }
                    let isBroken = unreachable?.isRefused == false && failures < Self.tries
                    guard isWaitedFor || isBroken else { throw error }
                }
                if let deadline, clock.now >= deadline {
                    throw CommandFailure.timedOut("the coordinator did not answer in time")
                }
                // The address may be wrong as long as no server has answered, so the error is shown.
                let reason = hasAnswered || asked == .ownDatabase ? "" : " (\(error))"
                // A single lost answer is not reported: the next request usually gets one within a moment.
                if waits || isWaitedFor && failures > 1 { say(absence, since: .ofThisMachine, reason: reason) }
                let next = clock.now + Self.backoff.delay(failures: failures)
                try await clock.sleep(until: deadline.map { min($0, next) } ?? next)
            }
        }
    }

    /// Reports why there is no answer, unless that was reported already.
    private func say(_ absence: Absence, since: Timestamp, reason: String = "") {
        let isNews = state.withLock { state in
            guard !state.said.contains(absence) else { return false }
            state.said.append(absence)
            return true
        }
        guard isNews else { return }
        let text =
            switch absence {
            case .away: "\(asked.name) can't be reached\(reason)"
            case .silent: "\(asked.name) has not answered since \(WallClock.ofThisMachine.text(since))"
            case .unable(let detail): "\(asked.name) can't work now: \(detail)"
            }
        console.remark(TextWidth.escaped("\(text); trying again"))
    }

    /// Takes note of an answer.
    private func answered(isProbe: Bool) {
        let said = state.withLock { state in
            defer { (state.hasAnswered, state.said) = (state.hasAnswered || !isProbe, []) }
            return state.said.last
        }
        switch said {
        case .away: console.remark("\(asked.name) is there again")
        case .silent: console.remark("\(asked.name) answers again")
        case .unable: console.remark("\(asked.name) can work again")
        case nil: break
        }
    }
}
