public import Logging
import MusterPostgres
import MusterStore

/// Waits for a database that is started at the same time, as after a reboot.
public enum DatabaseStart {
    /// The pause between two tries.
    private static let pause: Duration = .seconds(1)

    /// Whether a connection string can be read.
    public static func canRead(_ database: String) -> Bool { PostgresConfiguration(database).isReadable }

    /// Returns when the database accepts connections. The reason for the wait is logged whenever it changes.
    ///
    /// - Throws: `PostgresError` where waiting does not help, as for a wrong password; `CancellationError`.
    public static func wait(for database: String, logger: Logger) async throws {
        var told = ""
        while true {
            do {
                _ = try await Migrator(PostgresConfiguration(database)).difference()
                return
            } catch let error as PostgresError where error.isOutage {
                let reason = "\(error)"
                if reason != told { logger.warning("database.waiting", metadata: ["reason": "\(reason)"]) }
                told = reason
                try await Task.sleep(for: pause)
            }
        }
    }
}
