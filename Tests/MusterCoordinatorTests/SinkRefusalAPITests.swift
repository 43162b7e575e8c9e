import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// Workers whose directory for a sink is not the sink's (adr/0034).
@Suite("Refused sinks")
struct SinkRefusalAPITests {
    private static func opening(_ name: String, _ sinks: [String], mark: String? = nil) -> SessionRequest {
        var request = SessionRequest(name: name, sinks: sinks, slots: 4, version: "test")
        request.marks = mark.map { ["mem": $0] }
        return request
    }

    @Test func aSessionIsGivenTheSinkThatItLacksOnceItsDirectoryMayBeReplaced() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let holder = try await client.openSession(Self.opening("old", ["mem"], mark: "one"))
            let session = try await client.openSession(Self.opening("new", ["default"])).id
            let request = SessionSinkRequest(name: "mem", mark: "two", isReplaced: true)
            let problem = await #expect(throws: Problem.self) { try await client.addSink(request, to: session) }
            #expect(
                problem?.code == .conflict && problem?.detail.contains("the worker \"old\"") == true,
                "\(problem as Any)")
            try await client.closeSession(holder.id)
            #expect(try await client.addSink(request, to: session).mark == "two")
            #expect(try await client.addSink(request, to: session).mark == "two", "a repetition changes nothing")

            _ = try await client.createGroup(
                GroupRequest(
                    name: "g", sink: "mem", sealed: true, tasks: [TaskRequest(urls: ["http://127.0.0.1:1/a"])]))
            let answer = try await client.sync(session, SyncRequest(sequence: 1, settled: 0, room: 4))
            #expect(answer.leases.map(\.sink) == ["mem"])
            try await client.closeSession(session)
            let over = await #expect(throws: Problem.self) { try await client.addSink(request, to: session) }
            #expect(over?.code == .sessionNotFound)
        }
    }

    @Test func aSessionIsGivenNoMoreSinksThanItMayBeOpenedWith() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let most = (1...Limits.sinksPerWorker).map { "s\($0)" }
            let session = try await client.openSession(Self.opening("w", Array(most.dropLast()))).id
            let last = SessionSinkRequest(name: most[most.count - 1])
            _ = try await client.addSink(last, to: session)
            let problem = await #expect(throws: Problem.self) {
                try await client.addSink(SessionSinkRequest(name: "mem", mark: "one"), to: session)
            }
            #expect(problem?.code == .invalidRequest && problem?.pointer == "/name", "\(problem as Any)")
            // A repetition adds none.
            _ = try await client.addSink(last, to: session)
        }
    }

    @Test func theReasonForWhichASessionLacksASinkIsExplained() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let session = try await client.openSession(Self.opening("new", ["default"])).id
            _ = try await client.createGroup(
                GroupRequest(
                    name: "g", sink: "mem", sealed: true, tasks: [TaskRequest(urls: ["http://127.0.0.1:1/a"])]))
            let sinks = [
                SinkStatus(name: "default"), SinkStatus(name: "mem", parked: .storage, detail: "other files are there"),
            ]
            let answer = try await client.sync(session, SyncRequest(sequence: 1, settled: 0, room: 4, sinks: sinks))
            #expect(answer.leases.isEmpty)
            let ofGroup = try await client.groupExplanation(of: "g")
            #expect(ofGroup.waits.map(\.reason) == [.sinkParked], "\(ofGroup)")
            #expect(ofGroup.waits.first?.detail.contains("other files are there") == true, "\(ofGroup)")
            let ofTask = try await client.explanation(of: "a", in: "g")
            #expect(ofTask.waits.map(\.reason) == [.sinkParked], "\(ofTask)")
            #expect(try await client.workers().items.first?.sinks == sinks)
        }
    }

    /// A restarted worker waits for its own former session, which no user can end by name.
    @Test func aWorkerThatWaitsForASessionOfItsOwnNameIsNotToldToEndItself() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            _ = try await client.openSession(Self.opening("w", ["mem"], mark: "one"))
            let problem = await #expect(throws: Problem.self) {
                try await client.openSession(Self.opening("w", ["mem"], mark: "two"))
            }
            #expect(problem?.detail.contains("another process of the name \"w\"") == true, "\(problem as Any)")
            #expect(problem?.detail.contains("end that worker") == false, "\(problem as Any)")
            _ = try await client.openSession(Self.opening("v", ["mem"], mark: "one"))
            let other = await #expect(throws: Problem.self) {
                try await client.openSession(Self.opening("w", ["mem"], mark: "two"))
            }
            #expect(other?.detail.contains("the worker \"v\"") == true, "\(other as Any)")
        }
    }
}
