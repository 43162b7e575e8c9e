import MusterPostgres
import Testing

@Suite struct TransactionTests {
    let configuration: PostgresConfiguration
    let pool: PostgresPool

    init() async throws {
        configuration = try await TestCluster.shared().schema()
        pool = PostgresPool(configuration)
        try await pool.withConnection { connection in
            try await connection.simple(
                "CREATE TABLE accounts (id int PRIMARY KEY, amount int NOT NULL); INSERT INTO accounts VALUES (1, 100), (2, 100)"
            )
        }
    }

    private func amount(_ id: Int) async throws -> Int {
        let row = try await pool.query("SELECT amount FROM accounts WHERE id = \(id)").first
        return try #require(row).decode("amount")
    }

    @Test func errorInTheBodyRollsBack() async throws {
        struct Refused: Error {}
        let error = await failure {
            try await pool.withTransaction { connection in
                try await connection.execute("UPDATE accounts SET amount = 0")
                throw Refused()
            }
        }
        #expect(error is Refused)
        #expect(try await amount(1) == 100)
        await pool.shutdown()
    }

    @Test func returnCommits() async throws {
        let given = try await pool.withTransaction { connection in
            try await connection.execute("UPDATE accounts SET amount = 5 WHERE id = 1")
        }
        #expect(given == 1)
        #expect(try await amount(1) == 5)
        await pool.shutdown()
    }

    @Test func swallowedErrorDoesNotPassForACommit() async throws {
        let error = await failure {
            try await pool.withTransaction { connection in
                try await connection.execute("UPDATE accounts SET amount = 0")
                _ = await failure { try await connection.query("SELECT 1 / 0") }
            }
        }
        #expect(error as? PostgresError == .rolledBack)
        #expect(try await amount(1) == 100)
        await pool.shutdown()
    }

    @Test func cancelledTransactionIsRolledBack() async throws {
        let (started, signal) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            try await pool.withTransaction { connection in
                try await connection.execute("UPDATE accounts SET amount = 0")
                signal.finish()
                try await connection.query("SELECT pg_sleep(600)")
            }
        }
        for await _ in started {}
        task.cancel()
        #expect(await failure { try await task.value } is CancellationError)
        #expect(try await amount(1) == 100)
        #expect(pool.connectionCount == 1)
        await pool.shutdown()
    }

    @Test func nestedTransactionIsRefused() async throws {
        let error = await failure {
            try await pool.withTransaction { connection in
                try await connection.withTransaction { _ in }
            }
        }
        #expect(error as? PostgresError == .misuse(.nestedTransaction))
        await pool.shutdown()
    }

    @Test func readOnlyTransactionCannotWrite() async throws {
        let error =
            await failure {
                try await pool.withTransaction(readOnly: true) { connection in
                    try await connection.execute("UPDATE accounts SET amount = 0")
                }
            } as? PostgresError
        #expect(error?.sqlState == .readOnly)
        #expect(error?.isUnavailable == true)
        await pool.shutdown()
    }

    @Test func isolationReachesTheServer() async throws {
        for (isolation, name) in [
            (PostgresIsolation.readCommitted, "read committed"), (.repeatableRead, "repeatable read"),
            (.serializable, "serializable"),
        ] {
            let row = try await pool.withTransaction(isolation: isolation) { connection in
                try await connection.query("SELECT current_setting('transaction_isolation') AS name").first
            }
            #expect(try row?.decode("name", as: String.self) == name)
        }
        await pool.shutdown()
    }

    /// Two transactions that each lock one row, meet, and then want the other's.
    @Test func deadlockIsRunAgain() async throws {
        let meeting = Meeting(parties: 2)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (first, second) in [(1, 2), (2, 1)] {
                group.addTask { [pool] in
                    try await pool.withTransaction { connection in
                        try await connection.execute("UPDATE accounts SET amount = amount + 1 WHERE id = \(first)")
                        await meeting.meet()
                        try await connection.execute("UPDATE accounts SET amount = amount + 1 WHERE id = \(second)")
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await amount(1) == 102)
        #expect(try await amount(2) == 102)
        // On a slow machine a time limit may end a waiting transaction too.
        #expect(await meeting.arrivals >= 3)
        await pool.shutdown()
    }

    @Test func serializationFailureIsRunAgain() async throws {
        let meeting = Meeting(parties: 2)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for id in 1...2 {
                group.addTask { [pool] in
                    try await pool.withTransaction(isolation: .serializable) { connection in
                        let rows = try await connection.query("SELECT sum(amount)::bigint AS sum FROM accounts")
                        let sum: Int = try rows.first?.decode("sum") ?? 0
                        await meeting.meet()
                        try await connection.execute("UPDATE accounts SET amount = \(sum) WHERE id = \(id)")
                    }
                }
            }
            try await group.waitForAll()
        }
        // The result is as if one ran after the other: the second sees the 200 of the first.
        let amounts = [try await amount(1), try await amount(2)]
        #expect(amounts.sorted() == [200, 300])
        #expect(await meeting.arrivals > 2)
        await pool.shutdown()
    }

    @Test func retriesAreBounded() async throws {
        var runs = 0
        let error =
            await failure {
                try await pool.withTransaction(retries: 2) { connection in
                    runs += 1
                    try await connection.query("DO $$ BEGIN RAISE serialization_failure; END $$")
                }
            } as? PostgresError
        #expect(error?.sqlState == .serializationFailure)
        #expect(runs == 3)
        await pool.shutdown()
    }

    @Test func otherErrorsAreNotRunAgain() async throws {
        var runs = 0
        _ = await failure {
            try await pool.withTransaction { connection in
                runs += 1
                try await connection.query("INSERT INTO accounts VALUES (1, 0)")
            }
        }
        #expect(runs == 1)
        await pool.shutdown()
    }

    @Test func connectionLostInTheBodyIsRunAgainOnAnother() async throws {
        var runs = 0
        try await pool.withTransaction { [configuration] connection in
            runs += 1
            try await connection.execute("UPDATE accounts SET amount = amount + 1 WHERE id = 1")
            if runs == 1, let pid = await connection.backendPID {
                let killer = try await PostgresConnection.open(configuration)
                try await killer.query("SELECT pg_terminate_backend(\(pid), 10000)")
            }
            try await connection.execute("UPDATE accounts SET amount = amount + 1 WHERE id = 2")
        }
        #expect(runs == 2)
        #expect(try await amount(1) == 101)
        await pool.shutdown()
    }

    /// Fault F6: the connection is cut while COMMIT runs, here held up by a deferred trigger.
    @Test func commitCutOffHasAnUnknownOutcomeAndIsNotRunAgain() async throws {
        try await pool.withConnection { connection in
            try await connection.simple(
                """
                CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
                    $$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$;
                CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON accounts DEFERRABLE INITIALLY DEFERRED
                    FOR EACH ROW EXECUTE FUNCTION slow();
                """
            )
        }
        var runs = 0
        let killer = try await PostgresConnection.open(configuration)
        let (pids, signal) = AsyncStream.makeStream(of: Int32.self)
        async let killing: Void = {
            for await pid in pids {
                while try await killer.query(
                    "SELECT 1 FROM pg_stat_activity WHERE pid = \(pid) AND query = 'COMMIT' AND state = 'active'"
                ).isEmpty { await Task.yield() }
                try await killer.query("SELECT pg_terminate_backend(\(pid))")
            }
        }()
        let error =
            await failure {
                try await pool.withTransaction { connection in
                    runs += 1
                    try await connection.execute("UPDATE accounts SET amount = 0 WHERE id = 1")
                    if let pid = await connection.backendPID { signal.yield(pid) }
                    signal.finish()
                }
            } as? PostgresError
        try await killing
        #expect(error?.outcomeUnknown == true)
        #expect(error?.isRetryable == false)
        #expect(runs == 1)
        #expect(try await amount(1) == 100)
        await pool.shutdown()
    }

    /// A plan that went stale within a transaction is made anew by running the transaction again.
    @Test func stalePlanWithinATransactionIsRunAgain() async throws {
        let single = PostgresPool(configuration, limits: .init(maximumConnections: 1))
        for _ in 0..<3 {
            try await single.query("SELECT * FROM accounts WHERE id = \(1)")
        }
        try await pool.query("ALTER TABLE accounts ADD note text")
        var runs = 0
        let columns = try await single.withTransaction { connection in
            runs += 1
            return try await connection.query("SELECT * FROM accounts WHERE id = \(1)").columns
        }
        #expect(columns.last == "note")
        #expect(runs == 2)
        await single.shutdown()
        await pool.shutdown()
    }
}

/// Holds callers until `parties` of them have arrived; later callers pass.
actor Meeting {
    private let parties: Int
    private(set) var arrivals = 0
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(parties: Int) {
        self.parties = parties
    }

    func meet() async {
        arrivals += 1
        if arrivals >= parties {
            waiting.forEach { $0.resume() }
            waiting = []
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }
}
