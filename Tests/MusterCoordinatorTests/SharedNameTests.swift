import Logging
import MusterAPI
import MusterCore
import MusterStore
import MusterTestSupport
import Testing

@testable import MusterCoordinator

@Suite("Several live workers of one name")
struct SharedNameTests {
    @Test func liveWorkersOfOneNameAreToldFromAWorkerThatWasRestarted() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            @Sendable func open(_ name: String) async throws -> SessionID {
                try await client.openSession(SessionRequest(name: name, sinks: ["default"], slots: 4, version: "test"))
                    .id
            }
            let twins = [try await open("twin"), try await open("twin")]
            _ = try await open("restarted")
            let others = [try await open("restarted"), try await open("single")]
            #expect(try await Self.sharing(client).isEmpty)
            for column in ["opened_at", "seen_at"] { try await coordinator.age("sessions", column, by: .seconds(10)) }
            for session in twins + others {
                _ = try await client.sync(session, SyncRequest(sequence: 1, settled: 0))
            }
            #expect(try await Self.sharing(client) == twins)
            try await coordinator.withDatabase { pool in
                let names = try await Store(pool: pool).sharedNames()
                #expect(names == ["twin"])
            }
            try await client.closeSession(twins[0])
            #expect(try await Self.sharing(client).isEmpty)
        }
    }

    private static func sharing(_ client: MusterClient) async throws -> [SessionID] {
        try await client.workers().items.filter { $0.sharesName == true }.map(\.session)
    }

    @Test func aNameIsLoggedWhenSeveralWorkersHaveItAndWhenThatComesAgain() {
        let log = RecordedLog()
        let told = ToldNames()
        for names in [["a"], ["a", "b"], ["b"], ["a", "b"]] { told.tell(names, log.logger) }
        #expect(log.events.compactMap { $0.metadata?[CoordinatorMetadata.worker] }.map { "\($0)" } == ["a", "b", "a"])
    }
}
