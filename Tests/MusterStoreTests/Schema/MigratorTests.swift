import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// How a database gets this build's schema, and how other builds' databases are recognized (`adr/0016`).
@Suite struct MigratorTests {
    @Test func secondMigrationDoesNothing() async throws {
        try await withEmptyDatabase { configuration in
            let migrator = Migrator(configuration)
            let before = try await migrator.difference()
            let applied = try await migrator.migrate()
            #expect(applied.last == "functions")
            #expect(before == .empty)
            #expect(Array(applied.dropLast()).count >= 3)
            #expect(try await migrator.difference() == nil)
            #expect(try await migrator.migrate().isEmpty)
        }
    }

    @Test func concurrentMigratorsMigrateOnce() async throws {
        try await withEmptyDatabase { configuration in
            let applied = try await withThrowingTaskGroup(of: [String].self) { group in
                for _ in 0..<6 { group.addTask { try await Migrator(configuration).migrate() } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(Set(applied).count == applied.count)
            #expect(try await Migrator(configuration).difference() == nil)
        }
    }

    @Test func databasesOfOtherBuildsAreRecognized() async throws {
        try await withEmptyDatabase { configuration in
            let migrator = Migrator(configuration)
            let tables = Array(try await migrator.migrate().dropLast())
            let last = try #require(tables.last)
            try await withConnection(configuration) { connection in
                try await connection.execute("UPDATE muster_build SET build = 'another'")
                #expect(try await migrator.difference() == .otherBuild("another"))
                try await connection.execute("UPDATE muster_tables SET digest = 'another' WHERE name = \(last)")
                #expect(try await migrator.difference() == .altered(tables: [last]))
                await #expect(throws: SchemaRefusal.altered(tables: [last])) { try await migrator.migrate() }
                try await connection.execute("DELETE FROM muster_tables WHERE name = \(last)")
                #expect(try await migrator.difference() == .behind(tables: [last]))
                try await connection.execute("INSERT INTO muster_tables (name, digest) VALUES ('9999_future', '')")
                #expect(try await migrator.difference() == .ahead(tables: ["9999_future"]))
                await #expect(throws: SchemaRefusal.ahead(tables: ["9999_future"])) { try await migrator.migrate() }
            }
        }
    }

    /// Another build may have had other functions, or the same ones with other arguments: all of them are dropped. An operator's
    /// own functions in the schema stay.
    @Test func functionsOfAnotherBuildAreDroppedAndOthersStay() async throws {
        try await withEmptyDatabase { configuration in
            _ = try await Migrator(configuration).migrate()
            try await withConnection(configuration) { connection in
                let whole = try await functions(connection)
                try await connection.simple(
                    """
                    CREATE FUNCTION an_operators_own() RETURNS integer LANGUAGE sql AS 'SELECT 1';
                    CREATE FUNCTION gone() RETURNS integer LANGUAGE sql AS 'SELECT 1';
                    CREATE FUNCTION decayed(text) RETURNS integer LANGUAGE sql AS 'SELECT 1';
                    DROP FUNCTION seal_group(bigint);
                    UPDATE muster_build SET build = 'another', verbs = array_remove(verbs, 'seal_group(bigint)')
                        || '{gone(),decayed(text),not_there(integer)}'::text[]
                    """)
                #expect(try await Migrator(configuration).migrate() == ["functions"])
                #expect(try await functions(connection) == (whole + ["an_operators_own() SELECT 1"]).sorted())
            }
        }
    }

    @Test func aMigrationThatFailsChangesNothing() async throws {
        try await withEmptyDatabase { configuration in
            let migrator = Migrator(configuration)
            _ = try await migrator.migrate()
            try await withConnection(configuration) { connection in
                try await connection.simple(
                    """
                    UPDATE muster_build SET build = 'another';
                    CREATE VIEW stands_in_the_way AS SELECT decayed(1, statement_timestamp(), 1)
                    """)
                let before = try await functions(connection)
                await #expect(throws: PostgresError.self) { try await migrator.migrate() }
                #expect(try await functions(connection) == before)
                #expect(try await migrator.difference() == .otherBuild("another"))
            }
        }
    }

    @Test func aMigrationThatFailsAtALaterTableLeavesNoneOfTheEarlierOnes() async throws {
        try await withEmptyDatabase { configuration in
            let migrator = Migrator(configuration)
            try await withConnection(configuration) { connection in
                // The script of checks, which is not the first, makes a table of that name.
                try await connection.simple("CREATE TABLE check_findings ()")
                await #expect(throws: PostgresError.self) { try await migrator.migrate() }
                #expect(try await migrator.difference() == .empty)
                try await connection.simple("DROP TABLE check_findings")
                #expect(try await migrator.migrate().last == "functions")
            }
        }
    }

    @Test func aMigrationWaitsForCoordinatorsAndNamesThem() async throws {
        try await withEmptyDatabase { configuration in
            _ = try await Migrator(configuration).migrate()
            var coordinators = configuration
            coordinators.applicationName = "a coordinator"
            let one = try await PostgresConnection.open(coordinators)
            try await SchemaFence.enter(one)
            try await one.execute("UPDATE muster_build SET build = 'another'")
            let refusal = await #expect(throws: SchemaRefusal.self) {
                try await Migrator(configuration, patience: .zero).migrate()
            }
            #expect(refusal == .inUse(by: ["a coordinator at this machine"]))
            // A waiting migration goes ahead as soon as the coordinator is gone.
            async let applied = Migrator(configuration, patience: .seconds(600)).migrate()
            await one.close()
            #expect(try await applied == ["functions"])
        }
    }

    /// Two coordinators start with `--migrate` at once: the second one waits while the first migrates, and then the first holds the
    /// lock for as long as it runs.
    @Test func aWaitingMigratorIsDoneOnceAnotherHasMigrated() async throws {
        try await withEmptyDatabase { configuration in
            _ = try await Migrator(configuration).migrate()
            try await withConnection(configuration) { coordinator in
                try await SchemaFence.enter(coordinator)
                try await coordinator.execute("UPDATE muster_build SET build = 'another ' || build")
                async let applied = Migrator(configuration, patience: .seconds(600)).migrate()
                try await eventually("a migrator that waits") {
                    try await coordinator.query(
                        "SELECT FROM pg_stat_activity WHERE application_name = 'muster-migrate' AND query LIKE '%pg_try_advisory_lock%'"
                    ).count > 0
                }
                try await coordinator.execute("UPDATE muster_build SET build = replace(build, 'another ', '')")
                #expect(try await applied.isEmpty)
            }
        }
    }

    @Test func aConnectionOfAnotherBuildIsRefused() async throws {
        try await withEmptyDatabase { configuration in
            _ = try await Migrator(configuration).migrate()
            try await withConnection(configuration) { connection in
                try await SchemaFence.enter(connection)
                try await connection.execute("UPDATE muster_build SET build = 'another'")
                await #expect(throws: SchemaRefusal.otherBuild("another")) { try await SchemaFence.enter(connection) }
            }
        }
    }

    /// All functions, with their bodies.
    private func functions(_ connection: PostgresConnection) async throws -> [String] {
        try await connection.query(
            """
            SELECT oid::regprocedure::text || ' ' || prosrc AS function FROM pg_proc
            WHERE pronamespace = current_schema()::regnamespace
            """
        ).map { try $0.decode("function", as: String.self) }.sorted()
    }

    private func withConnection(
        _ configuration: PostgresConfiguration, _ body: (PostgresConnection) async throws -> Void
    ) async throws {
        let connection = try await PostgresConnection.open(configuration)
        try await body(connection)
        await connection.close()
    }

    private func withEmptyDatabase(_ body: (PostgresConfiguration) async throws -> Void) async throws {
        let server = try await TestPostgres.shared()
        let database = try await server.makeDatabase()
        try await body(PostgresConfiguration(database.conninfo))
        try await server.dropDatabase(database.name)
    }
}
