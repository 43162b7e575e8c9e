import MusterPostgres
import MusterTestSupport
import Testing

/// Connection strings that name several hosts.
@Suite struct HostTests {
    @Test func secondHostIsTriedWhenTheFirstIsGone() async throws {
        let both = PostgresConfiguration(
            "host=/nonexistent,\(try TestCluster.shared().directory) user=tester dbname=postgres"
        )
        let connection = try await PostgresConnection.open(both)
        #expect(try await connection.query("SELECT 1").count == 1)
    }

    /// The machine of a lost primary takes connections, or seems to, and says nothing.
    @Test func silentHostLeavesTimeForTheNext() async throws {
        let silent = try await ScriptedOrigin.start()
        silent.refuseConnections(0..<Int.max, .hang)
        let directory = try TestCluster.shared().directory
        let pool = PostgresPool(
            PostgresConfiguration(
                "host=127.0.0.1,\(directory) port=\(silent.port),5432 user=tester dbname=postgres"))
        #expect(try await pool.query("SELECT 1", deadline: .now + .seconds(8)).count == 1)
        #expect(silent.refusedConnectionCount > 0)
        await pool.shutdown()
    }

    @Test(arguments: [true, false])
    func hostThatIsNotAdmittedIsPassedOverIfItCountsAsUnreachable(isPassedOver: Bool) async throws {
        let directory = try TestCluster.shared().directory
        let both = PostgresConfiguration("host=\(directory),\(directory) user=tester dbname=postgres")
        let kind = isPassedOver ? PostgresError.Connection.Kind.unreachable : .badConfiguration
        let asked = Shared(0)
        let error = await failure {
            let connection = try await PostgresConnection.open(both) { _ in
                let count = asked.withLock { count in
                    count += 1
                    return count
                }
                if count == 1 { throw PostgresError.connection(.init(kind: kind, message: "a former primary")) }
            }
            #expect(try await connection.query("SELECT 1").count == 1)
        }
        #expect((error == nil) == isPassedOver)
        #expect(asked.withLock { $0 } == (isPassedOver ? 2 : 1))
    }
}
