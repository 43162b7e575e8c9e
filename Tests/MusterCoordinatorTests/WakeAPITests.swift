import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

@testable import MusterCoordinator

/// What verbs wake, in a coordinator without rounds: work that no wake-up announces is never found there.
@Suite("Verbs wake waiting requests")
struct WakeAPITests {
    private static let opening = SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test")

    /// Runs a test without rounds. Hints, which go through the database, can still wake requests as well.
    private static func with(_ body: @Sendable (RunningCoordinator) async throws -> Void) async throws {
        try await RunningCoordinator.with(
            configure: { configuration in
                configuration.adjustRounds = { _ in [] }
                configuration.longPoll = .seconds(20)
            }, body)
    }

    /// Reads the log until it has the cancel of a group. Returns false if a read brings nothing within 20 s before that.
    private static func hearsOfCancel(_ coordinator: RunningCoordinator) async throws -> Bool {
        var place: Int64 = 0
        while true {
            let page = try await coordinator.client.events(after: place, wait: .seconds(20))
            if page.items.contains(where: { $0.type == "dev.muster.group.cancelled.v1" }) { return true }
            guard page.next > place else { return false }
            place = page.next
        }
    }

    @Test func reopenWakesTheReadersOfWhatItBroughtToItsEnd() async throws {
        try await Self.with { coordinator in
            let tasks = (1...3).map { TaskRequest(urls: ["http://127.0.0.1:1/\($0)"], size: 10) }
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: tasks))
            try await coordinator.beginCancel(of: "g")
            async let read = Self.hearsOfCancel(coordinator)
            #expect(try await coordinator.client.reopen(group: "g").state == .open)
            #expect(try await read)
        }
    }

    @Test func tasksThatReopenAGroupWakeThePollsAndTheReaders() async throws {
        try await Self.with { coordinator in
            let tasks = (1...3).map { TaskRequest(urls: ["http://127.0.0.1:1/\($0)"], size: 10) }
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: tasks))
            try await coordinator.beginCancel(of: "g")
            let session = try await coordinator.client.openSession(Self.opening)
            async let read = Self.hearsOfCancel(coordinator)
            async let polled = coordinator.client.sync(
                session.id, SyncRequest(sequence: 1, settled: 0, room: 4, waitMilliseconds: 20_000))
            let added = try await coordinator.raw(
                "POST", "/v1/groups/g/tasks?reopen=true", body: #"[{"urls": ["http://127.0.0.1:1/new"]}]"#)
            #expect(added.status == 200)
            #expect(try await read)
            #expect(try await polled.leases.map(\.path).contains("new"))
        }
    }

    @Test func leasesOfAClosedSessionGoToThePollThatWaits() async throws {
        try await Self.with { coordinator in
            let first = try await coordinator.client.openSession(Self.opening)
            let second = try await coordinator.client.openSession(Self.opening)
            _ = try await coordinator.client.createGroup(
                GroupRequest(name: "g", sealed: true, tasks: [TaskRequest(urls: ["http://127.0.0.1:1/f"])]))
            let held = try await coordinator.client.sync(first.id, SyncRequest(sequence: 1, settled: 0, room: 1))
            #expect(held.leases.count == 1)
            async let polled = coordinator.client.sync(
                second.id, SyncRequest(sequence: 1, settled: 0, room: 1, waitMilliseconds: 20_000))
            try await coordinator.client.closeSession(first.id)
            #expect(try await polled.leases.map(\.chunk) == held.leases.map(\.chunk))
        }
    }
}
