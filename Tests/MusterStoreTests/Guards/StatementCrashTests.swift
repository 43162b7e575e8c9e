import Glibc
import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// A backend of PostgreSQL that dies at a step of the store's transactions or of a migration (fault F6): what was begun leaves nothing behind, and the
/// same history goes on to the same end.
@Suite struct StatementCrashTests {
    /// How many steps are tried, spread over all by the seed; `MUSTER_CRASH_POINTS` sets another number.
    private static let points = getenv("MUSTER_CRASH_POINTS").flatMap { Int64(String(cString: $0)) } ?? 40

    /// What every history has to end with, wherever a backend died.
    private struct Ending: Equatable {
        let groups: [String]
        let tasks: [String]
        let events: [String]
        let leftovers: Int64
    }

    @Test func aBackendThatDiesAtAStepOfAVerbChangesNoEnding() async throws {
        let whole = Observed<(ending: Ending, steps: Int64)?>(nil)
        try await StoreFixture.run { fixture in
            let ending = try await Self.play(fixture, dyingAt: 0)
            let steps: Int64 = try await fixture.value("SELECT last_value FROM crash.steps")
            whole.update { $0 = (ending, steps) }
        }
        let (expected, steps) = try #require(whole.value)
        try #require(steps > 150 && expected.leftovers == 0)
        print("\(steps) steps of the store's transactions")
        for step in Self.sample(of: steps) {
            try await StoreFixture.run { fixture in
                let ending = try await Self.play(fixture, dyingAt: step)
                #expect(ending == expected, "a backend died at step \(step)")
                #expect(try await fixture.value("SELECT hit FROM crash.point"), "step \(step) came")
                try await fixture.check("a backend died at step \(step)")
            }
        }
    }

    @Test(arguments: [false, true]) func aMigrationThatDiesAtAStepIsMadeAgain(fromAnotherBuild: Bool) async throws {
        let steps = try await Self.migrate(fromAnotherBuild, dyingAt: 0)
        try #require(steps > 100)
        print("\(steps) steps of a migration")
        for step in Self.sample(of: steps, at: max(1, Self.points / 4)) {
            #expect(try await Self.migrate(fromAnotherBuild, dyingAt: step) >= steps, "a backend died at step \(step)")
        }
    }

    /// Some of the numbers from 1 to `count`, the first and the last among them.
    private static func sample(of count: Int64, at points: Int64 = points, test: String = #function) -> [Int64] {
        var random = SeededGenerator.forTest(test)
        let stride = max(1, count / points)
        let first = Int64.random(in: 1...stride, using: &random)
        return Set(Swift.stride(from: first, through: count, by: Int(stride))).union([1, count]).sorted()
    }

    // MARK: A history of the store

    /// Plays a history with every kind of change; the backend that takes the given step dies there.
    private static func play(_ fixture: StoreFixture, dyingAt step: Int64) async throws -> Ending {
        let store = fixture.store
        var worker = try await fixture.makeWorker()
        try await arm(fixture, step)
        try await persist { try await fixture.makeGroup("kept", Wanted.many(3, "kept"), isSealed: true) }
        try await persist {
            try await fixture.makeGroup("gone", Wanted.many(3, "gone", origins: ["b", "c"]), isSealed: true)
        }
        try await persist {
            for lease in try await worker.claim(4) {
                try await worker.learn(lease, size: 250)
                try await worker.progress(lease, to: lease.start + 50)
            }
        }
        try await persist { try await store.apply(.pause, to: "kept", keys: nil) }
        try await persist { try await store.apply(.resume, to: "kept", keys: nil) }
        try await persist { try await store.apply(.cancel, to: "gone", keys: nil) }
        try await finish(&worker)
        try await persist { try await fixture.makeGroup("again", Wanted.many(2, "again"), isSealed: true) }
        try await persist {
            try await worker.sync(settled: worker.sequence)
            for lease in try await worker.claim(4) { try await worker.fail(lease, .notFound, status: 404) }
        }
        try await persist { try await store.apply(.retry, to: "again", keys: nil) }
        // A worker that dies in the middle.
        var other = try await persist { try await fixture.makeWorker("other") }
        try await persist { for lease in try await other.claim(2) { try await other.learn(lease, size: 250) } }
        try await persist { try await store.expireSession(other.session) }
        try await persist { try await store.sweepSessions() }
        try await finish(&worker)
        try await persist { try await store.remove("kept", keys: nil, deletingFiles: true) }
        try await finish(&worker)
        try await persist { try await fixture.logEvents() }
        return try await ending(of: fixture)
    }

    /// Repeats what a lost connection has interrupted, as clients, workers and coordinators do.
    @discardableResult
    private static func persist<T>(_ body: () async throws -> T) async throws -> T {
        do {
            return try await body()
        } catch let error as PostgresError where error.isOutage || error.lostAnswer {
            return try await body()
        }
    }

    /// Works until nothing is left to do. After a lost answer the worker's next sync gives back what it has not been told of.
    private static func finish(_ worker: inout TestWorker) async throws {
        try await persist {
            try await worker.sync(settled: worker.sequence)
            try await worker.finishEverything()
        }
    }

    private static func arm(_ fixture: StoreFixture, _ step: Int64) async throws {
        try await fixture.pool.withConnection { connection in
            try await connection.simple(
                """
                \(counter(step))
                CREATE FUNCTION crash.touched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM crash.step(); RETURN NULL; END';
                DO $$
                DECLARE
                    v_table regclass;
                BEGIN
                    FOR v_table IN
                        SELECT c.oid FROM pg_class c
                        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname NOT LIKE 'muster\\_%'
                    LOOP
                        EXECUTE format('CREATE TRIGGER crash BEFORE INSERT OR UPDATE OR DELETE ON %s EXECUTE FUNCTION crash.touched()', v_table);
                    END LOOP;
                END
                $$
                """)
        }
    }

    /// Counts steps, and ends the backend at one of them; at none if the number is 0.
    private static func counter(_ step: Int64) -> String {
        """
        CREATE SCHEMA crash;
        CREATE SEQUENCE crash.steps;
        CREATE VIEW crash.point AS SELECT last_value >= \(step) AS hit FROM crash.steps;
        CREATE FUNCTION crash.step() RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            IF nextval('crash.steps') = \(step) THEN
                PERFORM pg_terminate_backend(pg_backend_pid());
                PERFORM pg_sleep(60);
            END IF;
        END
        $$;
        """
    }

    private static func ending(of fixture: StoreFixture) async throws -> Ending {
        Ending(
            groups: try await fixture.values("SELECT concat_ws(' ', name, state, generation) FROM groups ORDER BY 1"),
            tasks: try await fixture.values("SELECT concat_ws(' ', key, state, size) FROM tasks ORDER BY 1"),
            events: try await fixture.events().map { "\($0.subject) \($0.type)" }.sorted(),
            leftovers: try await fixture.value(
                "SELECT (SELECT count(*) FROM leases) + (SELECT count(*) FROM ready_chunks)"))
    }

    // MARK: A migration

    /// Migrates an empty database, or one of another build, whose backend dies at a step, and then once more. Returns how many steps there were.
    private static func migrate(_ fromAnotherBuild: Bool, dyingAt step: Int64) async throws -> Int64 {
        let server = try await TestPostgres.shared()
        let database = try await server.makeDatabase()
        let configuration = PostgresConfiguration(database.conninfo)
        let migrator = Migrator(configuration)
        if fromAnotherBuild { _ = try await migrator.migrate() }
        let connection = try await PostgresConnection.open(configuration)
        try await connection.simple(
            """
            \(counter(step))
            CREATE FUNCTION crash.commanded() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM crash.step(); END';
            CREATE EVENT TRIGGER crash ON ddl_command_end EXECUTE FUNCTION crash.commanded()
            """)
        if fromAnotherBuild { try await connection.execute("UPDATE muster_build SET build = 'another'") }
        if step > 0 {
            await #expect(throws: PostgresError.self) { try await migrator.migrate() }
            #expect(try await migrator.difference() == (fromAnotherBuild ? .otherBuild("another") : .empty))
        }
        #expect(try await migrator.migrate().last == "functions")
        #expect(try await migrator.difference() == nil)
        try await migrator.checkRows()
        let steps: Int64 = try await connection.query("SELECT last_value FROM crash.steps")[0].decode("last_value")
        await connection.close()
        try await server.dropDatabase(database.name)
        return steps
    }
}
