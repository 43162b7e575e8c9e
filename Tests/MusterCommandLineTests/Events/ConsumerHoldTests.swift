import MusterAPI
import SystemPackage
import Testing

@testable import MusterCommandLine

/// Who deals with the events of a consumer, before each of them.
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

    /// A process that was stopped for longer, as with a suspended machine.
    @Test func holdThatMayHaveEndedIsAskedForAnew() async throws {
        let log = ScriptedLog(.init())
        let (hold, patience) = try hold(log, length: .zero)
        try await hold.take(patience)
        #expect(try await hold.standing(patience) == .regained, "another one may have had it meanwhile")
        log.change { $0.isHeld = true }
        #expect(try await hold.standing(patience) == .lost)
    }
}
