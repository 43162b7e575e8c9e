import MusterCore
import MusterPostgres
import MusterStore
import Testing

/// A text outside its closed set is refused when it is read, with its column, its type and the text (house rule 19).
@Suite("Unknown texts of the database") struct StoredTextTests {
    /// A column with a closed set of values, and a query that reads it.
    struct Case: Sendable, CustomTestStringConvertible {
        var table: String
        var column: String
        /// The column's name in the result, and the type that it is decoded as.
        var read: (column: String, type: String)
        var ask: @Sendable (StoreFixture) async throws -> Void

        var testDescription: String { "\(table).\(column)" }
    }

    static let cases = [
        Case(table: "groups", column: "state", read: ("state", "GroupState")) { _ = try await $0.store.group("g") },
        Case(table: "groups", column: "deadline_action", read: ("deadline_action", "DeadlineAction")) {
            _ = try await $0.store.group("g")
        },
        Case(
            table: "group_prerequisites", column: "condition",
            read: ("prerequisite_conditions", "Array<PrerequisiteCondition>")
        ) { _ = try await $0.store.group("late") },
        Case(table: "groups", column: "state", read: ("prerequisite_states", "Array<GroupState>")) {
            try await $0.set("groups", "state", to: "open", of: "late")
            _ = try await $0.store.group("late")
        },
        Case(table: "tasks", column: "state", read: ("state", "TaskState")) {
            _ = try await $0.store.task("a", of: "g")
        },
        Case(table: "tasks", column: "failure_kind", read: ("failure_kind", "Optional<FailureKind>")) {
            _ = try await $0.store.task("a", of: "g")
        },
        Case(table: "attempts", column: "kind", read: ("kind", "FailureKind")) {
            _ = try await $0.store.explanation(of: "a", in: "g")
        },
        Case(table: "attempts", column: "outcome", read: ("outcome", "AttemptOutcome")) {
            _ = try await $0.store.explanation(of: "a", in: "g")
        },
        Case(table: "leases", column: "kind", read: ("kind", "LeaseKind")) {
            _ = try await $0.store.explanation(of: "b", in: "g")
        },
        Case(table: "deliveries", column: "state", read: ("state", "DeliveryState")) {
            _ = try await $0.store.deliveries(state: nil, subscription: nil, after: 0, limit: 10)
        },
    ]

    @Test(arguments: cases) func unlistedTextIsRefused(_ one: Case) async throws {
        try await StoreFixture.run { fixture in
            try await Self.fill(fixture)
            try await one.ask(fixture)
            for constraint in try await fixture.values(
                "SELECT conname::text FROM pg_constraint WHERE contype = 'c' AND conrelid = \(one.table)::text::regclass",
                as: String.self)
            {
                try await fixture.run(SQL(unsafeRaw: "ALTER TABLE \(one.table) DROP CONSTRAINT \"\(constraint)\""))
            }
            try await fixture.set(one.table, one.column, to: "of tomorrow")
            let error = await #expect(throws: PostgresError.self) { try await one.ask(fixture) }
            #expect(
                error
                    == .decoding(
                        .init(
                            column: one.read.column, requested: one.read.type, problem: .unknownText("of tomorrow"))))
        }
    }

    /// Fills every table: a task that has failed once, a leased one, a group that waits, and a delivery.
    private static func fill(_ fixture: StoreFixture) async throws {
        try await fixture.subscribe()
        try await fixture.makeGroup("g", [Wanted("a"), Wanted("b")])
        var worker = try await fixture.makeWorker()
        for lease in try await worker.claim(2) where lease.key == "a" { try await worker.fail(lease, .network) }
        var late = GroupCreation(name: "late", sink: "sink")
        late.prerequisites = [GroupPrerequisite(group: "g", on: .finished)]
        _ = try await fixture.store.createGroup(late, upload: nil)
        try await fixture.makeEvents(["done"])
        try await fixture.fanOut()
    }
}
