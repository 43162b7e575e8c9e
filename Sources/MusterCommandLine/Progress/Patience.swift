import MusterAPI
import MusterCore
import Synchronization

/// Goes on asking a coordinator that was there already: it is being restarted, and what was asked for goes on meanwhile. The person who waits is told
/// within seconds that there is no answer, and again when there is one.
final class Patience: Sendable {
    private static let backoff = Backoff(base: .milliseconds(250), maximum: .seconds(5))
    /// How much longer than usual an answer may take before that is said.
    private static let usualSilence: Duration = .seconds(4)

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

    private struct State {
        var hasAnswered = false
        /// What was said last, if it has not answered since.
        var said: Absence?
    }

    private let console: Console
    private let silence: Duration
    private let state = Mutex(State())

    /// Patience that begins with the first answer: somebody who was never there is reported at once.
    ///
    /// - Parameter silence: how much longer than usual an answer may take before that is said.
    init(console: Console, silence: Duration = usualSilence) {
        self.console = console
        self.silence = silence
    }

    /// Asks until there is an answer, and says what keeps it from coming.
    ///
    /// - Parameter usual: how long an answer takes where nothing is wrong.
    /// - Throws: what the question throws, but `Unreachable` and 503 only where there never was an answer; `CommandFailure.timedOut` at the
    ///   deadline.
    func persist<Answer>(
        until deadline: ContinuousClock.Instant?, usual: Duration = .zero, _ question: () async throws -> Answer
    ) async throws -> Answer {
        let clock = ContinuousClock()
        var failures = 0
        while true {
            do {
                let answer = try await withThrowingTaskGroup(of: Void.self) { tasks in
                    let asked = Timestamp.ofThisMachine
                    tasks.addTask { [self] in
                        try await clock.sleep(for: usual + silence)
                        say(.silent, since: asked)
                    }
                    defer { tasks.cancelAll() }
                    return try await question()
                }
                answered()
                return answer
            } catch {
                guard let absence = Absence(error) else {
                    // A refusal is an answer too.
                    if error is Problem { answered() }
                    throw error
                }
                guard state.withLock(\.hasAnswered) else { throw error }
                if let deadline, clock.now >= deadline {
                    throw CommandFailure.timedOut("the coordinator did not answer in time")
                }
                failures += 1
                say(absence, since: .ofThisMachine)
                let next = clock.now + Self.backoff.delay(failures: failures, random: Double.random(in: 0.5..<1))
                try await clock.sleep(until: deadline.map { min($0, next) } ?? next)
            }
        }
    }

    /// Says why there is no answer, unless that is what was said last.
    private func say(_ absence: Absence, since: Timestamp) {
        guard state.withLock({ $0.said.replace(by: absence) }) else { return }
        let text =
            switch absence {
            case .away: "the coordinator can't be reached"
            case .silent: "the coordinator has not answered since \(WallClock.ofThisMachine.text(since))"
            case .unable(let detail): "the coordinator can't work now: \(detail)"
            }
        console.remark(TextWidth.escaped("\(text); trying again"))
    }

    /// Takes note of an answer.
    private func answered() {
        let said = state.withLock { state in
            defer { (state.hasAnswered, state.said) = (true, nil) }
            return state.said
        }
        switch said {
        case .away: console.remark("the coordinator is there again")
        case .silent: console.remark("the coordinator answers again")
        case .unable: console.remark("the coordinator can work again")
        case nil: break
        }
    }
}

extension Optional where Wrapped: Equatable {
    /// Puts another value in place; whether it differs.
    fileprivate mutating func replace(by value: Wrapped) -> Bool {
        defer { self = value }
        return self != value
    }
}
