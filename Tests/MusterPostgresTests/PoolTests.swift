import Logging
import MusterPostgres
import MusterTestSupport
import Testing

@Suite struct PoolTests {
    let configuration: PostgresConfiguration

    init() async throws {
        configuration = try await TestCluster.shared().schema()
    }

    @Test func manyQueriesShareFewConnections() async throws {
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 4))
        let sum = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...1_000 {
                group.addTask {
                    try await pool.query("SELECT \(number) AS n", deadline: .now + .seconds(60)).first?.decode("n") ?? 0
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(sum == 500_500)
        #expect(pool.connectionCount <= 4)
        await pool.shutdown()
        #expect(pool.connectionCount == 0)
    }

    @Test func neverMoreConnectionsThanTheLimit() async throws {
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 3))
        let lent = Shared((now: 0, most: 0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<60 {
                group.addTask {
                    try await pool.withConnection(deadline: .now + .seconds(60)) { connection in
                        lent.withLock {
                            $0.now += 1
                            $0.most = max($0.most, $0.now)
                        }
                        try await connection.query("SELECT 1")
                        lent.withLock { $0.now -= 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(lent.withLock { $0.most } <= 3)
        await pool.shutdown()
    }

    @Test func waitersAreServedInTheOrderOfAsking() async throws {
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 1))
        let order = Shared([Int]())
        try await withThrowingTaskGroup(of: Void.self) { group in
            try await pool.withConnection { _ in
                for number in 0..<20 {
                    group.addTask {
                        try await pool.withConnection { _ in order.withLock { $0.append(number) } }
                    }
                    // The next task asks only when this task is in the queue.
                    while pool.waiterCount <= number { await Task.yield() }
                }
            }
            try await group.waitForAll()
        }
        #expect(order.withLock { $0 } == Array(0..<20))
        await pool.shutdown()
    }

    @Test func waiterGivesUpAtItsDeadline() async throws {
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 1))
        try await pool.withConnection { _ in
            let error = await failure { try await pool.query("SELECT 1", deadline: .now + .milliseconds(20)) }
            #expect(error as? PostgresError == .deadlineExceeded(.waitingForConnection))
            #expect(pool.waiterCount == 0)
        }
        #expect(try await pool.query("SELECT 1").count == 1)
        await pool.shutdown()
    }

    @Test func tooManyWaitersAreRefused() async throws {
        var limits = PostgresPool.Limits(maximumConnections: 1)
        limits.maximumWaiters = 0
        let pool = PostgresPool(configuration, limits: limits)
        try await pool.withConnection { _ in
            #expect(await failure { try await pool.query("SELECT 1") } as? PostgresError == .misuse(.tooManyWaiters))
        }
        await pool.shutdown()
    }

    @Test func cancelledWaitersLeakNothing() async throws {
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 2))
        for _ in 0..<30 {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<10 {
                    group.addTask { _ = try? await pool.query("SELECT 1") }
                }
                await group.next()
                group.cancelAll()
            }
        }
        #expect(pool.waiterCount == 0)
        // Both connections can still be had at once.
        try await pool.withConnection { _ in
            let count = try await pool.withConnection { try await $0.query("SELECT 1").count }
            #expect(count == 1)
        }
        await pool.shutdown()
    }

    @Test func openTransactionIsRolledBackOnReturn() async throws {
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 1))
        try await pool.query("CREATE TABLE left_open (n int)")
        var before: Int32?
        try await pool.withConnection { connection in
            try await connection.query("BEGIN")
            try await connection.query("INSERT INTO left_open VALUES (1)")
            before = await connection.backendPID
        }
        #expect(try await pool.query("SELECT 1 FROM left_open").isEmpty)
        // The pool kept the connection.
        let after = try await pool.withConnection { await $0.backendPID }
        #expect(before == after)
        await pool.shutdown()
    }

    @Test func idleConnectionsThatWereTerminatedAreReplacedUnnoticed() async throws {
        var configuration = configuration
        configuration.applicationName = "pool \(configuration.searchPath)"
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 4))
        let meeting = Meeting(parties: 4)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { try await pool.withConnection { _ in await meeting.meet() } }
            }
            try await group.waitForAll()
        }
        #expect(pool.connectionCount == 4)
        let killer = try await PostgresConnection.open(self.configuration)
        let terminate: SQL = """
            SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
            WHERE application_name = \(configuration.applicationName)
            """
        #expect(try await killer.query(terminate).count == 4)
        #expect(try await pool.query("SELECT 1").count == 1)
        try await killer.query(terminate)
        #expect(try await pool.withConnection { try await $0.query("SELECT 1").count } == 1)
        try await killer.query(terminate)
        #expect(try await pool.withTransaction { try await $0.query("SELECT 1").count } == 1)
        await pool.shutdown()
    }

    @Test func busyConnectionThatWasTerminatedIsDropped() async throws {
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 1))
        let error =
            await failure {
                try await pool.query("SELECT pg_terminate_backend(pg_backend_pid())")
            } as? PostgresError
        #expect(error?.outcomeUnknown == true)
        #expect(try await pool.query("SELECT 1").count == 1)
        await pool.shutdown()
    }

    @Test func longUnusedConnectionsAreClosed() async throws {
        var limits = PostgresPool.Limits(maximumConnections: 3)
        limits.idleTimeout = .zero
        limits.minimumConnections = 1
        let pool = PostgresPool(configuration, limits: limits)
        try await pool.withConnection { _ in
            try await pool.withConnection { _ in
                try await pool.withConnection { _ in #expect(pool.connectionCount == 3) }
            }
        }
        #expect(pool.connectionCount == 1)
        await pool.shutdown()
    }

    @Test func shutdownWaitsForLoansAndRefusesNewOnes() async throws {
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 1))
        let (lent, signal) = AsyncStream.makeStream(of: Void.self)
        let (goOn, release) = AsyncStream.makeStream(of: Void.self)
        let finished = Shared(false)
        async let loan: Void = pool.withConnection { connection in
            signal.finish()
            for await _ in goOn {}
            try await connection.query("SELECT 1")
            finished.withLock { $0 = true }
        }
        for await _ in lent {}
        async let waiting = failure { try await pool.query("SELECT 1") }
        while pool.waiterCount == 0 { await Task.yield() }
        async let down: Bool = {
            await pool.shutdown()
            return finished.withLock { $0 }
        }()
        #expect(await waiting as? PostgresError == .shutDown)
        #expect(await failure { try await pool.query("SELECT 1") } as? PostgresError == .shutDown)
        release.finish()
        #expect(await down)
        try await loan
        #expect(pool.connectionCount == 0)
        await pool.shutdown()
    }

    @Test func wrongDatabaseFailsAtOnce() async throws {
        let cluster = try TestCluster.shared()
        let pool = PostgresPool(cluster.configuration(more: "dbname=missing"))
        let error = await failure { try await pool.query("SELECT 1") } as? PostgresError
        #expect(error?.sqlState == .other("3D000"))
        await pool.shutdown()
    }

    @Test func unreachableServerIsTheReasonGivenAtTheDeadlineAndLoggedOnce() async throws {
        let log = RecordedLog()
        let pool = PostgresPool(PostgresConfiguration("host=/nonexistent user=x"), logger: log.logger)
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    _ = await failure { try await pool.query("SELECT 1", deadline: .now + .milliseconds(300)) }
                }
            }
        }
        #expect(log.events.count { $0.level == .warning } == 1)
        let error = await failure { try await pool.query("SELECT 1", deadline: .now + .milliseconds(300)) }
        guard case PostgresError.connection(let connection)? = error else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(connection.kind == .unreachable)
        await pool.shutdown()
    }
}

/// Tests that stop their server; each has a server of its own.
@Suite(.serialized) struct RestartTests {
    @Test func poolAndListenerSurviveACrashOfTheServer() async throws {
        let cluster = try TestCluster()
        defer { cluster.stop() }
        let configuration = cluster.configuration()
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 4))
        var events = PostgresListener(configuration, channels: ["news"]).makeAsyncIterator()
        #expect(await events.next() == .listening)
        try await pool.query("CREATE TABLE kept (n int)")

        cluster.crash()
        let down = await failure { try await pool.query("SELECT 1", deadline: .now + .milliseconds(300)) }
        #expect((down as? PostgresError)?.isUnavailable == true)
        #expect((down as? PostgresError)?.outcomeUnknown == false)

        // Asked while the server is down, answered once it is back.
        async let patient = pool.query("SELECT 1", deadline: .now + .seconds(60))
        async let transaction = pool.withTransaction(deadline: .now + .seconds(60)) { connection in
            try await connection.execute("INSERT INTO kept VALUES (1)")
        }
        cluster.start()
        #expect(try await patient.count == 1)
        #expect(try await transaction == 1)
        #expect(await events.next() == .reconnected)
        try await pool.notify(channel: "news", payload: "back")
        guard case .notification(let notification)? = await events.next() else {
            Issue.record("no notification")
            return
        }
        #expect(notification.payload == "back")
        await pool.shutdown()
    }

    @Test func transactionsGoOnOverACrash() async throws {
        let cluster = try TestCluster()
        defer { cluster.stop() }
        let pool = PostgresPool(cluster.configuration(), limits: .init(maximumConnections: 4))
        try await pool.query("CREATE TABLE done (id int PRIMARY KEY)")
        let begun = Shared(0)
        let (halfway, signal) = AsyncStream.makeStream(of: Void.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for id in 0..<200 {
                group.addTask {
                    if begun.withLock({
                        $0 += 1
                        return $0 == 100
                    }) {
                        signal.finish()
                    }
                    while true {
                        do {
                            _ = try await pool.withTransaction(retries: 20, deadline: .now + .seconds(60)) {
                                connection in
                                try await connection.execute("INSERT INTO done VALUES (\(id)) ON CONFLICT DO NOTHING")
                            }
                            return
                        } catch let error as PostgresError where error.outcomeUnknown || error.isUnavailable {
                            // The statement is idempotent, so an unknown COMMIT is simply run again.
                            continue
                        }
                    }
                }
            }
            for await _ in halfway {}
            cluster.crash()
            cluster.start()
            try await group.waitForAll()
        }
        let rows = try await pool.query("SELECT count(*) AS count FROM done")
        #expect(try rows.first?.decode("count", as: Int.self) == 200)
        await pool.shutdown()
    }
}
