import MusterAPI
import SystemPackage
import Testing

@testable import MusterCommandLine

/// The hold on a consumer, which is checked before each event.
@Suite struct ConsumerHoldTests {
    private func hold(_ log: ScriptedLog, length: Duration) throws -> (ConsumerHold, Patience) {
        let null = try FileDescriptor.open("/dev/null", .readWrite)
        let console = Console(json: false, output: null, errorOutput: null)
        return (
            ConsumerHold(client: log.client(), consumer: "c", console: console, length: length),
            Patience(console: console)
        )
    }

    @Test func holdThatLastsIsNotAskedForAgain() async throws {
        let log = ScriptedLog(.init())
        let (hold, patience) = try hold(log, length: .seconds(3_600))
        try await hold.take(patience)
        let asked = log.requests.count
        log.change { $0.isHeld = true }
        #expect(try await hold.standing(patience) == .held)
        #expect(log.requests.count == asked)
    }

    /// The process was stopped for longer than the hold lasts, as with a suspended machine.
    @Test func holdThatMayHaveEndedIsAskedForAnew() async throws {
        let log = ScriptedLog(.init())
        let (hold, patience) = try hold(log, length: .zero)
        try await hold.take(patience)
        #expect(try await hold.standing(patience) == .regained, "another process may have had it meanwhile")
        log.change { $0.isHeld = true }
        #expect(try await hold.standing(patience) == .lost)
    }
}
