import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

@testable import MusterCoordinator

/// `/v1/events`, by position and as a stream.
@Suite struct EventAPITests {
    @Test func filtersAndPositionsGoTogether() async throws {
        try await RunningCoordinator.with { coordinator in
            try await coordinator.makeEvents(["day-1", "night-1", "day-2"])
            try await coordinator.waitForEvents(upTo: 3)
            func positions(_ query: String) async throws -> String {
                let answer = try await coordinator.raw("GET", "/v1/events?\(query)")
                let text = String(decoding: answer.body, as: UTF8.self)
                let events = text.matches(of: #/"sequence":"0*([0-9]+)"/#).map { String($0.1) }
                return "\(answer.status) \(events.joined(separator: ","))"
            }
            #expect(try await positions("groups=day-*") == "200 1,3")
            #expect(try await positions("groups=day-*&after=1") == "200 3")
            #expect(try await positions("group=night-1") == "200 2")
            #expect(try await positions("types=dev.muster.group.succeeded.v1,x&limit=2") == "200 1,2")
            #expect(try await positions("types=x") == "200 ")
            #expect(try await positions("after=-1") == "400 ")
            #expect(try await positions("groups=a%20b") == "400 ")
        }
    }

    /// The same id always carries the same bytes (I9), for every reader and every way of asking.
    @Test func bytesAreTheSameWheneverTheyAreRead() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(
                GroupRequest(
                    name: "g", sealed: true,
                    metadata: .object([
                        "z": .integer(1), "a": .array([.null, .bool(true)]), "ü/": .string("\u{2028}\n"),
                    ])))
            _ = try await coordinator.client.events(after: 0, wait: .seconds(5))
            let first = try await coordinator.raw("GET", "/v1/events?after=0").body
            for _ in 0..<5 { #expect(try await coordinator.raw("GET", "/v1/events?after=0").body == first) }
            let log = try await coordinator.client.events(after: 0).log
            let event = String(decoding: first, as: UTF8.self).dropFirst(#"{"items":["#.count).dropLast(
                #"],"log":"\#(log)","next":1}"#.count)
            let stream = try await EventTail.start(coordinator.url, after: 0)
            try await stream.wait(events: 1)
            #expect(stream.process.standardOutput.contains("data: \(event)\n"))
            try await stream.process.killTree()
        }
    }

    @Test func readerThatWasAwayTooLongIsTold() async throws {
        try await RunningCoordinator.with(configure: { $0.eventRetention = .milliseconds(200) }) { coordinator in
            try await coordinator.makeEvents(3)
            let oldest = try await eventually("the first events to go") { () -> Int64? in
                do {
                    _ = try await coordinator.client.events(after: 0)
                    return nil
                } catch let problem as Problem where problem.code == .eventsGone {
                    // The newest event stays; the older ones are removed in order.
                    return problem.oldest == 3 ? problem.oldest : nil
                }
            }
            #expect(try await coordinator.client.events(after: oldest - 1).items.map(\.position) == [3])
            let begun = try await coordinator.raw("GET", "/v1/events")
            #expect(begun.status == 200 && String(decoding: begun.body, as: UTF8.self).contains("\"next\":3"))
            #expect(try await coordinator.client.consumerEvents("new").items.map(\.position) == [3])
            let stream = try await EventTail.start(coordinator.url, after: 1)
            #expect(try await stream.process.waitForExit() == .exited(22))
        }
    }

    /// With another database behind the same URL, or one restored from a backup, a reader that waited here would miss the events up to its position.
    @Test func positionOfAnotherLogIsRefused() async throws {
        try await RunningCoordinator.with { coordinator in
            try await coordinator.makeEvents(2)
            try await coordinator.waitForEvents(upTo: 2)
            #expect(try await coordinator.client.events(after: 2).items.isEmpty)
            let answer = try await coordinator.raw("GET", "/v1/events?after=3&wait=5s")
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(answer.status == 409 && text.contains("the log ends at 2") && !text.contains("pointer"))
            let stream = try await EventTail.start(coordinator.url, after: 3, isResumed: true)
            #expect(try await stream.process.waitForExit() == .exited(22))
        }
    }

    @Test func streamTellsWhatHappensAndEndsWithTheCoordinator() async throws {
        let left = Observed<EventTail?>(nil)
        try await RunningCoordinator.with { coordinator in
            let stream = try await EventTail.start(coordinator.url, after: nil)
            try await stream.process.waitForOutput { $0.hasPrefix(": ") }
            try await coordinator.makeEvents(["a", "b"])
            try await stream.wait(events: 2)
            let lines = stream.process.standardOutput.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(
                lines.filter { $0.hasPrefix("event: ") }.allSatisfy { $0 == "event: dev.muster.group.succeeded.v1" })
            #expect(stream.positions == [1, 2])
            left.update { $0 = stream }
        }
        // The stream ends in the protocol's own way, rather than by a cut connection.
        #expect(try await left.value?.process.waitForExit() == .exited(0))
    }

    @Test func streamThatIsOneTooManyIsRefused() async throws {
        try await RunningCoordinator.with { coordinator in
            let streams = try await EventTail.start(coordinator.url, after: 0, count: Limits.eventStreams)
            try await streams.process.waitForOutput { output in
                output.split(separator: "\n").count { $0 == ": the log follows" } == Limits.eventStreams
            }
            let refused = try await coordinator.send(
                APIRequest(
                    method: "GET", url: coordinator.url + "/v1/events", headers: [("Accept", "text/event-stream")],
                    body: .none, timeout: .seconds(20)))
            #expect(refused.status == 503 && String(decoding: refused.body, as: UTF8.self).contains("\"busy\""))
            // Reading by position still works.
            #expect(try await coordinator.raw("GET", "/v1/events").status == 200)
            try await streams.process.killTree()
        }
    }

    /// Cut anywhere and resumed by Last-Event-ID, the stream has no gap and repeats nothing.
    @Test func streamThatIsCutResumesWhereItWas() async throws {
        try await RunningCoordinator.with { coordinator in
            let count = 60
            var generator = SeededGenerator.forTest()
            var seen: [Int64] = []
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await coordinator.makeEvents(count) }
                while seen.count < count {
                    let stream = try await EventTail.start(coordinator.url, after: seen.last, isResumed: true)
                    let wanted = min(count - seen.count, Int.random(in: 1...9, using: &generator))
                    try await stream.wait(events: wanted)
                    try await stream.process.killTree()
                    seen += stream.positions
                }
                try await group.waitForAll()
            }
            #expect(seen == (1...Int64(count)).map(\.self))
        }
    }

    @Test func lastEventIDMustBeAPosition() async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await coordinator.send(
                APIRequest(
                    method: "GET", url: coordinator.url + "/v1/events",
                    headers: [("Accept", "text/event-stream"), ("Last-Event-ID", "x")], body: .none,
                    timeout: .seconds(20)))
            #expect(answer.status == 400)
        }
    }
}

/// A real reader of an event stream: curl, in a process of its own.
private struct EventTail: Sendable {
    let process: TestProcess

    /// Starts curl. A resumed reader gives its position as a browser does (Last-Event-ID). With a `count` it reads that many streams at once.
    static func start(
        _ url: String, after: Int64?, isResumed: Bool = false, count: Int = 1
    ) async throws -> EventTail {
        let curl = try #require(InstalledProgram.find("curl"))
        var arguments = ["--silent", "--no-buffer", "--fail", "--header", "Accept: text/event-stream"]
        if isResumed, let after { arguments += ["--header", "Last-Event-ID: \(after)"] }
        let query = isResumed ? "?after=0" : after.map { "?after=\($0)" } ?? ""
        if count > 1 { arguments += ["--parallel", "--parallel-immediate", "--parallel-max", String(count)] }
        arguments += Array(repeating: url + "/v1/events" + query, count: count)
        return EventTail(process: try await TestProcess.start(curl, arguments: arguments))
    }

    /// Waits until `count` events have arrived whole.
    func wait(events count: Int) async throws {
        try await process.waitForOutput { Self.positions($0).count >= count }
    }

    /// The positions of the events that have arrived whole.
    var positions: [Int64] { Self.positions(process.standardOutput) }

    private static func positions(_ text: String) -> [Int64] {
        // The text after the last empty line is an incomplete event.
        text.split(separator: #/\n\n/#, omittingEmptySubsequences: false).dropLast().compactMap { block in
            // An id without data is a position, not an event.
            guard block.contains("\ndata: ") else { return nil }
            return block.split(separator: "\n").first { $0.hasPrefix("id: ") }.flatMap { Int64($0.dropFirst(4)) }
        }
    }
}
