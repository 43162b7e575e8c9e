import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// Databases that have lost rows without an error of PostgreSQL: a page of zeros reads as empty.
@Suite struct WholenessTests {
    /// A group with files that have not begun, and one that has ended with an event.
    private static func fill(_ fixture: StoreFixture) async throws {
        try await fixture.makeGroup("g", [Wanted("a"), Wanted("b"), Wanted("c")])
        try await fixture.makeGroup("e", isSealed: true)
        #expect(try await fixture.store.sequenceEvents() == 1)
    }

    @Test func aCompleteDatabaseIsAccepted() async throws {
        try await StoreFixture.run { fixture in
            try await fixture.checkRows()
            try await Self.fill(fixture)
            try await fixture.checkRows()
        }
    }

    @Test(arguments: ["event_log", "events", "groups", "tasks", "sources", "origins", "ready_chunks"])
    func aTableWithoutItsRowsIsNamed(table: String) async throws {
        try await StoreFixture.run { fixture in
            try await Self.fill(fixture)
            try await fixture.deleteRows(of: table)
            await #expect {
                try await fixture.checkRows()
            } throws: { error in
                guard let error = error as? PostgresError else { return false }
                return error.isDamage && "\(error)".contains("rows of the table \(table) are gone")
            }
        }
    }
}
