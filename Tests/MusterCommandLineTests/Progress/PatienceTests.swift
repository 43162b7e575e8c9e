import FoundationEssentials
import MusterAPI
import Synchronization
import SystemPackage
import Testing

@testable import MusterCommandLine

/// How long a command keeps asking a coordinator that is down.
@Suite("Patience")
struct PatienceTests {
    /// The text that can be read, once there is some.
    private static func text(_ descriptor: FileDescriptor) throws -> String {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    private func withPatience(waits: Bool = true, _ body: (Patience) async throws -> Void) async throws {
        let null = try FileDescriptor.open("/dev/null", .readWrite)
        defer { try? null.close() }
        try await body(Patience(console: Console(json: false, output: null, errorOutput: null), waits: waits))
    }

    /// A second consumer is refused while the first one holds the name. Both outlast a database outage.
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

    @Test func outageIsReportedAtOnceByACommandThatDoesNotWait() async throws {
        try await withPatience(waits: false) { patience in
            await #expect(throws: Problem(.databaseUnavailable, "away")) {
                try await patience.persist(until: nil) { () throws -> Int in throw Problem(.databaseUnavailable, "away")
                }
            }
        }
    }

    /// The peer that resets connections may be a coordinator that restarts, or no coordinator at all.
    @Test func anAnswerThatIsLostIsAskedForAgainAndNotForEver() async throws {
        for isSoonThere in [true, false] {
            try await withPatience(waits: false) { patience in
                var lost = Array(repeating: Unreachable("reset"), count: isSoonThere ? 2 : 3)
                let answer = try? await patience.persist(until: nil) {
                    if let error = lost.popLast() { throw error }
                    return 1
                }
                #expect(answer == (isSoonThere ? 1 : nil) && lost.isEmpty)
            }
        }
    }

    @Test(arguments: [Unreachable("refused", isRefused: true), Unreachable("silent", isTimeout: true)])
    func refusedConnectionOrTimeoutIsReportedAtOnce(failure: Unreachable) async throws {
        try await withPatience(waits: false) { patience in
            if failure.isTimeout { _ = try await patience.persist(until: nil) {} }
            var asked = 0
            await #expect(throws: Unreachable.self) {
                try await patience.persist(until: nil) {
                    asked += 1
                    throw failure
                }
            }
            #expect(asked == 1)
        }
    }

    /// A coordinator that is killed after it has carried out the request is back after a while (F6). That it is back doesn't mean that it can work.
    @Test(arguments: [true, false])
    func requestThatMayHaveBeenCarriedOutIsRepeatedUntilItIsAnswered(mayBeDone: Bool) async throws {
        let absence = APIResponse(
            status: 503, body: Array(try JSONEncoder().encode(Problem(.databaseUnavailable, "away"))))
        let answers = Mutex<[Result<APIResponse, Unreachable>]>(
            [
                .success(APIResponse(status: 204, body: [])), .success(absence),
                .failure(Unreachable("", isRefused: true)),
            ]
                + (mayBeDone ? [.failure(Unreachable("reset"))] : []) + [.success(APIResponse(status: 200, body: []))])
        let client = MusterClient(servers: ["http://127.0.0.1:1"], token: nil) { _ in
            try #require(answers.withLock { $0.popLast() }).get()
        }
        try await withPatience(waits: false) { patience in
            let patient = patience.asking(by: client)
            if mayBeDone {
                try await patient.drain(worker: "w")
                #expect(answers.withLock { $0.isEmpty })
            } else {
                await #expect(throws: Unreachable.self) { try await patient.drain(worker: "w") }
                #expect(answers.withLock { $0.count } == 2)
            }
        }
    }

    /// A command that waits may be started while the coordinator is down. The address may be wrong, so the message names it, once, even if
    /// the error's wording changes. The token of a coordinator that comes back is there a moment after it listens.
    @Test func commandThatWaitsMayBeginWhileTheCoordinatorIsAway() async throws {
        let pipe = try FileDescriptor.pipe()
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        defer { try? null.close() }
        let patience = Patience(console: Console(json: false, output: null, errorOutput: pipe.writeEnd))
        var answers: [any Error] = [
            Problem(.unauthorized, "no token"), Unreachable("127.0.0.1 port 1 after 2 ms"),
            Unreachable("127.0.0.1 port 1 after 1 ms"),
        ]
        _ = try await patience.persist(until: nil) {
            if let error = answers.popLast() { throw error }
            return 1
        }
        try pipe.writeEnd.close()
        let text = try Self.text(pipe.readEnd)
        try pipe.readEnd.close()
        #expect(
            text == """
                the coordinator can't be reached (127.0.0.1 port 1 after 1 ms); trying again
                the coordinator is there again

                """)
    }

    @Test func tokenThatIsRefusedByOneThatWasThereIsReportedAtOnce() async throws {
        try await withPatience { patience in
            let refusal = Problem(.unauthorized, "no token")
            await #expect(throws: refusal) {
                try await patience.persist(until: nil) { () throws -> Int in throw refusal }
            }
        }
    }

    /// A coordinator that is stopped, or whose machine hangs: its connections stay open without answers.
    @Test func aSilentCoordinatorIsReportedWhileTheCommandWaits() async throws {
        let pipe = try FileDescriptor.pipe()
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        defer { try? null.close() }
        let patience = Patience(
            console: Console(json: false, output: null, errorOutput: pipe.writeEnd), silence: .milliseconds(1))
        let answer = try await patience.persist(until: nil) {
            var text = ""
            // The request is answered once the message is out.
            while !text.hasSuffix("\n") { text += try Self.text(pipe.readEnd) }
            return text
        }
        #expect(answer.hasPrefix("the coordinator has not answered since 2"), "\(answer)")
        #expect(answer.hasSuffix("ago); trying again\n") || answer.hasSuffix("(now); trying again\n"), "\(answer)")
        #expect(try Self.text(pipe.readEnd) == "the coordinator answers again\n")
        try pipe.writeEnd.close()
        try pipe.readEnd.close()
    }

    /// A coordinator that answers is reachable, and its own message says best what it lacks.
    @Test(arguments: [(Patience.Asked.coordinator, "the coordinator"), (.ownDatabase, "the private database")])
    func coordinatorsTroubleIsToldInItsOwnWordsAndOnlyWhenNew(asked: Patience.Asked, name: String) async throws {
        let pipe = try FileDescriptor.pipe()
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        defer { try? null.close() }
        let patience = Patience(console: Console(json: false, output: null, errorOutput: pipe.writeEnd), asked: asked)
        var answers: [any Error] = [
            Problem(.databaseUnavailable, "the disk is full"), Problem(.databaseUnavailable, "the disk is full"),
            Unreachable("refused"), Problem(.databaseUnavailable, "the disk is full"), Unreachable("refused"),
        ]
        #expect(try await patience.persist(until: nil) { 1 } == 1)
        _ = try await patience.persist(until: nil) {
            if let error = answers.popLast() { throw error }
            return 1
        }
        try pipe.writeEnd.close()
        let text = try Self.text(pipe.readEnd)
        try pipe.readEnd.close()
        #expect(
            text == """
                \(name) can't be reached; trying again
                \(name) can't work now: the disk is full; trying again
                \(name) can work again

                """)
    }

    /// `get` asks its own coordinator, whose database may be restarting at the very first request.
    @Test func aRequestIsSentUntilThereIsAnAnswer() async throws {
        let absence = try JSONEncoder().encode(Problem(.databaseUnavailable, "away"))
        let answers = Mutex([
            APIResponse(status: 200, body: Array(#"{"items":[],"next":null}"#.utf8)),
            APIResponse(status: 503, body: Array(absence)), APIResponse(status: 503, body: Array(absence)),
        ])
        let client = MusterClient(servers: ["http://127.0.0.1:1"], token: nil) { _ in
            try #require(answers.withLock { $0.popLast() })
        }
        let null = try FileDescriptor.open("/dev/null", .readWrite)
        defer { try? null.close() }
        let console = Console(json: false, output: null, errorOutput: null)
        await #expect(throws: Problem(.databaseUnavailable, "away")) {
            _ = try await Patience(console: console, waits: false).asking(by: client).workers()
        }
        _ = try await Patience(console: console, asked: .ownDatabase).asking(by: client).workers()
        #expect(answers.withLock { $0.isEmpty })
    }
}
