import MusterAPI
import SystemPackage
import Testing

@testable import MusterCommandLine

/// How long a command goes on asking a coordinator that is away.
@Suite("Patience")
struct PatienceTests {
    private func withPatience(_ body: (Patience) async throws -> Void) async throws {
        let null = try FileDescriptor.open("/dev/null", .readWrite)
        defer { try? null.close() }
        try await body(Patience(console: Console(json: false, output: null, errorOutput: null)))
    }

    /// A second consumer is refused as long as the first one is there; it waits through an outage like that one.
    @Test func aRefusalIsAnAnswerToo() async throws {
        try await withPatience { patience in
            await #expect(throws: Problem(.conflict, "held")) {
                try await patience.persist(until: nil) { () throws -> Int in throw Problem(.conflict, "held") }
            }
            var outages = [Problem(.databaseUnavailable, "away")]
            let answer = try await patience.persist(until: nil) {
                if let outage = outages.popLast() { throw outage }
                return 1
            }
            #expect(answer == 1)
        }
    }

    @Test func whoWasNeverThereIsReportedAtOnce() async throws {
        try await withPatience { patience in
            await #expect(throws: Problem(.databaseUnavailable, "away")) {
                try await patience.persist(until: nil) { () throws -> Int in throw Problem(.databaseUnavailable, "away")
                }
            }
        }
    }
}
