import MusterAPI
import MusterCore
import ServiceLifecycle
import Synchronization

/// The right to handle the events of a consumer. One process at a time holds it, on any machine. The process renews it while it lives;
/// another process gets it a few seconds after the death of that one.
final class ConsumerHold: Sendable {
    /// The coordinator.
    let client: MusterClient
    /// The consumer's name.
    let consumer: String
    /// Where it is reported that another process has it.
    let console: Console
    /// The name of this process as a holder.
    private let holder = RandomToken.make()
    /// When it ends by this process's own clock, which goes on while the process is stopped and the machine sleeps.
    private let end = Mutex<ContinuousClock.Instant?>(nil)

    /// How long it lasts without being renewed.
    private let length: Duration
    /// How often a holder renews it, and a waiting process asks for it.
    private static let period: Duration = .seconds(5)

    /// A hold that this process does not have yet.
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

    /// Renews it until another process has it. A coordinator that is away can't give it to another process.
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
        /// This process has held it all the time.
        case held
        /// This process has it again: another one may have had it meanwhile.
        case regained
        /// Another process has it.
        case lost
    }

    /// Whether this process still has it. To be called before anything that only the holder may do: a process that was stopped may have lost it.
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

    /// Gives it back. Without that it expires.
    func release() async {
        try? await client.releaseConsumer(consumer, holder: holder)
    }

    /// Reports once that another process has it.
    private func tellLoss(_ problem: Problem) {
        let isNews = end.withLock { end in
            defer { end = nil }
            return end != nil
        }
        if isNews { console.remark("\(problem.detail) by now; the command is stopped") }
    }

    private func renew() async throws -> ConsumerHoldDocument {
        // Counted from before the request: the coordinator counts from a later moment.
        let asked = ContinuousClock.now
        let document = try await client.holdConsumer(consumer, holder: holder, for: length)
        end.withLock { $0 = max($0 ?? asked, asked + length) }
        return document
    }
}
