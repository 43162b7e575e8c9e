import MusterAPI
import MusterCore
import Synchronization

/// Goes on asking a coordinator that was there already: it is being restarted, and what was asked for goes on meanwhile.
final class Patience: Sendable {
    private static let backoff = Backoff(base: .milliseconds(250), maximum: .seconds(5))

    /// How long a coordinator may be away, where nothing else is said.
    static let usual: Duration = .seconds(120)

    private let console: Console
    private let limit: Duration?
    private let hasAnswered = Mutex(false)

    /// Patience that begins with the first answer: somebody who was never there is reported at once.
    ///
    /// - Parameter limit: how long a coordinator may be away; for ever when absent.
    init(console: Console, limit: Duration? = usual) {
        self.console = console
        self.limit = limit
    }

    /// Asks until there is an answer.
    ///
    /// - Throws: what the question throws, but `Unreachable` and 503 only after the coordinator was away for too long, or at
    ///   the deadline.
    func persist<Answer>(
        until deadline: ContinuousClock.Instant?,
        _ question: () async throws -> Answer
    ) async throws -> Answer {
        let clock = ContinuousClock()
        var failures = 0
        var said: String?
        var giveUp: ContinuousClock.Instant?
        while true {
            do {
                let answer = try await question()
                hasAnswered.withLock { $0 = true }
                if failures > 0 {
                    console.remark("the coordinator \(said == Self.absence ? "is there" : "can work") again")
                }
                return answer
            } catch let problem as Problem where !Self.passes(problem) {
                // A refusal is an answer too.
                hasAnswered.withLock { $0 = true }
                throw problem
            } catch  where Self.passes(error) {
                giveUp = giveUp ?? limit.map { clock.now + $0 }
                guard hasAnswered.withLock({ $0 }), giveUp.map({ clock.now < $0 }) ?? true else { throw error }
                if let deadline, clock.now >= deadline {
                    throw CommandFailure.timedOut("the coordinator did not answer in time")
                }
                failures += 1
                let reason = Self.reason(error)
                if reason != said { console.remark(TextWidth.escaped("\(reason); trying again")) }
                said = reason
                let delay = Self.backoff.delay(failures: failures, random: Double.random(in: 0.5..<1))
                let next = clock.now + delay
                try await clock.sleep(until: min(next, deadline ?? giveUp ?? next))
            }
        }
    }

    /// What is said of a coordinator that does not answer at all.
    private static let absence = "the coordinator can't be reached"

    /// Why there is no answer, in words: what the coordinator says itself, if it says anything.
    private static func reason(_ error: any Error) -> String {
        guard let problem = error as? Problem, !problem.detail.isEmpty else { return absence }
        return "the coordinator can't work now: \(problem.detail)"
    }

    /// Whether an error may be over after a while.
    private static func passes(_ error: any Error) -> Bool {
        switch error {
        case is Unreachable: true
        case let problem as Problem: problem.status == 503
        default: false
        }
    }
}
