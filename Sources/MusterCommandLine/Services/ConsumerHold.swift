import MusterAPI
import MusterCore
import ServiceLifecycle
import Synchronization

/// The right to deal with the events of a consumer: one process at a time has it, wherever it runs. It is renewed while that process
/// lives, and another one has it a few seconds after its death.
final class ConsumerHold: Sendable {
    /// The coordinator.
    let client: MusterClient
    /// The consumer's name.
    let consumer: String
    /// Where it is told that another one has it.
    let console: Console
    /// What this process is called by.
    private let holder = RandomToken.make()
    /// Until when it lasts by this process's own clock, which goes on while the process is stopped and the machine sleeps.
    private let end = Mutex<ContinuousClock.Instant?>(nil)

    /// How long it lasts without being renewed.
    private let length: Duration
    /// How often it is renewed, and asked for by those who wait.
    private static let period: Duration = .seconds(5)

    /// A hold that nobody has yet.
    init(client: MusterClient, consumer: String, console: Console, length: Duration = .seconds(15)) {
        self.length = length
        self.client = client
        self.consumer = consumer
        self.console = console
    }

    /// Waits until this process has it.
    func take(_ patience: Patience) async throws {
        var isTold = false
        while true {
            do {
                _ = try await patience.persist(until: nil) { try await renew() }
                return
            } catch let problem as Problem where problem.code == .conflict {
                if !isTold { console.remark("\(problem.detail); waiting until it ends") }
                isTold = true
                try await Task.sleep(for: Self.period)
            }
        }
    }

    /// Renews it until another process has it. A coordinator that is away has nobody to give it to.
    func keep() async throws {
        while true {
            try await Task.sleep(for: Self.period)
            do {
                _ = try await renew()
            } catch let problem as Problem where problem.code == .conflict {
                tellLoss(problem)
                return
            } catch is CancellationError {
                throw CancellationError()
            } catch {
                continue
            }
        }
    }

    /// Whether this process still has it.
    enum Standing {
        /// It has had it all the time.
        case held
        /// It has it again: another one may have had it meanwhile.
        case regained
        /// Another one has it.
        case lost
    }

    /// Whether this process still has it, before something is done that one alone may do: a process that was stopped may have lost it meanwhile.
    func standing(_ patience: Patience) async throws -> Standing {
        if let end = end.withLock({ $0 }), ContinuousClock.now < end { return .held }
        do {
            _ = try await patience.persist(until: nil) { try await renew() }
            return .regained
        } catch let problem as Problem where problem.code == .conflict {
            tellLoss(problem)
            return .lost
        }
    }

    /// Gives it back. Otherwise it ends by itself.
    func release() async {
        try? await client.releaseConsumer(consumer, holder: holder)
    }

    /// Says once that another process has it.
    private func tellLoss(_ problem: Problem) {
        let isNews = end.withLock { end in
            defer { end = nil }
            return end != nil
        }
        if isNews { console.remark("\(problem.detail) by now; the command is stopped") }
    }

    private func renew() async throws -> ConsumerHoldDocument {
        // Counted from before the request: the coordinator counts from later.
        let asked = ContinuousClock.now
        let document = try await client.holdConsumer(consumer, holder: holder, for: length)
        end.withLock { $0 = max($0 ?? asked, asked + length) }
        return document
    }
}
