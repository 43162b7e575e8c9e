import MusterPostgres
import MusterTestSupport

/// The floor of what leasing costs a database: one statement that takes chunks, and one that finishes them, fenced and counted, on tables
/// without anything else. There is no HTTP, no choice among groups, and no events.
struct BareStatements: Sendable {
    private let conninfo: String
    private let postgres: TestPostgres
    private let database: String

    /// Makes a database with empty tables.
    init(on postgres: TestPostgres) async throws {
        let made = try await postgres.makeDatabase()
        self.postgres = postgres
        database = made.name
        conninfo = made.conninfo
        let connection = try await open()
        try await connection.simple(Self.tables)
        await connection.close()
    }

    /// Drops the database.
    func drop() async throws { try await postgres.dropDatabase(database) }

    private func open() async throws -> PostgresConnection {
        try await PostgresConnection.open(PostgresConfiguration(conninfo))
    }

    /// Finishes `count` tasks over some connections, which each take `batch` at a time; returns the seconds and what was written.
    func run(
        tasks count: Int, connections: Int, batch: Int
    ) async throws -> (
        seconds: Double, written: DatabaseMeter.Reading
    ) {
        let first = try await open()
        try await first.simple("TRUNCATE bare_tasks, bare_ready, bare_leases, bare_groups")
        try await first.query("INSERT INTO bare_groups VALUES (1, \(Int64(count)), 0)")
        try await first.query(
            """
            INSERT INTO bare_tasks (id, group_id, path, state)
            SELECT i, 1, 'group/' || i, 'queued' FROM generate_series(1, \(Int64(count))) i
            """, deadline: .now + .seconds(600))
        try await first.query(
            """
            INSERT INTO bare_ready (id, task_id, group_id, origin_id, rank)
            SELECT i, i, 1, 1, 0 FROM generate_series(1, \(Int64(count))) i
            """, deadline: .now + .seconds(600))
        let meter = try await DatabaseMeter(conninfo: conninfo)
        let before = try await meter.read()
        let begin = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for session in 1...Int64(connections) {
                group.addTask { try await work(session, batch: batch) }
            }
            try await group.waitForAll()
        }
        let seconds = (ContinuousClock.now - begin).seconds
        let written = try await meter.since(before)
        let left: Int64 =
            try await first.query("SELECT count(*) AS left FROM bare_tasks WHERE state <> 'succeeded'")
            .first?.decode("left") ?? -1
        await meter.close()
        await first.close()
        guard left == 0 else { throw BenchFailure("\(left) tasks were not finished by the bare statements") }
        return (seconds, written)
    }

    private func work(_ session: Int64, batch: Int) async throws {
        let connection = try await open()
        while true {
            let rows = try await connection.query(
                """
                WITH taken AS (
                    DELETE FROM bare_ready WHERE id IN (
                        SELECT id FROM bare_ready WHERE group_id = 1 ORDER BY rank, id LIMIT \(Int64(batch))
                        FOR UPDATE SKIP LOCKED)
                    RETURNING id, task_id, group_id, origin_id
                )
                INSERT INTO bare_leases (chunk_id, session_id, task_id, group_id, origin_id)
                SELECT id, \(session), task_id, group_id, origin_id FROM taken
                RETURNING chunk_id, epoch
                """)
            guard !rows.isEmpty else { break }
            let chunks: [Int64] = try rows.map { try $0.decode("chunk_id") }
            let epochs: [Int64] = try rows.map { try $0.decode("epoch") }
            try await connection.query(
                """
                WITH ended AS (
                    DELETE FROM bare_leases l USING unnest(\(chunks), \(epochs)) AS r (chunk_id, epoch)
                    WHERE l.chunk_id = r.chunk_id AND l.epoch = r.epoch
                    RETURNING l.task_id
                ), finished AS (
                    UPDATE bare_tasks t SET state = 'succeeded' FROM ended e WHERE t.id = e.task_id RETURNING 1
                )
                UPDATE bare_groups SET queued = queued - n.count, succeeded = succeeded + n.count
                FROM (SELECT count(*) AS count FROM finished) AS n WHERE id = 1
                """)
        }
        await connection.close()
    }

    private static let tables = """
        CREATE TABLE bare_groups (id bigint PRIMARY KEY, queued bigint NOT NULL, succeeded bigint NOT NULL) WITH (fillfactor = 50);
        CREATE TABLE bare_tasks (id bigint PRIMARY KEY, group_id bigint NOT NULL, path text NOT NULL, state text NOT NULL)
            WITH (fillfactor = 80);
        CREATE TABLE bare_ready (id bigint PRIMARY KEY, task_id bigint NOT NULL, group_id bigint NOT NULL,
            origin_id bigint NOT NULL, rank integer NOT NULL);
        CREATE INDEX bare_ready_by_rank ON bare_ready (group_id, rank, id);
        CREATE SEQUENCE bare_epochs;
        CREATE TABLE bare_leases (chunk_id bigint PRIMARY KEY, epoch bigint NOT NULL DEFAULT nextval('bare_epochs'),
            session_id bigint NOT NULL, task_id bigint NOT NULL, group_id bigint NOT NULL, origin_id bigint NOT NULL);
        """
}
