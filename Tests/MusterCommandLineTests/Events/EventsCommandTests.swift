import FoundationEssentials
import MusterAPI
import Synchronization
import SystemPackage
import Testing

@testable import MusterCommandLine

@Suite("The printed log")
struct EventsCommandTests {
    /// The positions that are printed of a log.
    private func positions(_ log: ScriptedLog, after position: Int64?, group: String? = nil) async throws -> [String] {
        let pipe = try FileDescriptor.pipe()
        defer { try? pipe.readEnd.close() }
        do {
            defer { try? pipe.writeEnd.close() }
            let console = Console(json: false, output: pipe.writeEnd, errorOutput: pipe.writeEnd)
            try await EventsCommand.show(log.client(), after: position, group: group, follows: false, on: console)
        }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = try bytes.withUnsafeMutableBytes { try pipe.readEnd.read(into: $0) }
        return String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n").compactMap { line in
            line.split(separator: " ").first.map(String.init)
        }
    }

    private func log(oldest: Int64) -> ScriptedLog {
        ScriptedLog(
            .init(
                events: (9...11).map { Samples.event("g.x", [:], position: $0) }, end: 11, oldest: oldest,
                looks: [Samples.group()]))
    }

    @Test(arguments: [nil, "nightly"]) func withoutAPositionTheLogBeginsWithItsOldestEvent(group: String?) async throws
    {
        let log = log(oldest: 9)
        #expect(try await positions(log, after: nil, group: group) == ["9", "10", "11"])
        #expect(log.requests.first { $0.contains("/events") }?.contains("after=") == false)
        #expect(log.requests.last?.contains("after=11&") == true)
    }

    @Test func aGroupThatHasLeftNothingIsRefused() async throws {
        // There is no group in this script until one is submitted.
        let log = ScriptedLog(.init(events: [Samples.event("g.x", [:], position: 1)], end: 1, submission: []))
        await #expect(throws: Problem.self) { try await positions(log, after: nil, group: "nope") }
        #expect(try await positions(log, after: nil, group: "nightly") == ["1"], "it was removed, and its events stay")
    }

    /// No event may have come since the command began.
    @Test func followerOfTheLogWaitsForADatabaseThatIsAway() async throws {
        let problems = Mutex([Problem(.conflict, "the end"), Problem(.databaseUnavailable, "away")])
        let log = log(oldest: 9)
        let client = MusterClient(servers: ["http://script"], token: nil) { request in
            guard request.url.contains("wait=") else { return try log.answer(request) }
            let problem = try #require(problems.withLock { $0.popLast() })
            return APIResponse(status: problem.status, body: Array(try JSONEncoder().encode(problem)))
        }
        let null = try FileDescriptor.open("/dev/null", .readWrite)
        defer { try? null.close() }
        let console = Console(json: false, output: null, errorOutput: null)
        await #expect(throws: Problem(.conflict, "the end")) {
            try await EventsCommand.show(client, after: 11, group: nil, follows: true, on: console)
        }
        #expect(problems.withLock { $0.isEmpty })
    }

    /// A failover to a standby that was behind: the new log has other events at known positions, and further ones beyond them.
    @Test func followerOfALogThatIsLostReadsTheNewOneFromWhereItBegan() async throws {
        let log = log(oldest: 9)
        let rounds = Mutex(0)
        let client = MusterClient(servers: ["http://script"], token: nil) { request in
            if request.url.contains("wait=") {
                let round = rounds.withLock { rounds in
                    rounds += 1
                    return rounds
                }
                if round == 1 {
                    log.change { state in
                        state.log = "second"
                        state.events = (9...13).map { Samples.event("g.new", [:], position: $0) }
                        state.end = 13
                    }
                }
                if round == 4 {
                    return APIResponse(
                        status: 409, body: Array(try JSONEncoder().encode(Problem(.conflict, "the end"))))
                }
            }
            return try log.answer(request)
        }
        let pipe = try FileDescriptor.pipe()
        defer { try? pipe.readEnd.close() }
        do {
            defer { try? pipe.writeEnd.close() }
            let console = Console(json: false, output: pipe.writeEnd, errorOutput: pipe.writeEnd)
            await #expect(throws: Problem(.conflict, "the end")) {
                try await EventsCommand.show(client, after: 10, group: nil, follows: true, on: console)
            }
        }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = try bytes.withUnsafeMutableBytes { try pipe.readEnd.read(into: $0) }
        let told = String(decoding: bytes.prefix(count), as: UTF8.self)
        let lines = told.split(separator: "\n").filter { $0.contains("g.new") || $0.contains("g.x") }
        #expect(lines.map { $0.split(separator: " ").first } == ["11", "11", "12", "13"], "\(told)")
        #expect(told.contains("it is another log; it is told from where this command began"))
    }

    @Test func aPositionThatIsNotKeptAnyMoreIsRefused() async throws {
        await #expect(throws: Problem.self) { try await positions(log(oldest: 9), after: 0) }
        #expect(try await positions(log(oldest: 9), after: 10) == ["11"])
    }
}
