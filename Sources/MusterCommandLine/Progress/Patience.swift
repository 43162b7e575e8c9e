import MusterAPI
import MusterCore
import Synchronization

/// Goes on asking a coordinator that is away: it is being restarted, and what was asked for goes on meanwhile. The person who waits is told
/// within seconds that there is no answer, and again when there is one.
///
/// A command that waits for something goes on from its first question. Any other one reports at once that nobody is there, unless somebody was, or
/// may have done what was asked for: then it goes on for as long as an answer may take.
final class Patience: Sendable {
    private static let backoff = Backoff(base: .milliseconds(250), maximum: .seconds(5))
    /// How much longer than usual an answer may take before that is said.
    /// More than a silent server has while another one may answer.
    private static let usualSilence: Duration = .milliseconds(4_500)
    /// How often a command that waits for nothing asks who ends connections without an answer.
    private static let tries = 3
    private static let steps = 8
    /// How often a token that is refused is tried again, once a coordinator that was away listens: it makes its own known a moment after that.
    private static let refusals = 3

    /// Why there is no answer.
    private enum Absence: Hashable {
        /// It can't be reached.
        case away
        /// It says nothing.
        case silent
        /// It says itself what it lacks.
        case unable(String)

        /// What an error says; `nil` for one that will not be over after a while.
        init?(_ error: any Error) {
            switch error {
            case let unreachable as Unreachable: self = unreachable.isTimeout ? .silent : .away
            case let problem as Problem where problem.status == 503:
                self = problem.detail.isEmpty ? .away : .unable(problem.detail)
            default: return nil
            }
        }
    }

    /// Who is asked, for a person.
    enum Asked: Sendable {
        /// The coordinator.
        case coordinator
        /// The coordinator within this very command, of which nobody has heard: what it waits for is its database.
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
        /// What was said since it has answered last, in that order.
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
    ///   - asked: who is asked.
    ///   - waits: whether the command waits for something, so that its patience does not begin with the first answer.
    ///   - silence: how much longer than usual an answer may take before that is said.
    init(console: Console, asked: Asked = .coordinator, waits: Bool = true, silence: Duration = usualSilence) {
        self.console = console
        self.asked = asked
        self.waits = waits
        self.silence = silence
    }

    /// A client whose requests are sent until there is an answer.
    func asking(by client: MusterClient) -> MusterClient {
        client.passing { [self] request, send in
            // What may take long is waited for as long. A change is asked for again soon (`Attendance`), a list once nothing of it is taken any more.
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

    /// Asks until there is an answer, and says what keeps it from coming.
    ///
    /// - Parameters:
    ///   - usual: how long an answer takes where nothing is wrong.
    ///   - isProbe: whether the answer says no more than that somebody is there.
    ///   - progress: of a list that is sent, whose answer is late once nothing of it is taken any more.
    /// - Throws: what the question throws, but `Unreachable` and 503 only where the command does not wait;
    ///   `CommandFailure.timedOut` at the deadline.
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
                        // In steps: the time for which this process is stopped (Ctrl-Z) counts as one.
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
                        try await clock.sleep(for: Self.backoff.delay(failures: refusals, random: 1))
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
                    // One that is silent has had its time.
                    guard unreachable?.isTimeout != true else { throw error }
                    let isBroken = unreachable?.isRefused == false && failures < Self.tries
                    guard isWaitedFor || isBroken else { throw error }
                }
                if let deadline, clock.now >= deadline {
                    throw CommandFailure.timedOut("the coordinator did not answer in time")
                }
                // Nobody knows yet that it is the right address.
                let reason = hasAnswered || asked == .ownDatabase ? "" : " (\(error))"
                // A single answer that is lost is had again within a moment.
                if waits || isWaitedFor && failures > 1 { say(absence, since: .ofThisMachine, reason: reason) }
                let next = clock.now + Self.backoff.delay(failures: failures, random: Double.random(in: 0.5..<1))
                try await clock.sleep(until: deadline.map { min($0, next) } ?? next)
            }
        }
    }

    /// Says why there is no answer, unless that was said already.
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
