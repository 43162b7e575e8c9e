public import MusterPostgres

/// Brings a database's schema up to this build: drops the functions of the last build, applies the tables that are missing,
/// and installs all functions, in one transaction (`adr/0016`).
public struct Migrator: Sendable {
    private let configuration: PostgresConfiguration
    private let patience: Duration

    /// A migrator for a database.
    ///
    /// - Parameter patience: how long it waits for coordinators to leave the database.
    public init(_ configuration: PostgresConfiguration, patience: Duration = .seconds(10)) {
        var configuration = configuration
        configuration.applicationName = "muster-migrate"
        // A change of a large table may take long.
        configuration.defaultTimeout = .seconds(3_600)
        self.configuration = configuration
        self.patience = patience
    }

    /// Names this build of the schema: databases of one build have the same tables and functions.
    public static var build: String { Schema.build }

    /// What keeps this build from using the database; `nil` when nothing does.
    public func difference() async throws -> SchemaRefusal? {
        try await withConnection { try await Self.difference($0) }
    }

    /// Makes the database one of this build. Returns the names of the tables that were applied, and `functions` where these
    /// were installed; nothing when the database is of this build already. Safe to run from many processes at once.
    ///
    /// - Throws: `SchemaRefusal` when no migration leads from the database to this build, or coordinators use it.
    public func migrate() async throws -> [String] {
        try await withConnection { connection in
            guard try await lock(connection) else { return [] }
            // Another migrator may have been first.
            switch try await Self.difference(connection) {
            case nil: return []
            case .empty, .behind, .otherBuild: break
            case .some(let refusal): throw refusal
            }
            return try await connection.withTransaction { transaction in
                try await transaction.simple(
                    """
                    CREATE TABLE IF NOT EXISTS muster_tables (
                        name       text PRIMARY KEY,                -- of the script
                        digest     text NOT NULL,                   -- of its text
                        applied_at timestamptz NOT NULL DEFAULT statement_timestamp());
                    CREATE TABLE IF NOT EXISTS muster_build (
                        is_only      boolean PRIMARY KEY DEFAULT true CONSTRAINT muster_build_single CHECK (is_only),
                        build        text NOT NULL,                 -- Schema.build
                        verbs        text[] NOT NULL,               -- the functions, with their arguments' types
                        installed_at timestamptz NOT NULL DEFAULT statement_timestamp())
                    """)
                return try await Self.apply(to: transaction)
            }
        }
    }

    /// Checks that no table has lost rows that other tables refer to (`check_rows`).
    public func checkRows() async throws {
        try await withConnection { _ = try await $0.query("SELECT check_rows()") }
    }

    private static func apply(to transaction: PostgresConnection) async throws -> [String] {
        for row in try await transaction.query("SELECT unnest(verbs) AS verb FROM muster_build") {
            try await transaction.simple("DROP FUNCTION IF EXISTS \(try row.decode("verb", as: String.self))")
        }
        let applied = try await appliedTables(transaction)
        var done: [String] = []
        for table in Schema.tables where applied[table.name] == nil {
            try await transaction.simple(table.text)
            _ = try await transaction.query(
                "INSERT INTO muster_tables (name, digest) VALUES (\(table.name), \(table.digest))")
            done.append(table.name)
        }
        // Functions call each other: their bodies are not checked before all are there. A test checks every one.
        try await transaction.simple("SET LOCAL check_function_bodies = off")
        for script in Schema.verbs + Schema.plans { try await transaction.simple(script.text) }
        // Its verbs are the functions that this transaction has made.
        _ = try await transaction.query(
            """
            INSERT INTO muster_build (build, verbs)
            SELECT \(Schema.build), array_agg(p.oid::regprocedure::text) FROM pg_proc p
            WHERE p.xmin = pg_current_xact_id()::xid AND p.pronamespace = current_schema()::regnamespace
            ON CONFLICT (is_only) DO UPDATE
            SET build = excluded.build, verbs = excluded.verbs, installed_at = statement_timestamp()
            """)
        return done + ["functions"]
    }

    /// Compares the database with this build.
    static func difference(_ connection: PostgresConnection) async throws -> SchemaRefusal? {
        let exists: Bool = try await connection.query("SELECT to_regclass('muster_build') IS NOT NULL AS found")[0]
            .decode("found")
        guard exists else { return .empty }
        let build = try await connection.query("SELECT build FROM muster_build").first?.decode("build", as: String.self)
        if build == Schema.build { return nil }
        let applied = try await appliedTables(connection)
        let unknown = Set(applied.keys).subtracting(Schema.tables.map(\.name))
        let altered = Schema.tables.filter { table in applied[table.name].map { $0 != table.digest } ?? false }
        let missing = Schema.tables.filter { applied[$0.name] == nil }
        if !unknown.isEmpty { return .ahead(tables: unknown.sorted()) }
        if !altered.isEmpty { return .altered(tables: altered.map(\.name)) }
        return missing.isEmpty ? .otherBuild(build ?? "") : .behind(tables: missing.map(\.name))
    }

    private static func appliedTables(_ connection: PostgresConnection) async throws -> [String: String] {
        let rows = try await connection.query("SELECT name, digest FROM muster_tables")
        return Dictionary(
            uniqueKeysWithValues: try rows.map { row in
                (try row.decode("name", as: String.self), try row.decode("digest", as: String.self))
            })
    }

    /// Takes the schema's lock exclusively, until the connection ends. Returns false if that is not needed: the database
    /// is of this build, perhaps since another migrator was first, whose coordinator holds the lock by now.
    ///
    /// It polls instead of waiting in the lock's queue, where running coordinators would have to wait behind it.
    private func lock(_ connection: PostgresConnection) async throws -> Bool {
        let end = ContinuousClock.now + patience
        while try await Self.difference(connection) != nil {
            let tried = try await connection.query("SELECT pg_try_advisory_lock(\(SchemaFence.key)) AS held")
            if try tried[0].decode("held") { return true }
            guard ContinuousClock.now < end else {
                throw SchemaRefusal.inUse(by: try await Self.holders(connection))
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        return false
    }

    private static func holders(_ connection: PostgresConnection) async throws -> [String] {
        try await connection.query(
            """
            SELECT format('%s at %s', a.application_name, coalesce(host(a.client_addr), 'this machine'))
                || CASE WHEN count(*) > 1 THEN format(' (%s connections)', count(*)) ELSE '' END AS holder
            FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
            WHERE l.locktype = 'advisory' AND (l.classid, l.objid) = (\(SchemaFence.key)) AND l.granted
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            GROUP BY a.application_name, a.client_addr ORDER BY 1
            """
        ).map { try $0.decode("holder") }
    }

    private func withConnection<Answer: Sendable>(
        _ body: (PostgresConnection) async throws -> Answer
    ) async throws -> Answer {
        let connection = try await PostgresConnection.open(configuration)
        do {
            let answer = try await body(connection)
            await connection.close()
            return answer
        } catch {
            await connection.close()
            throw error
        }
    }
}
