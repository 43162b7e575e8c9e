import CLibpq
import Glibc
import MusterSystem

extension PostgresConnection {
    /// Connects to one server. A connection that could not be made is of no further use.
    func connect(to target: ConnectionTarget, deadline: ContinuousClock.Instant) async throws {
        try Task.checkCancellation()
        let attempt = interruption.begin()
        try await withTaskCancellationHandler {
            do throws(ConnectFailure) {
                try connect(to: target, attempt: attempt, deadline: deadline)
            } catch {
                switch error {
                case .cancelled: throw CancellationError()
                case .refused(let reason): throw reason
                }
            }
        } onCancel: { [interruption] in
            interruption.cancel(statement: attempt)
        }
    }

    private enum ConnectFailure: Error {
        case cancelled
        case refused(PostgresError)
    }

    private func connect(
        to target: ConnectionTarget,
        attempt: UInt64,
        deadline: ContinuousClock.Instant
    ) throws(ConnectFailure) {
        func refused(_ message: String, sqlState: SQLState? = nil) -> ConnectFailure {
            .refused(
                .connection(.init(kind: .unreachable, message: target.redacting(message), sqlState: sqlState))
            )
        }
        guard let handle = ConnectionHandle(target, logger: logger) else { throw refused("out of memory") }
        guard !handle.isBad else { throw refused(handle.errorMessage) }
        var events = POLLOUT
        connecting: while true {
            switch Polling.wait(for: handle.socket, events: events, flag: interruption.flag, until: deadline) {
            case .ready: break
            case .timedOut: throw refused("no answer in time")
            case .flagged:
                interruption.flag.take()
                if interruption.isCancelled(statement: attempt) { throw .cancelled }
                continue connecting
            }
            switch handle.pollConnecting() {
            case PGRES_POLLING_READING: events = POLLIN
            case PGRES_POLLING_WRITING: events = POLLOUT
            case PGRES_POLLING_OK: break connecting
            default: throw refused(handle.errorMessage, sqlState: handle.connectSQLState)
            }
        }
        guard handle.setNonBlocking() else { throw refused(handle.errorMessage) }
        self.handle = handle
        condition.set(.idle)
    }
}
