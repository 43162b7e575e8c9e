import Logging
import MusterSystem

extension PostgresPool {
    /// Runs one statement on any connection.
    ///
    /// A connection that the server closed while it was idle is replaced without an error; a statement that may have run
    /// is never repeated.
    ///
    /// - Parameter deadline: For waiting and running together; by default `acquireTimeout`, then the configuration's
    ///   `defaultTimeout`.
    @discardableResult
    public func query(_ sql: SQL, deadline: ContinuousClock.Instant? = nil) async throws -> PostgresRows {
        try await tellingFailures { try await queryLiving(sql, deadline: deadline) }
    }

    private func queryLiving(_ sql: SQL, deadline: ContinuousClock.Instant?) async throws -> PostgresRows {
        var replaced = 0
        while true {
            let loan = try await acquire(deadline: deadline)
            do {
                let rows = try await loan.connection.query(sql, deadline: deadline)
                await release(loan)
                return rows
            } catch PostgresError.connection(let error)
                where error.kind == .lost && error.outcome == .none && replaced <= limits.maximumConnections
            {
                // After a restart of the server all idle connections are dead, so there are as many tries as connections.
                await release(loan)
                replaced += 1
            } catch {
                await release(loan)
                throw error
            }
        }
    }

    /// Runs one statement on any connection, and returns how many rows it inserted, updated or deleted.
    @discardableResult
    public func execute(_ sql: SQL, deadline: ContinuousClock.Instant? = nil) async throws -> Int {
        try await query(sql, deadline: deadline).affected
    }

    /// Lends a connection to `body`, which must not keep it. A transaction left open is rolled back; other traces in
    /// the session (`SET`, temporary tables, advisory locks) stay, so leave none.
    ///
    /// - Parameter deadline: When to give up waiting for a connection; by default after `acquireTimeout`.
    public nonisolated(nonsending) func withConnection<R>(
        deadline: ContinuousClock.Instant? = nil,
        _ body: nonisolated(nonsending) (PostgresConnection) async throws -> R
    ) async throws -> R {
        try await tellingFailures {
            let loan = try await acquireLiving(deadline: deadline)
            do {
                let result = try await body(loan.connection)
                await release(loan)
                return result
            } catch {
                await release(loan)
                throw error
            }
        }
    }

    private nonisolated(nonsending) func tellingFailures<R>(
        _ body: nonisolated(nonsending) () async throws -> R
    ) async throws -> R {
        do {
            return try await body()
        } catch {
            if let error = error as? PostgresError { onFailure(error) }
            throw error
        }
    }

    /// Runs `body` in a transaction, again if it lost against another one (40001, 40P01) or its connection before
    /// COMMIT.
    ///
    /// `body` may run several times, so it must have no effects but those in the transaction. When the answer to
    /// COMMIT is lost the error says `outcomeUnknown` and nothing is repeated (fault F6): only the caller knows
    /// whether it may be.
    ///
    /// - Parameters:
    ///   - retries: How often to run it again.
    ///   - deadline: When to give up waiting for a connection and starting again; BEGIN and COMMIT keep it too.
    public nonisolated(nonsending) func withTransaction<R>(
        isolation: PostgresIsolation = .readCommitted,
        readOnly: Bool = false,
        retries: Int = 5,
        deadline: ContinuousClock.Instant? = nil,
        _ body: nonisolated(nonsending) (PostgresConnection) async throws -> R
    ) async throws -> R {
        var failures = 0
        while true {
            do {
                return try await withConnection(deadline: deadline) { connection in
                    try await connection.withTransaction(
                        isolation: isolation,
                        readOnly: readOnly,
                        deadline: deadline,
                        body
                    )
                }
            } catch let error as PostgresError where error.isRetryable && failures < retries {
                failures += 1
                let delay = limits.transactionBackoff.delay(failures: failures, random: timing.random())
                let next = timing.now() + delay
                if let deadline, deadline <= next { throw error }
                logger.debug(
                    "Transaction is run again",
                    metadata: [LogKey.attempt: "\(failures + 1)", LogKey.error: "\(error)"]
                )
                try await timing.sleep(next)
            }
        }
    }

    /// Sends a notification through any connection.
    public func notify(
        channel: String,
        payload: String = "",
        deadline: ContinuousClock.Instant? = nil
    ) async throws {
        try await query("SELECT pg_notify(\(channel), \(payload))", deadline: deadline)
    }

    private func acquireLiving(deadline: ContinuousClock.Instant?) async throws -> Loan {
        while true {
            let loan = try await acquire(deadline: deadline)
            if await loan.connection.isAlive() { return loan }
            await release(loan)
        }
    }
}
