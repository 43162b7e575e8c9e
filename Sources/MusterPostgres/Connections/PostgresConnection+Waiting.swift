import CLibpq
import Glibc
import MusterSystem

extension PostgresConnection {
    /// Why a running statement is being cancelled.
    enum Interrupt: Equatable {
        case taskCancelled
        case deadline
    }

    private enum Phase: Equatable {
        /// Waiting for results. Exits to `cancelling` by a deadline or the task's cancellation. Both end the wait for a
        /// statement that may be committing: a COMMIT that waits for a synchronous standby and is cancelled counts as done,
        /// although a failover may lose it.
        case running
        /// The server was asked to stop. Exits when it answers, or when the grace is over: then the connection is
        /// closed.
        case cancelling(Interrupt, until: ContinuousClock.Instant)

        var interrupt: Interrupt? {
            switch self {
            case .running: nil
            case .cancelling(let interrupt, _): interrupt
            }
        }
    }

    private enum Ending {
        /// All results are here.
        case complete
        /// The server waits for the rows of a COPY.
        case copyIn
        /// The server would send the rows of a COPY, which this client does not read.
        case copyOut
        /// No answer came in time to a cancel request.
        case unresponsive
        /// No answer came in time, and no cancel request was sent: the statement may be committing.
        case unanswered
        /// The task was cancelled, and no cancel request was sent: the statement may be committing.
        case abandoned
    }

    /// Sends something and waits until the server has answered all of it, or the deadline, or cancellation.
    ///
    /// - Parameter outcome: The outcome of the statement if the connection is lost meanwhile.
    func complete(
        _ handle: ConnectionHandle,
        statement: UInt64?,
        deadline: ContinuousClock.Instant,
        outcome: PostgresError.Outcome,
        acceptsCopy: Bool = false,
        send: () -> Bool
    ) throws -> [ResultHandle] {
        // It blocks, so it must run on the connection's own thread.
        assertIsolated()
        guard send() else {
            // libpq refuses without sending when it is out of memory, or finds that the connection is gone.
            let message = handle.errorMessage
            if handle.isBad {
                throw broken(
                    handle,
                    kind: .lost,
                    message: message,
                    outcome: outcome == .rolledBack ? .rolledBack : .none
                )
            }
            throw PostgresError.connection(.init(kind: .outOfResources, message: message.oneLine))
        }
        var results: [ResultHandle] = []
        var phase = Phase.running
        let mayCommit = outcome == .unknown
        // The server may end the statement itself at the deadline (`statementTimeout`).
        let ending = wait(
            handle, statement: statement, deadline: mayCommit ? deadline + configuration.cancelGrace : deadline,
            mayCommit: mayCommit, results: &results, phase: &phase)
        defer { noteCondition(handle) }
        switch ending {
        case .complete:
            try check(results, handle: handle, interrupt: phase.interrupt, outcome: outcome)
            guard !mayCommit || !handle.takeUnreplicated() else {
                throw PostgresError.connection(
                    .init(
                        kind: .unresponsive, message: "the wait for a standby to confirm the commit was cancelled",
                        outcome: .unknown))
            }
        case .copyIn where acceptsCopy:
            break
        case .copyIn, .copyOut:
            // Leaving a COPY needs another exchange, which is not worth having for a mistake in a statement.
            _ = broken(handle, kind: .lost, message: "", outcome: outcome)
            throw PostgresError.misuse(.copyAsQuery)
        case .unresponsive:
            let error = broken(handle, kind: .unresponsive, message: "no answer to a cancel request", outcome: outcome)
            if phase.interrupt == .taskCancelled { throw CancellationError() }
            throw error
        case .unanswered:
            throw PostgresError.connection(
                .init(
                    kind: .unresponsive, message: "no answer in time; a commit may be waiting for a standby",
                    outcome: .unknown))
        case .abandoned:
            // The server ends a statement whose client has gone, but no commit.
            close()
            throw CancellationError()
        }
        return results
    }

    /// Waits for the answer to a statement whose caller has given up. The connection is idle again once it is there.
    ///
    /// - Returns: whether the server has answered, or the connection is gone.
    func settle(until deadline: ContinuousClock.Instant) -> Bool {
        guard let handle, condition.current == .unanswered else { return true }
        var results: [ResultHandle] = []
        var phase = Phase.running
        let ending = wait(
            handle, statement: nil, deadline: deadline, mayCommit: true, results: &results, phase: &phase)
        switch ending {
        case .complete: _ = handle.takeUnreplicated()
        case .unanswered: return false
        case .copyIn, .copyOut, .unresponsive, .abandoned: close()
        }
        noteCondition(handle)
        return true
    }

    private func wait(
        _ handle: ConnectionHandle,
        statement: UInt64?,
        deadline: ContinuousClock.Instant,
        mayCommit: Bool,
        results: inout [ResultHandle],
        phase: inout Phase
    ) -> Ending {
        var finished = false
        while true {
            let events = handle.flush() == .pending ? POLLIN | POLLOUT : POLLIN
            while !finished, !handle.isBusy {
                guard let result = handle.nextResult() else {
                    finished = true
                    break
                }
                results.append(result)
                switch result.status {
                case PGRES_COPY_IN: return .copyIn
                case PGRES_COPY_OUT, PGRES_COPY_BOTH: return .copyOut
                default: break
                }
            }
            // A cancel request that is still on its way would hit the next statement, so it is waited for.
            if finished, !interruption.requestIsUnderWay { return .complete }

            let until: ContinuousClock.Instant
            switch phase {
            case .running: until = deadline
            case .cancelling(_, let grace): until = grace
            }
            // poll(2) takes no notice of a negative descriptor.
            let descriptor = finished ? -1 : handle.socket
            switch Polling.wait(for: descriptor, events: events, flag: interruption.flag, until: until) {
            case .ready:
                if !handle.consumeInput() {
                    // The socket is closed, so nothing can block any more; libpq still holds the last results.
                    while results.count < 1_000, let result = handle.nextResult() {
                        results.append(result)
                    }
                    finished = true
                }
            case .flagged:
                interruption.flag.take()
                if phase == .running, let statement, interruption.isCancelled(statement: statement) {
                    if mayCommit { return .abandoned }
                    phase = cancel(handle, because: .taskCancelled)
                }
            case .timedOut:
                guard phase == .running else {
                    guard finished else { return .unresponsive }
                    // The outcome of the statement is known, but the request may still hit a next one, so the connection is closed.
                    close()
                    return .complete
                }
                if mayCommit { return .unanswered }
                phase = cancel(handle, because: .deadline)
            }
        }
    }

    private func cancel(_ handle: ConnectionHandle, because interrupt: Interrupt) -> Phase {
        if let request = handle.makeCancelRequest() {
            // Without a thread for it no request goes out, and the connection is closed when the grace is over.
            try? interruption.send(request)
        }
        return .cancelling(interrupt, until: ContinuousClock.now + configuration.cancelGrace)
    }

    /// Throws the first error among the results.
    private func check(
        _ results: [ResultHandle],
        handle: ConnectionHandle,
        interrupt: Interrupt?,
        outcome: PostgresError.Outcome
    ) throws {
        for result in results {
            switch result.status {
            case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE:
                break
            default:
                continue
            }
            let severity = result.diagnostic(DiagnosticField.severity)
            guard let severity, severity == "ERROR" else {
                // FATAL or PANIC end the session; without a severity the message is libpq's own.
                let sqlState = result.diagnostic(DiagnosticField.sqlState).map { SQLState(code: $0) }
                let message = result.diagnostic(DiagnosticField.message) ?? result.errorMessage
                throw broken(handle, kind: .lost, message: message, sqlState: sqlState, outcome: outcome)
            }
            let error = PostgresError.Server(result, outcome: .none)
            if error.sqlState == .readOnly {
                condition.set(.retiring)
            }
            if error.sqlState == .queryCanceled, let interrupt {
                switch interrupt {
                case .taskCancelled: throw CancellationError()
                case .deadline: throw PostgresError.deadlineExceeded(.running)
                }
            }
            throw PostgresError.server(error)
        }
        if handle.isBad, results.isEmpty {
            throw broken(handle, kind: .lost, message: handle.errorMessage, outcome: outcome)
        }
    }

    /// Closes the connection for good and says why.
    func broken(
        _ handle: ConnectionHandle,
        kind: PostgresError.Connection.Kind,
        message: String,
        sqlState: SQLState? = nil,
        outcome: PostgresError.Outcome
    ) -> PostgresError {
        close()
        return .connection(.init(kind: kind, message: message.oneLine, sqlState: sqlState, outcome: outcome))
    }

    private func noteCondition(_ handle: ConnectionHandle) {
        guard self.handle != nil, !handle.isBad else {
            close()
            return
        }
        switch handle.transactionStatus {
        case PQTRANS_IDLE: condition.set(.idle)
        case PQTRANS_ACTIVE: condition.set(.unanswered)
        default: condition.set(.inTransaction)
        }
    }
}
