import MusterTestSupport
import Testing

@testable import MusterPostgres

@Suite(.enabled(if: PgBouncerServer.isAvailable))
struct PoolerTests {
    @Test(arguments: PgBouncerServer.PoolMode.allCases)
    func poolerThatGivesEachTransactionAnotherSessionIsNoticed(mode: PgBouncerServer.PoolMode) async throws {
        let cluster = try TestCluster.shared()
        let pooler = try await PgBouncerServer.start(
            before: cluster.directory, user: "tester", poolMode: mode)
        let configuration = PostgresConfiguration("host=127.0.0.1 port=\(pooler.port) user=tester dbname=postgres")
        #expect(try await PostgresConnection.haveOwnSessions(configuration) == (mode == .session))
        #expect(try await PostgresConnection.haveOwnSessions(cluster.configuration()))
    }
}
