import Glibc
import MusterPostgres
import Testing

@Suite struct ConnectionTests {
    let configuration: PostgresConfiguration
    let connection: PostgresConnection
    let other: PostgresConnection

    init() async throws {
        configuration = try await TestCluster.shared().schema()
        connection = try await PostgresConnection.open(configuration)
        other = try await PostgresConnection.open(configuration)
    }

    /// Returns once the connection's backend runs a statement that holds `fragment`.
    private func waitUntilRunning(_ pid: Int32, _ fragment: String) async throws {
        while true {
            let rows = try await other.query(
                """
                SELECT 1 FROM pg_stat_activity
                WHERE pid = \(pid) AND state = 'active' AND position(\(fragment) IN query) > 0
                """
            )
            if !rows.isEmpty { return }
            await Task.yield()
        }
    }

    @Test func uniqueViolationCarriesItsConstraint() async throws {
        try await connection.simple(
            "CREATE TABLE things (id bigint CONSTRAINT things_id_once UNIQUE); INSERT INTO things VALUES (1)"
        )
        let error = await failure { try await connection.execute("INSERT INTO things VALUES (\(1))") }
        guard case PostgresError.server(let server)? = error else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(server.sqlState == .uniqueViolation)
        #expect(server.constraint == "things_id_once")
        #expect(server.table == "things")
        #expect(server.detail?.contains("(1)") == true)
        #expect(server.outcome == .none)
        #expect(try await connection.query("SELECT 1").count == 1)
    }

    @Test func affectedRowsComeFromTheCommandTag() async throws {
        try await connection.query("CREATE TABLE numbers (n int)")
        #expect(try await connection.execute("INSERT INTO numbers SELECT generate_series(1, 10)") == 10)
        #expect(try await connection.execute("UPDATE numbers SET n = 0 WHERE n > 3") == 7)
        #expect(try await connection.query("DELETE FROM numbers").commandTag == "DELETE 10")
    }

    @Test func scriptIsOneTransaction() async throws {
        let error = await failure {
            try await connection.simple("CREATE TABLE a (n int); INSERT INTO a VALUES (1); SELECT 1 / 0")
        }
        #expect((error as? PostgresError)?.sqlState == .other("22012"))
        let gone = await failure { try await connection.query("SELECT 1 FROM a") }
        #expect((gone as? PostgresError)?.sqlState == .undefinedTable)
    }

    @Test func settingsReachTheServer() async throws {
        var configuration = configuration
        configuration.applicationName = "a name"
        configuration.statementTimeout = .milliseconds(1_234)
        configuration.idleInTransactionTimeout = .seconds(7)
        configuration.lockTimeout = .seconds(3)
        configuration.settings = ["synchronous_commit": "off", "work_mem": "1 MB"]
        let connection = try await PostgresConnection.open(configuration)
        func setting(_ name: String) async throws -> String? {
            try await connection.query("SELECT current_setting(\(name)) AS value").first?.decode("value")
        }
        #expect(try await setting("application_name") == "a name")
        #expect(try await setting("statement_timeout") == "1234ms")
        #expect(try await setting("idle_in_transaction_session_timeout") == "7s")
        #expect(try await setting("lock_timeout") == "3s")
        #expect(try await setting("synchronous_commit") == "off")
        #expect(try await setting("client_connection_check_interval") == "1s")
        #expect(try await setting("work_mem") == "1MB")
        #expect(try await setting("search_path") == "\"\(configuration.searchPath[0])\"")
    }

    @Test func statementOfATransactionPastItsDeadlineIsCancelledAndTheConnectionStays() async throws {
        let error = await failure {
            try await connection.withTransaction { connection in
                try await connection.query("SELECT pg_sleep(600)", deadline: .now + .seconds(1))
            }
        }
        #expect(error as? PostgresError == .deadlineExceeded(.running))
        #expect(connection.isOpen)
        #expect(try await connection.query("SELECT 1").count == 1)
    }

    @Test func statementWithAPastDeadlineIsNotSent() async throws {
        let error = await failure { try await connection.query("SELECT 1", deadline: .now - .seconds(1)) }
        #expect(error as? PostgresError == .deadlineExceeded(.beforeSending))
    }

    @Test func serverTimeoutIsAServerError() async throws {
        try await connection.query("SET statement_timeout = 20")
        let error = await failure { try await connection.query("SELECT pg_sleep(600)") }
        guard case PostgresError.server(let server)? = error else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(server.sqlState == .queryCanceled)
    }

    @Test func cancelledTaskCancelsItsStatementOfATransaction() async throws {
        let pid = try #require(await connection.backendPID)
        let running = Task {
            try await connection.withTransaction { try await $0.query("SELECT pg_sleep(600)") }
        }
        try await waitUntilRunning(pid, "pg_sleep(600)")
        running.cancel()
        let error = await failure { try await running.value }
        #expect(error is CancellationError)
        #expect(connection.isOpen)
        #expect(try await connection.query("SELECT 1").count == 1)
    }

    /// A cancel request may hit a commit that waits for a standby.
    @Test func cancelledTaskLeavesAStatementThatMayCommitToTheServerWhichEndsIt() async throws {
        let pid = try #require(await connection.backendPID)
        let running = Task { try await connection.query("SELECT pg_sleep(600)") }
        try await waitUntilRunning(pid, "pg_sleep(600)")
        running.cancel()
        let error = await failure { try await running.value }
        #expect(error is CancellationError && !connection.isOpen)
        while try await !other.query("SELECT 1 FROM pg_stat_activity WHERE pid = \(pid)").isEmpty {}
    }

    @Test func cancellationNeverHitsTheNextStatement() async throws {
        for round in 0..<150 {
            // Cancelled around the end of the statement, so that it sometimes ends while the cancel request is on its way.
            let first = Task {
                try await connection.withTransaction {
                    try await $0.query("SELECT pg_sleep(\(Double(round % 10) / 10_000))")
                }
            }
            while try await other.query("SELECT 1").isEmpty {}
            first.cancel()
            _ = await failure { try await first.value }
            #expect(try await connection.query("SELECT pg_sleep(0.003)").count == 1)
        }
    }

    @Test func cancelledTaskSendsNothing() async throws {
        try await connection.query("CREATE TABLE untouched (n int)")
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await connection.query("INSERT INTO untouched VALUES (1)")
        }
        #expect(await failure { try await task.value } is CancellationError)
        #expect(try await connection.query("SELECT 1 FROM untouched").isEmpty)
    }

    @Test func hangingServerCannotHoldAStatement() async throws {
        var configuration = configuration
        configuration.cancelGrace = .milliseconds(100)
        let hanging = try await PostgresConnection.open(configuration)
        let pid = try #require(await hanging.backendPID)
        kill(pid, SIGSTOP)
        defer { kill(pid, SIGCONT) }
        let error = await failure { try await hanging.query("SELECT 1", deadline: .now + .seconds(1)) }
        guard case PostgresError.connection(let connection)? = error else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(connection.kind == .unresponsive)
        #expect(connection.outcome == .unknown)
        let next = await failure { try await hanging.query("SELECT 1") }
        #expect((next as? PostgresError)?.isUnavailable == true, "it waits for the answer")
    }

    @Test func terminatedIdleConnectionIsNotSentTo() async throws {
        let pid = try #require(await connection.backendPID)
        try await other.query("SELECT pg_terminate_backend(\(pid), 10000)")
        let error = await failure { try await connection.query("SELECT 1") }
        guard case PostgresError.connection(let lost)? = error else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(lost.kind == .lost)
        #expect(lost.outcome == .none)
        #expect(lost.sqlState == .adminShutdown)
        #expect(!connection.isOpen)
    }

    @Test func terminatedStatementHasAnUnknownOutcome() async throws {
        let pid = try #require(await connection.backendPID)
        let running = Task { try await connection.query("SELECT pg_sleep(600)") }
        try await waitUntilRunning(pid, "pg_sleep(600)")
        try await other.query("SELECT pg_terminate_backend(\(pid))")
        let error = await failure { try await running.value } as? PostgresError
        #expect(error?.sqlState == .adminShutdown)
        #expect(error?.outcomeUnknown == true)
        #expect(error?.isUnavailable == true)
        #expect(error?.isRetryable == false)
        #expect(!connection.isOpen)
    }

    @Test func terminatedTransactionIsRolledBackAndRetryable() async throws {
        let pid = try #require(await connection.backendPID)
        let error =
            await failure {
                try await connection.withTransaction { connection in
                    try await connection.query("SELECT 1")
                    try await other.query("SELECT pg_terminate_backend(\(pid), 10000)")
                    try await connection.query("SELECT 2")
                }
            } as? PostgresError
        #expect(error?.outcome == .rolledBack)
        #expect(error?.isRetryable == true)
    }

    @Test func copyAsAQueryIsRefused() async throws {
        let error = await failure { try await connection.query("COPY (SELECT 1) TO STDOUT") }
        #expect(error as? PostgresError == .misuse(.copyAsQuery))
    }

    @Test func unreachableServerIsReportedAsUnreachable() async throws {
        let nowhere = PostgresConfiguration("host=/nonexistent user=x password=hunter2")
        let error = await failure { try await PostgresConnection.open(nowhere) } as? PostgresError
        guard case .connection(let connection)? = error else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(connection.kind == .unreachable)
        #expect(error?.isUnavailable == true)
    }

    @Test func wrongPasswordIsNamedByCodeAndNeverShown() async throws {
        try await other.simple(
            """
            DO $$ BEGIN CREATE ROLE secretive LOGIN PASSWORD 'right'; EXCEPTION WHEN duplicate_object THEN NULL; END $$
            """
        )
        let wrong = try TestCluster.shared().configuration(user: "secretive", more: "password=hunter2")
        let error = await failure { try await PostgresConnection.open(wrong) } as? PostgresError
        #expect(error?.sqlState == .other("28P01"))
        #expect(error.map { "\($0)".contains("hunter2") } == false)
        #expect(!"\(wrong)".contains("hunter2"))
        var dumped = ""
        dump(wrong, to: &dumped)
        #expect(!dumped.contains("hunter2"))
    }

    @Test(arguments: ["password=hunter2 nonsense", "postgresql://u:hunter2@h/?hunter2", "hunter2"])
    func badConnectionStringIsNotQuoted(_ text: String) async throws {
        let error = await failure { try await PostgresConnection.open(PostgresConfiguration(text)) } as? PostgresError
        guard case .connection(let connection)? = error else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(connection.kind == .badConfiguration)
        #expect(!connection.message.contains("hunter2"))
    }

    @Test func preparedStatementSurvivesAChangedTable() async throws {
        try await connection.simple("CREATE TABLE shapes (a int); INSERT INTO shapes VALUES (1)")
        for _ in 0..<3 {
            try await connection.query("SELECT * FROM shapes WHERE a = \(1)")
        }
        #expect(try await preparedCount() > 0)
        try await other.query("ALTER TABLE shapes ADD b text DEFAULT 'x'")
        let rows = try await connection.query("SELECT * FROM shapes WHERE a = \(1)")
        #expect(rows.columns == ["a", "b"])
    }

    @Test func preparedStatementSurvivesItsDeallocation() async throws {
        for _ in 0..<3 {
            #expect(try await connection.query("SELECT \(1) AS one").count == 1)
        }
        try await connection.simple("DEALLOCATE ALL")
        for _ in 0..<3 {
            #expect(try await connection.query("SELECT \(1) AS one").count == 1)
        }
    }

    @Test func preparedStatementsAreBoundedOnTheServer() async throws {
        var configuration = configuration
        configuration.preparedStatementLimit = 4
        let connection = try await PostgresConnection.open(configuration)
        for number in 0..<40 {
            for _ in 0..<3 {
                try await connection.query(SQL(unsafeRaw: "SELECT \(number)"))
            }
        }
        let rows = try await connection.query("SELECT count(*) AS count FROM pg_prepared_statements")
        // An evicted statement is deallocated when the next is prepared, so there may be one more than the limit.
        #expect(try #require(rows.first).decode("count", as: Int.self) <= 5)
    }

    @Test func closedConnectionSaysSo() async throws {
        await connection.close()
        let error = await failure { try await connection.query("SELECT 1") } as? PostgresError
        #expect(error?.outcome == PostgresError.Outcome.none)
        #expect(!connection.isOpen)
    }

    @Test func concurrentStatementsOnOneConnectionTakeTurns() async throws {
        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...200 {
                group.addTask {
                    try await connection.query("SELECT \(number) AS n").first?.decode("n") ?? 0
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(sum == 20_100)
    }

    /// Far more connections are blocked than Swift's pool has threads. The connection that frees them must still get its turn.
    @Test func waitingConnectionsHoldUpNoThreadOfSwift() async throws {
        let key = Int64(try #require(await connection.backendPID))
        try await connection.query("SELECT pg_advisory_lock(\(key))")
        let freed = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<24 {
                group.addTask { [configuration] in
                    let blocked = try await PostgresConnection.open(configuration)
                    return try await blocked.query("SELECT pg_advisory_xact_lock_shared(\(key))").count
                }
            }
            let waiting: SQL = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = \(key)"
            while try await other.query(waiting).count < 24 {}
            try await connection.query("SELECT pg_advisory_unlock(\(key))")
            return try await group.reduce(0, +)
        }
        #expect(freed == 24)
    }

    private func preparedCount() async throws -> Int {
        try await connection.query("SELECT count(*) AS count FROM pg_prepared_statements").first?.decode("count") ?? 0
    }
}
