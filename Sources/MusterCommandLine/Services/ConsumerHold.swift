import MusterAPI
import MusterCore
import ServiceLifecycle

/// The right to deal with the events of a consumer: one process at a time has it, wherever it runs. It is renewed while that process
/// lives, and another one has it a few seconds after its death.
struct ConsumerHold: Sendable {
    /// The coordinator.
    let client: MusterClient
    /// The consumer's name.
    let consumer: String
    /// Where it is told that another one has it.
    let console: Console
    /// What this process is called by.
    private let holder = RandomToken.make()

    /// How long it lasts without being renewed.
    private static let length: Duration = .seconds(15)
    /// How often it is renewed, and asked for by those who wait.
    private static let period: Duration = .seconds(5)

    /// A hold that nobody has yet.
    init(client: MusterClient, consumer: String, console: Console) {
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
                console.remark("\(problem.detail) by now; the command is stopped")
                return
            } catch is CancellationError {
                throw CancellationError()
            } catch {
                continue
            }
        }
    }

    /// Gives it back. Otherwise it ends by itself.
    func release() async {
        try? await client.releaseConsumer(consumer, holder: holder)
    }

    private func renew() async throws -> ConsumerHoldDocument {
        try await client.holdConsumer(consumer, holder: holder, for: Self.length)
    }
}
