import Logging
public import MusterPostgres

/// Brings a database's schema up to date. Migrations are embedded, applied in the order of their names under an advisory
/// lock, each in a transaction of its own, and never edited once shipped.
public struct Migrator: Sendable {
    /// One step of the schema.
    struct Migration: Sendable {
        let name: String
        let script: String

        init(_ name: String, _ bytes: [UInt8]) {
            self.name = name
            script = String(decoding: bytes, as: UTF8.self)
        }
    }

    static let all: [Migration] = [
        Migration("0001_tables", PackageResources._001_tables_sql),
        Migration("0002_completion", PackageResources._002_completion_sql),
        Migration("0003_claim", PackageResources._003_claim_sql),
        Migration("0004_returns", PackageResources._004_returns_sql),
        Migration("0005_reports", PackageResources._005_reports_sql),
        Migration("0006_verbs", PackageResources._006_verbs_sql),
        Migration("0007_sources", PackageResources._007_sources_sql),
        Migration("0008_grants", PackageResources._008_grants_sql),
        Migration("0009_failures", PackageResources._009_failures_sql),
        Migration("0010_mirrors", PackageResources._010_mirrors_sql),
        Migration("0011_answers", PackageResources._011_answers_sql),
        Migration("0012_returns", PackageResources._012_returns_sql),
        Migration("0013_additions", PackageResources._013_additions_sql),
        Migration("0014_questions", PackageResources._014_questions_sql),
        Migration("0015_origins", PackageResources._015_origins_sql),
        Migration("0016_sweeps", PackageResources._016_sweeps_sql),
        Migration("0017_limits", PackageResources._017_limits_sql),
        Migration("0018_verbs", PackageResources._018_verbs_sql),
        Migration("0019_chains", PackageResources._019_chains_sql),
        Migration("0020_subscriptions", PackageResources._020_subscriptions_sql),
        Migration("0021_budgets", PackageResources._021_budgets_sql),
        Migration("0022_charges", PackageResources._022_charges_sql),
        Migration("0023_endings", PackageResources._023_endings_sql),
        Migration("0024_sharing", PackageResources._024_sharing_sql),
        Migration("0025_reopening", PackageResources._025_reopening_sql),
        Migration("0026_stragglers", PackageResources._026_stragglers_sql),
        Migration("0027_reuse", PackageResources._027_reuse_sql),
        Migration("0028_slices", PackageResources._028_slices_sql),
    ]

    /// What of the schema is missing, or too new.
    public enum State: Sendable, Hashable {
        /// Every migration that this program knows is there, and no other.
        case current
        /// These are missing.
        case behind([String])
        /// The database has migrations that this program doesn't know: a newer Muster is about (fault F18).
        case ahead([String])
    }

    private let configuration: PostgresConfiguration

    /// A migrator for a database.
    public init(_ configuration: PostgresConfiguration) {
        var configuration = configuration
        // Another migrator may hold the lock for as long as its migrations take.
        configuration.defaultTimeout = .seconds(600)
        self.configuration = configuration
    }

    /// Compares the schema with this program.
    public func state() async throws -> State {
        try await withConnection { connection in
            let exists: Bool = try await connection.query(
                "SELECT to_regclass('muster_migrations') IS NOT NULL AS found")[0]
                .decode("found")
            let applied = exists ? try await Self.applied(connection) : []
            let missing = Self.all.map(\.name).filter { !applied.contains($0) }
            let unknown = applied.subtracting(Self.all.map(\.name))
            if !missing.isEmpty { return .behind(missing) }
            return unknown.isEmpty ? .current : .ahead(unknown.sorted())
        }
    }

    /// Applies what is missing and returns its names. Safe to run from many processes at once.
    public func migrate() async throws -> [String] {
        try await withConnection { connection in
            // Held by the session until it ends, whatever happens in between.
            _ = try await connection.query("SELECT pg_advisory_lock(7300, 1)::text")
            try await connection.simple(
                """
                CREATE TABLE IF NOT EXISTS muster_migrations (
                    name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT statement_timestamp())
                """)
            let applied = try await Self.applied(connection)
            var done: [String] = []
            for migration in Self.all where !applied.contains(migration.name) {
                try await connection.withTransaction { transaction in
                    try await transaction.simple(migration.script)
                    _ = try await transaction.query("INSERT INTO muster_migrations (name) VALUES (\(migration.name))")
                }
                done.append(migration.name)
            }
            return done
        }
    }

    private static func applied(_ connection: PostgresConnection) async throws -> Set<String> {
        Set(try await connection.query("SELECT name FROM muster_migrations").map { try $0.decode("name") })
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
