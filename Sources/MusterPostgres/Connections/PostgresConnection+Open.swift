import CLibpq
import Glibc
import MusterSystem

extension PostgresConnection {
    func connect(to targets: [ConnectionTarget], deadline: ContinuousClock.Instant?) async throws {
        try Task.checkCancellation()
        let attempt = interruption.begin()
        try await withTaskCancellationHandler {
            var failure = PostgresError.connection(.init(kind: .badConfiguration, message: "no host"))
            for target in targets {
                let own = ContinuousClock.now + configuration.connectTimeout
                do throws(ConnectFailure) {
                    try connect(to: target, attempt: attempt, deadline: min(own, deadline ?? own))
                    return
                } catch {
                    switch error {
                    case .cancelled: throw CancellationError()
                    case .refused(let reason): failure = reason
                    }
                }
            }
            condition.set(.broken)
            throw failure
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
