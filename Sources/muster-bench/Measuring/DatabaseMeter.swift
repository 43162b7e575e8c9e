import MusterPostgres

/// Measures what a database has written.
struct DatabaseMeter: Sendable {
    /// What was written so far, or between two readings.
    struct Reading: Sendable, Hashable {
        /// Bytes of the write-ahead log of the whole server.
        var walBytes: Double
        /// Transactions that wrote something: each of them takes one id.
        var commits: Double

        /// Both numbers per unit of work, under their names in a report.
        func facts(per count: Int, unit: String) -> [String: Double] {
            guard count > 0 else { return [:] }
            return [
                "WAL KiB/\(unit)": walBytes / 1_024 / Double(count),
                "commits/\(unit)": commits / Double(count),
            ]
        }
    }

    private let connection: PostgresConnection
    private let configuration: PostgresConfiguration

    /// A meter with a connection of its own.
    init(conninfo: String) async throws {
        var configuration = PostgresConfiguration(conninfo)
        configuration.applicationName = "muster-bench"
        self.configuration = configuration
        connection = try await PostgresConnection.open(configuration)
    }

    /// Runs `body` while a transaction with a snapshot of the present is open, so that rows that become outdated can't be removed, and
    /// while no table is vacuumed.
    func withOldSnapshot<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        try await setAutovacuum(false)
        let reader = try await PostgresConnection.open(configuration)
        do {
            _ = try await reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
            _ = try await reader.query("SELECT count(*) FROM groups")
            let value = try await body()
            await reader.close()
            try await setAutovacuum(true)
            return value
        } catch {
            await reader.close()
            try? await setAutovacuum(true)
            throw error
        }
    }

    private func setAutovacuum(_ isOn: Bool) async throws {
        _ = try await connection.query(
            isOn
                ? """
                DO $$ DECLARE t regclass; BEGIN
                    FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
                        EXECUTE format('ALTER TABLE %s RESET (autovacuum_enabled)', t);
                    END LOOP;
                END $$
                """
                : """
                DO $$ DECLARE t regclass; BEGIN
                    FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
                        EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', t);
                    END LOOP;
                END $$
                """)
    }

    /// Bytes of the database's tables and indexes together.
    func size() async throws -> Double {
        let rows = try await connection.query("SELECT pg_database_size(current_database())::float8 AS size")
        guard let row = rows.first else { throw BenchFailure("the database has no size") }
        return try row.decode("size")
    }

    /// What was written so far. It counts transaction ids and does not use `pg_stat_database`, which learns of commits up to ten seconds late.
    func read() async throws -> Reading {
        let rows = try await connection.query(
            """
            SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS wal,
                pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS transactions
            """)
        guard let row = rows.first else { throw BenchFailure("the database says nothing of its log") }
        return Reading(walBytes: try row.decode("wal"), commits: try row.decode("transactions"))
    }

    /// What was written since an earlier reading.
    func since(_ before: Reading) async throws -> Reading {
        let now = try await read()
        return Reading(walBytes: now.walBytes - before.walBytes, commits: now.commits - before.commits)
    }

    /// Ends the connection.
    func close() async { await connection.close() }
}

/// A reason why a measurement is impossible or void.
struct BenchFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
