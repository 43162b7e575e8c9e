import CLibpq
import Glibc
import MusterSystem

extension PostgresConnection {
    /// Sends a notification to all listeners of the channel, when the transaction commits.
    ///
    /// - Parameter payload: At most 7,999 bytes; the server refuses more.
    public func notify(
        channel: String,
        payload: String = "",
        deadline: ContinuousClock.Instant? = nil
    ) async throws {
        try await query("SELECT pg_notify(\(channel), \(payload))", deadline: deadline)
    }

    /// Waits for a notification, and returns all that have arrived; none if `deadline` passes first.
    ///
    /// It blocks the connection's thread, so call it only on a listener's own connection.
    func notifications(until deadline: ContinuousClock.Instant) async throws -> [PostgresNotification] {
        try await interruptible { statement throws in
            let handle = try ready()
            while true {
                var found: [PostgresNotification] = []
                while let notification = handle.nextNotification() {
                    found.append(notification)
                }
                if !found.isEmpty { return found }
                switch Polling.wait(for: handle.socket, events: POLLIN, flag: interruption.flag, until: deadline) {
                case .ready:
                    guard handle.consumeInput(), !handle.isBad else {
                        throw broken(handle, kind: .lost, message: handle.errorMessage, outcome: .none)
                    }
                case .flagged:
                    interruption.flag.take()
                    if interruption.isCancelled(statement: statement) { throw CancellationError() }
                case .timedOut:
                    return []
                }
            }
        }
    }
}
