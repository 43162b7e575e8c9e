import MusterAPI
import MusterCore
import MusterPostgres
import Testing

@testable import MusterCoordinator

/// A transaction that keeps one group, its tasks or its leases locked delays no other group (I19).
@Suite("A locked group delays only itself")
struct LockedGroupAPITests {
    private static let opening = SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test")

    private static func fill(_ coordinator: RunningCoordinator, _ group: String) async throws {
        let tasks = [TaskRequest(urls: ["http://127.0.0.1:1/\(group)"], path: group, size: 10)]
        _ = try await coordinator.client.createGroup(GroupRequest(name: group, sealed: true, tasks: tasks))
    }

    private static func finished(_ lease: LeaseDocument) -> Report {
        Report(
            lease: lease.name, kind: .done, durable: DurablePrefix(offset: 10, crc: 7),
            finished: .init(size: 10, digests: [:]))
    }

    @Test(arguments: RunningCoordinator.Lock.allCases)
    func reportsOnOthersAreStoredAndThoseOnItComeAgain(lock: RunningCoordinator.Lock) async throws {
        try await RunningCoordinator.with { coordinator in
            for group in ["g", "h", "i"] { try await Self.fill(coordinator, group) }
            let session = try await coordinator.client.openSession(Self.opening)
            let leases = try await coordinator.client.sync(session.id, SyncRequest(sequence: 1, settled: 0, room: 3))
                .leases
            let locked = try #require(leases.first { $0.path == "g" })
            try await coordinator.locking("g", lock) {
                let reports = leases.filter { $0.path != "i" }.map(Self.finished)
                let answer = try await coordinator.client.sync(
                    session.id, SyncRequest(sequence: 2, settled: 1, reports: reports, held: leases.map(\.name)))
                #expect(answer.deferred == [locked.name])
                #expect(answer.lost.isEmpty && answer.refused.isEmpty)
                #expect(try await coordinator.client.group("h").state == .succeeded)
                // Again, now that the coordinator knows of the lock: it doesn't wait for it.
                let again = try await coordinator.client.sync(
                    session.id,
                    SyncRequest(
                        sequence: 3, settled: 2, reports: leases.filter { $0.path != "h" }.map(Self.finished),
                        held: leases.filter { $0.path != "h" }.map(\.name)))
                #expect(again.deferred == [locked.name])
                #expect(try await coordinator.client.group("i").state == .succeeded)
            }
            let last = try await coordinator.client.sync(
                session.id, SyncRequest(sequence: 4, settled: 3, reports: [Self.finished(locked)], held: [locked.name]))
            #expect(last.deferred == nil)
            #expect(try await coordinator.client.group("g").state == .succeeded)
        }
    }

    /// The statement may have been one of any route: no group need be locked.
    @Test func aStatementThatTookTooLongIsToldAndLoggedAsSuch() {
        let server = PostgresError.Server(sqlState: .queryCanceled, message: "canceling statement")
        for error in [PostgresError.server(server), .deadlineExceeded(.running)] {
            let problem = Problem(error)
            #expect(problem.code == .busy && problem.status == 503)
            #expect(problem.detail == "the database took too long for this; a later try may succeed")
            #expect(Problem.isLogged(error))
        }
        let locked = PostgresError.server(.init(sqlState: .lockNotAvailable, message: "lock timeout"))
        #expect(Problem(locked).code == .busy && Problem(locked).detail.hasPrefix("something that takes long has the "))
        #expect(!Problem.isLogged(locked))
        #expect(Problem.isLogged(PostgresError.shutDown))
    }

    @Test func aCancelIsAcceptedAndFollows() async throws {
        try await RunningCoordinator.with { coordinator in
            try await Self.fill(coordinator, "g")
            try await coordinator.locking("g") {
                let group = try await coordinator.client.apply(.cancel, to: "g")
                #expect(group.notes == ["it is being cancelled"])
                // A cancel of single tasks can't be finished later, so it is refused.
                let problem = await #expect(throws: Problem.self) {
                    try await coordinator.client.apply(.cancel, to: "g", keys: ["g"])
                }
                #expect(problem?.code == .busy)
            }
            let events = try await coordinator.client.events(after: 0, wait: .seconds(5))
            #expect(events.items.contains { $0.type == "dev.muster.group.cancelled.v1" })
        }
    }
}
