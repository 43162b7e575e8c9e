import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// Databases that have lost rows without any error of PostgreSQL's: a page of zeros is an empty one.
@Suite struct WholenessTests {
    /// A group with files that nobody has begun, and one that has ended with an event.
    private static func fill(_ fixture: StoreFixture) async throws {
        try await fixture.makeGroup("g", [Wanted("a"), Wanted("b"), Wanted("c")])
        try await fixture.makeGroup("e", isSealed: true)
        #expect(try await fixture.store.sequenceEvents() == 1)
    }

    @Test func aDatabaseThatIsWholeIsNotRefused() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.run("SELECT check_rows()")
            try await Self.fill(fixture)
            try await fixture.run("SELECT check_rows()")
        }
    }

    @Test(arguments: ["event_log", "events", "groups", "tasks", "sources", "origins", "ready_chunks"])
    func aTableThatHasLostItsRowsIsNamed(table: String) async throws {
        try await StoreFixture.run { fixture in
            try await Self.fill(fixture)
            try await fixture.run(SQL(unsafeRaw: "DELETE FROM \(table)"))
            await #expect {
                try await fixture.run("SELECT check_rows()")
            } throws: { error in
                guard let error = error as? PostgresError else { return false }
                return error.isDamage && "\(error)".contains("rows of the table \(table) are gone")
            }
        }
    }
}
