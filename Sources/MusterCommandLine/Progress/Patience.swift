import MusterAPI
import MusterCore
import Synchronization

/// Goes on asking a coordinator that was there already: it is being restarted, and what was asked for goes on meanwhile.
final class Patience: Sendable {
    /// How long a coordinator may be away.
    private static let limit: Duration = .seconds(120)
    private static let backoff = Backoff(base: .milliseconds(250), maximum: .seconds(5))

    private let console: Console
    private let hasAnswered = Mutex(false)

    /// Patience that begins with the first answer: somebody who was never there is reported at once.
    init(console: Console) {
        self.console = console
    }

    /// Asks until there is an answer.
    ///
    /// - Throws: what the question throws, but `Unreachable` and 503 only after the coordinator was away for two minutes,
    ///   or at the deadline.
    func persist<Answer>(
        until deadline: ContinuousClock.Instant?,
        _ question: () async throws -> Answer
    ) async throws -> Answer {
        let clock = ContinuousClock()
        var failures = 0
        var giveUp: ContinuousClock.Instant?
        while true {
            do {
                let answer = try await question()
                hasAnswered.withLock { $0 = true }
                if failures > 0 { console.remark("the coordinator is there again") }
                return answer
            } catch  where Self.passes(error) {
                let end = giveUp ?? clock.now + Self.limit
                giveUp = end
                guard hasAnswered.withLock({ $0 }), clock.now < end else { throw error }
                if let deadline, clock.now >= deadline {
                    throw CommandFailure.timedOut("the coordinator did not answer in time")
                }
                failures += 1
                if failures == 1 { console.remark("the coordinator can't be reached; trying again") }
                let delay = Self.backoff.delay(failures: failures, random: Double.random(in: 0.5..<1))
                try await clock.sleep(until: min(clock.now + delay, deadline ?? end))
            }
        }
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
