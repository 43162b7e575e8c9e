import CLibpq

/// The isolation level of a transaction.
public enum PostgresIsolation: Sendable, Hashable {
    /// Every statement sees what was committed before it began.
    case readCommitted
    /// All statements see what was committed before the first; conflicting writes fail with 40001.
    case repeatableRead
    /// As if transactions ran one after the other; conflicts fail with 40001.
    case serializable

    var begin: SQL {
        switch self {
        case .readCommitted: "BEGIN ISOLATION LEVEL READ COMMITTED"
        case .repeatableRead: "BEGIN ISOLATION LEVEL REPEATABLE READ"
        case .serializable: "BEGIN ISOLATION LEVEL SERIALIZABLE"
        }
    }
}

extension PostgresConnection {
    /// Runs `body` within a transaction, which is committed when it returns and rolled back when it throws.
    ///
    /// COMMIT is not interrupted by cancellation: once it is sent, its answer is waited for until the deadline. When
    /// that answer is lost, the error says `outcomeUnknown`; all other errors mean that nothing was committed.
    ///
    /// - Parameter deadline: When BEGIN and COMMIT give up; statements in `body` have deadlines of their own.
    public nonisolated(nonsending) func withTransaction<R>(
        isolation: PostgresIsolation = .readCommitted,
        readOnly: Bool = false,
        deadline: ContinuousClock.Instant? = nil,
        _ body: nonisolated(nonsending) (PostgresConnection) async throws -> R
    ) async throws -> R {
        try await begin(isolation, readOnly: readOnly, deadline: deadline)
        let result: R
        do {
            result = try await body(self)
            try Task.checkCancellation()
        } catch {
            await rollBack()
            throw error
        }
        try await commit(deadline: deadline)
        return result
    }

    private func begin(
        _ isolation: PostgresIsolation,
        readOnly: Bool,
        deadline: ContinuousClock.Instant?
    ) async throws {
        guard try ready().transactionStatus == PQTRANS_IDLE else { throw PostgresError.misuse(.nestedTransaction) }
        var begin = isolation.begin
        if readOnly {
            begin += " READ ONLY"
        }
        usage = .transaction
        do {
            try await query(begin, deadline: deadline)
        } catch {
            rollBack()
            throw error
        }
    }

    private func commit(deadline: ContinuousClock.Instant?) throws {
        let handle = try ready()
        usage = .statements
        let results = try complete(handle, statement: nil, deadline: limit(deadline), outcome: .unknown) {
            handle.send(script: "COMMIT")
        }
        // A failed transaction is not an error to COMMIT: it answers ROLLBACK.
        guard results.last?.commandTag == "COMMIT" else { throw PostgresError.rolledBack }
    }

    /// Ends whatever transaction is open, whether or not the task is cancelled. If that fails, the connection is
    /// closed, which ends the transaction as well.
    func rollBack() {
        usage = .statements
        guard let handle, handle.transactionStatus != PQTRANS_IDLE else { return }
        let deadline = ContinuousClock.now + configuration.defaultTimeout
        do {
            _ = try complete(handle, statement: nil, deadline: deadline, outcome: .rolledBack) {
                handle.send(script: "ROLLBACK")
            }
        } catch {
            close()
        }
    }
}
