import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// How the schema comes to be.
@Suite struct MigrationTests {
    @Test func migratingTwiceDoesItOnce() async throws {
        try await withEmptyDatabase { configuration in
            let migrator = Migrator(configuration)
            let before = try await migrator.state()
            let applied = try await migrator.migrate()
            #expect(!applied.isEmpty && applied == applied.sorted())
            #expect(before == .behind(applied))
            #expect(try await migrator.state() == .current)
            #expect(try await migrator.migrate().isEmpty)
            #expect(try await migrator.state() == .current)
        }
    }

    @Test func manyMigratorsAtOnceDoItOnce() async throws {
        try await withEmptyDatabase { configuration in
            let applied = try await withThrowingTaskGroup(of: [String].self) { group in
                for _ in 0..<6 { group.addTask { try await Migrator(configuration).migrate() } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(Set(applied).count == applied.count)
            #expect(try await Migrator(configuration).state() == .current)
        }
    }

    @Test func newerAndHalfDoneSchemasAreToldApart() async throws {
        try await withEmptyDatabase { configuration in
            let migrator = Migrator(configuration)
            let all = try await migrator.migrate()
            let connection = try await PostgresConnection.open(configuration)
            try await connection.execute("INSERT INTO muster_migrations (name) VALUES ('9999_future')")
            #expect(try await migrator.state() == .ahead(["9999_future"]))
            let last = try #require(all.last)
            try await connection.execute("DELETE FROM muster_migrations WHERE name = \(last)")
            #expect(try await migrator.state() == .behind([last]))
            await connection.close()
        }
    }

    private func withEmptyDatabase(_ body: (PostgresConfiguration) async throws -> Void) async throws {
        let server = try await TestPostgres.shared()
        let database = try await server.makeDatabase()
        try await body(PostgresConfiguration(database.conninfo))
        try await server.dropDatabase(database.name)
    }
}
