import MusterPostgres
import MusterTestSupport
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
}
