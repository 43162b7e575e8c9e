public import Logging

extension PostgresConnection {
    /// Whether connections lead to sessions of their own. A pooler between may give each transaction whichever session is free:
    /// prepared statements, locks of a session and LISTEN are then those of other clients.
    ///
    /// The processes of two connections are compared some times: two clients that are connected at once share none.
    ///
    /// - Throws: `PostgresError`, or `CancellationError`.
    public static func haveOwnSessions(
        _ configuration: PostgresConfiguration, logger: Logger = Logger(label: "muster.postgres")
    ) async throws -> Bool {
        var configuration = configuration
        configuration.preparedStatementLimit = 0
        let first = try await open(configuration, logger: logger)
        let second: PostgresConnection
        do {
            second = try await open(configuration, logger: logger)
        } catch {
            await first.close()
            throw error
        }
        var ones: Set<Int32> = []
        var others: Set<Int32> = []
        var failure: (any Error)?
        do {
            for _ in 0..<8 {
                // Twice in a row: a pooler may hand out its sessions in turns.
                for _ in 0..<2 {
                    ones.insert(try await first.query("SELECT pg_backend_pid() AS pid")[0].decode("pid"))
                }
                for _ in 0..<2 {
                    others.insert(try await second.query("SELECT pg_backend_pid() AS pid")[0].decode("pid"))
                }
            }
        } catch {
            failure = error
        }
        await first.close()
        await second.close()
        if let failure { throw failure }
        return ones.count == 1 && others.count == 1 && ones != others
    }
}
