import CLibpq

extension PostgresConnection {
    /// Runs one statement and returns its rows.
    ///
    /// Cancelling the task cancels a statement of a transaction on the server. If the statement completes nonetheless, its
    /// rows are returned. A statement outside of a transaction may be committing: the connection is closed, which ends the
    /// statement (`clientCheckInterval`) but no commit, and it is unknown whether it took effect.
    ///
    /// - Parameter deadline: When to give up; by default after the configuration's `defaultTimeout`. The call returns within
    ///   `cancelGrace` after it, even if the server hangs. Within a transaction the statement is cancelled. Outside of one it
    ///   may be committing and runs on, and the connection takes no other statement until it is answered.
    /// - Throws: `PostgresError`, or `CancellationError`.
    @discardableResult
    public func query(_ sql: SQL, deadline: ContinuousClock.Instant? = nil) async throws -> PostgresRows {
        try await interruptible { statement throws in
            try run(sql, statement: statement, deadline: limit(deadline))
        }
    }

    /// Runs one statement and returns how many rows it inserted, updated or deleted.
    @discardableResult
    public func execute(_ sql: SQL, deadline: ContinuousClock.Instant? = nil) async throws -> Int {
        try await query(sql, deadline: deadline).affected
    }

    /// Runs a script of any number of statements, such as an embedded migration, in one round trip.
    ///
    /// Unless the script says BEGIN itself, all of it is one transaction. It has no binds: never build it from outside input.
    public func simple(_ script: String, deadline: ContinuousClock.Instant? = nil) async throws {
        try await interruptible { statement throws in
            let handle = try ready()
            _ = try complete(handle, statement: statement, deadline: limit(deadline), outcome: lostOutcome) {
                handle.send(script: script)
            }
        }
    }

    func limit(_ deadline: ContinuousClock.Instant?) -> ContinuousClock.Instant {
        deadline ?? ContinuousClock.now + configuration.defaultTimeout
    }

    /// What a lost connection would mean for a statement that has been sent.
    var lostOutcome: PostgresError.Outcome {
        switch usage {
        case .transaction, .copy(withinTransaction: true): .rolledBack
        case .statements, .copy(withinTransaction: false): .unknown
        }
    }

    /// Runs `body`, which waits on this thread, such that cancelling the task interrupts it.
    func interruptible<R>(_ body: (_ statement: UInt64) throws -> R) async throws -> R {
        try Task.checkCancellation()
        let statement = interruption.begin()
        return try await withTaskCancellationHandler {
            // A closure that does not mention the actor would not be isolated to it: it would leave the actor's thread,
            // and block a thread of Swift's pool.
            try onOwnThread(statement, body)
        } onCancel: { [interruption] in
            interruption.cancel(statement: statement)
        }
    }

    private func onOwnThread<R>(_ statement: UInt64, _ body: (_ statement: UInt64) throws -> R) throws -> R {
        try body(statement)
    }

    /// Whether the server has not hung up yet, as far as this is known without a round trip.
    func isAlive() -> Bool {
        guard let handle else { return false }
        guard !handle.hasHungUp() else {
            close()
            return false
        }
        return true
    }

    /// The handle, if a statement can be sent now. Checks without a round trip whether the server has hung up.
    func ready() throws -> ConnectionHandle {
        guard let handle else {
            throw PostgresError.connection(
                .init(kind: .lost, message: "the connection is closed", outcome: endedOutcome)
            )
        }
        if case .copy = usage { throw PostgresError.misuse(.copyInProgress) }
        guard condition.current != .unanswered else {
            throw PostgresError.connection(
                .init(kind: .unresponsive, message: "an earlier statement is not answered yet", outcome: endedOutcome))
        }
        if handle.hasHungUp() {
            let message = handle.errorMessage
            let sqlState = handle.fatalNotice
            close()
            throw PostgresError.connection(
                .init(kind: .lost, message: message.oneLine, sqlState: sqlState, outcome: endedOutcome)
            )
        }
        return handle
    }

    /// The outcome when the connection was lost before the statement was sent: at most, the transaction is gone.
    private var endedOutcome: PostgresError.Outcome { lostOutcome == .rolledBack ? .rolledBack : .none }

    func run(_ sql: SQL, statement: UInt64, deadline: ContinuousClock.Instant) throws -> PostgresRows {
        let handle = try ready()
        guard sql.bindCount <= 65_535 else { throw PostgresError.misuse(.tooManyBinds) }
        guard ContinuousClock.now < deadline else { throw PostgresError.deadlineExceeded(.beforeSending) }
        let key = StatementCache.Key(text: sql.text, types: sql.binds.types)
        func unprepared() throws -> PostgresRows {
            try rows(handle, statement, deadline) { handle.send(text: key.text, binds: sql.binds) }
        }
        func prepared(_ name: String) throws -> PostgresRows {
            try rows(handle, statement, deadline) { handle.sendPrepared(name: name, binds: sql.binds) }
        }
        do {
            switch statements.plan(for: key) {
            case .unprepared:
                return try unprepared()
            case .prepare(let name):
                try deallocateDiscarded(handle, statement, deadline)
                _ = try complete(handle, statement: statement, deadline: deadline, outcome: .none) {
                    handle.sendPrepare(name: name, text: key.text, types: key.types)
                }
                statements.didPrepare(key, name: name)
                return try prepared(name)
            case .prepared(let name):
                return try prepared(name)
            }
        } catch PostgresError.server(let error) where error.isStalePlan {
            statements.forget(key, stillThere: error.sqlState != .invalidStatementName)
            // Within a transaction the error has undone it; the transaction gets a new plan when it runs again.
            guard handle.transactionStatus == PQTRANS_IDLE else { throw PostgresError.server(error) }
            return try unprepared()
        }
    }

    private func rows(
        _ handle: ConnectionHandle,
        _ statement: UInt64,
        _ deadline: ContinuousClock.Instant,
        send: () -> Bool
    ) throws -> PostgresRows {
        let results = try complete(
            handle,
            statement: statement,
            deadline: deadline,
            outcome: lostOutcome,
            send: send
        )
        guard let last = results.last else {
            throw broken(handle, kind: .lost, message: handle.errorMessage, outcome: lostOutcome)
        }
        return PostgresRows(last)
    }

    /// Frees prepared statements that were evicted. Only before preparing, so that it costs nothing in the usual case.
    private func deallocateDiscarded(
        _ handle: ConnectionHandle,
        _ statement: UInt64,
        _ deadline: ContinuousClock.Instant
    ) throws {
        guard !statements.discarded.isEmpty, handle.transactionStatus != PQTRANS_INERROR else { return }
        let script = statements.takeDiscarded().map { "DEALLOCATE \($0);" }.joined()
        _ = try complete(handle, statement: statement, deadline: deadline, outcome: .none) {
            handle.send(script: script)
        }
    }
}
