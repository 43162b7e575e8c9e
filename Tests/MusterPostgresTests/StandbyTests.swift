import MusterTestSupport
import Testing

@testable import MusterPostgres

/// Commits that wait for a synchronous standby, which does not confirm them.
@Suite struct StandbyTests {
    /// A server whose commits wait for a standby that does not exist, and a way to make it wait no longer.
    private struct Scene {
        let cluster: TestCluster
        let admin: PostgresConnection
        let pool: PostgresPool

        static func run(
            unansweredLimit: Duration = .seconds(60), _ body: (Scene) async throws -> Void
        ) async throws {
            let cluster = try TestCluster()
            defer { cluster.stop() }
            var configuration = try await cluster.schema()
            configuration.defaultTimeout = .milliseconds(500)
            var limits = PostgresPool.Limits(maximumConnections: 2)
            limits.unansweredLimit = unansweredLimit
            let scene = Scene(
                cluster: cluster, admin: try await PostgresConnection.open(try await cluster.schema()),
                pool: PostgresPool(configuration, limits: limits))
            try await scene.pool.query("CREATE TABLE rows (n integer)")
            try await scene.set(standby: "nobody")
            try await scene.waitForEffect(configuration)
            try await body(scene)
            await scene.pool.shutdown()
            await scene.admin.close()
        }

        func set(standby name: String) async throws {
            try await admin.query("SET synchronous_commit = local")
            try await admin.simple("ALTER SYSTEM SET synchronous_standby_names = '\(name)'")
            try await admin.query("SELECT pg_reload_conf()")
        }

        /// The checkpointer puts the setting into effect: commits are made until one of them waits, and is cancelled.
        private func waitForEffect(_ configuration: PostgresConfiguration) async throws {
            let probe = try await PostgresConnection.open(configuration)
            let pid = try #require(await probe.backendPID)
            async let ending = failure {
                while true { try await probe.query("INSERT INTO rows VALUES (0)", deadline: .now + .seconds(120)) }
            }
            while try await !waitingBackends().contains(pid) {}
            try await admin.query("SELECT pg_cancel_backend(\(pid))")
            #expect((await ending as? PostgresError)?.outcomeUnknown == true)
            await probe.close()
        }

        func waitingBackends() async throws -> [Int32] {
            try await admin.query("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
                .map { try $0.decode("pid") }
        }
    }

    @Test(arguments: [false, true])
    func commitThatWaitsForAStandbyIsNotTakenForDone(inTransaction: Bool) async throws {
        try await Scene.run { scene in
            let error = await failure {
                if inTransaction {
                    try await scene.pool.withTransaction { try await $0.query("INSERT INTO rows VALUES (1)") }
                } else {
                    try await scene.pool.query("INSERT INTO rows VALUES (1)")
                }
            }
            let failed = try #require(error as? PostgresError)
            #expect(failed.outcomeUnknown && failed.isUnavailable && !failed.lostAnswer)
            // No reader sees what a failover may lose.
            #expect(try await scene.waitingBackends().count == 1)
            #expect(try await scene.pool.query("SELECT n FROM rows WHERE n = 1").isEmpty)
            #expect(scene.pool.connectionCount == 2, "the connection that waits counts")

            try await scene.set(standby: "")
            while try await scene.pool.query("SELECT n FROM rows WHERE n = 1").isEmpty {}
            #expect(try await scene.waitingBackends().isEmpty)
        }
    }

    /// The limit is over, or the pool is shut down: the connection is closed, and the commit waits on.
    @Test(arguments: [true, false])
    func closedConnectionEndsNoCommitThatWaitsForAStandby(byShutdown: Bool) async throws {
        try await Scene.run(unansweredLimit: byShutdown ? .seconds(3_600) : .zero) { scene in
            let error = await failure { try await scene.pool.query("INSERT INTO rows VALUES (1)") }
            #expect((error as? PostgresError)?.outcomeUnknown == true)
            if byShutdown { await scene.pool.shutdown() }
            while scene.pool.connectionCount > 0 { await Task.yield() }
            #expect(try await scene.waitingBackends().count == 1)
            try await scene.set(standby: "")
            while try await !scene.waitingBackends().isEmpty {}
        }
    }

    /// An administrator cancels the wait: the row is there, but a failover may lose it.
    @Test func commitWhoseWaitIsCancelledHasAnUnknownOutcome() async throws {
        try await Scene.run { scene in
            async let error = failure {
                try await scene.pool.query("INSERT INTO rows VALUES (1)", deadline: .now + .seconds(120))
            }
            var waiting: [Int32] = []
            while waiting.isEmpty { waiting = try await scene.waitingBackends() }
            try await scene.admin.query("SELECT pg_cancel_backend(\(waiting[0]))")
            #expect((await error as? PostgresError)?.outcomeUnknown == true)
            #expect(try await scene.pool.query("SELECT n FROM rows WHERE n = 1").count == 1)
        }
    }

    /// A cancel request may hit a commit that waits for a standby.
    @Test func statementThatMayCommitIsNotCancelledAtItsDeadline() async throws {
        let configuration = try await TestCluster.shared().schema()
        let connection = try await PostgresConnection.open(configuration)
        let lock = try await PostgresConnection.open(configuration)
        try await lock.query("SELECT pg_advisory_lock(77)")
        let first = await failure {
            try await connection.query("SELECT pg_advisory_lock(77)", deadline: .now + .seconds(1))
        }
        #expect((first as? PostgresError)?.outcomeUnknown == true)
        let second = await failure { try await connection.query("SELECT 1") }
        guard case PostgresError.connection(let refusal)? = second else {
            Issue.record("unexpected: \(String(describing: second))")
            return
        }
        #expect(refusal.kind == .unresponsive && refusal.outcome == .none)
        try await lock.query("SELECT pg_advisory_unlock(77)")
        #expect(await connection.settle(until: .now + .seconds(60)))
        #expect(try await connection.query("SELECT 1").count == 1)
    }
}
