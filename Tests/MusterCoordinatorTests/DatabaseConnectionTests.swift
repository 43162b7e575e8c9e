import MusterAPI
import MusterPostgres
import MusterStore
import MusterTestSupport
import SystemPackage
import Testing

@testable import MusterCoordinator

/// Session settings that coordinators make, whatever the server's own configuration says.
@Suite struct DatabaseConnectionTests {
    @Test func noPlanIsCompiledWhateverTheServerIsSetTo() async throws {
        let server = try await TestPostgres.start(settings: ["jit": "on", "max_parallel_workers_per_gather": "2"])
        do {
            let database = try await server.makeDatabase()
            let connection = try await PostgresConnection.open(Coordinator.connections(to: database.conninfo))
            for (name, expected) in [("jit", "off"), ("max_parallel_workers_per_gather", "0")] {
                let rows = try await connection.query("SELECT current_setting(\(name)) AS value")
                #expect(try rows[0].decode("value", as: String.self) == expected)
            }
            await connection.close()
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    /// The connections that a coordinator opens at its start may break at any byte: it waits for its database (F5, F8).
    @Test(arguments: [0, 300, 1_500], PathFault.Direction.allCases)
    func aCoordinatorWhoseFirstConnectionsBreakStartsAllTheSame(bytes: Int, direction: PathFault.Direction) async throws
    {
        try await RunningCoordinator.with { first in
            let sockets = try await TestPostgres.shared().socketDirectory
            let path = try await DistantPath.open(to: .socket(FilePath(sockets).appending(".s.PGSQL.5432")))
            await path.inject(.cut(afterBytes: bytes, direction))
            let healing = Task {
                // One try takes three connections at the most: another one has begun after it failed.
                try await eventually("another try") { path.connections > 4 }
                await path.inject(nil)
            }
            let way = "host=127.0.0.1 port=\(path.port) sslmode=disable gssencmode=disable"
            try await first.withAnother(through: way) { second in
                let groups = try await second.client.groups()
                #expect(groups.items.isEmpty)
            }
            try await healing.value
        }
    }

    @Test func serverOfAnOlderTimelineCountsAsUnreachable() throws {
        let log = RecordedLog()
        let watch = SchemaWatch(logger: log.logger)
        func note(_ cluster: String, _ number: Int64) throws {
            try watch.note(DatabaseTimeline(cluster: cluster, number: number))
        }
        try note("a", 1)
        try note("a", 1)
        try note("a", 3)
        for _ in 0..<2 {
            let error = #expect(throws: PostgresError.self) { try note("a", 2) }
            #expect(error?.isOutage == true)
        }
        #expect(log.events.count == 1, "the operator is told once")
        try note("a", 3)
        // A dump that was loaded into another cluster.
        try note("b", 1)
    }
}
