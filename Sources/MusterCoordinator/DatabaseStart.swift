public import Logging
import MusterPostgres
import MusterStore

/// Waits for a database that is started at the same time, as after a reboot.
public enum DatabaseStart {
    /// The pause between two tries.
    private static let pause: Duration = .seconds(1)

    /// Whether a connection string can be read.
    public static func canRead(_ database: String) -> Bool { PostgresConfiguration(database).isReadable }

    /// Repeats `body` until no connection to the database is refused or lost in it. The reason for a wait is logged whenever
    /// it changes.
    ///
    /// - Throws: what `body` throws where waiting does not help, as for a wrong password; `CancellationError`.
    public static func patiently<Value>(logger: Logger, _ body: () async throws -> Value) async throws -> Value {
        var told = ""
        while true {
            do {
                return try await body()
            } catch let error as PostgresError where error.isOutage {
                let reason = "\(error)"
                if reason != told { logger.warning("database.waiting", metadata: ["reason": "\(reason)"]) }
                told = reason
                try await Task.sleep(for: pause)
            }
        }
    }
}
