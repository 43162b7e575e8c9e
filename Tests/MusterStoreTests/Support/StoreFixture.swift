import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Testing

/// A migrated database that belongs to one test, with a store over it.
struct StoreFixture: Sendable {
    let pool: PostgresPool
    let store: Store
    let policy: Store.Policy
    let conninfo: String
    /// The wakes that the store has sent.
    let wakes: WakeLog

    /// Small bounds, so that few bytes and few failures reach every branch.
    static var smallPolicy: Store.Policy {
        var policy = Store.Policy()
        policy.firstChunk = 100
        policy.connectionsPerOrigin = 16
        policy.leasesPerSession = 64
        policy.attempts = 3
        policy.contentVersions = 3
        policy.deaths = 5
        policy.shrinkUnit = 10
        policy.minimumShrink = 20
        policy.verbSlice = 3
        return policy
    }

    /// Runs a test in a fresh database, and drops it.
    static func run(
        policy: Store.Policy = smallPolicy, connections: Int = 4,
        _ body: @Sendable (StoreFixture) async throws -> Void
    ) async throws {
        try await TestGate.shared.pass { try await runNow(policy: policy, connections: connections, body) }
    }

    private static func runNow(
        policy: Store.Policy, connections: Int, _ body: @Sendable (StoreFixture) async throws -> Void
    ) async throws {
        let server = try await TestPostgres.shared()
        let template = try await TemplateDatabase.name()
        let name = "\(template)_\(String(UInt64.random(in: .min ... .max), radix: 36))"
        try await server.execute("CREATE DATABASE \(name) TEMPLATE \(template)")
        let conninfo = await server.conninfo.replacingDatabase(with: name)
        let pool = PostgresPool(PostgresConfiguration(conninfo), limits: .init(maximumConnections: connections))
        let wakes = WakeLog()
        let store = Store(pool: pool, policy: policy) { wakes.add($0) }
        let fixture = StoreFixture(pool: pool, store: store, policy: policy, conninfo: conninfo, wakes: wakes)
        do {
            try await body(fixture)
            await pool.shutdown()
            try await server.dropDatabase(name)
        } catch {
            await pool.shutdown()
            throw error
        }
    }

    /// Checks the invariants by SQL; each violation becomes an issue of the test.
    func check(_ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let broken = try await Invariants.check(self)
        #expect(broken.isEmpty, comment, sourceLocation: sourceLocation)
    }

    /// Runs the test's own SQL.
    @discardableResult
    func run(_ sql: SQL) async throws -> Int { try await pool.execute(sql) }

    /// The first column of the first row.
    func value<T: PostgresDecodable>(_ sql: SQL, as type: T.Type = T.self) async throws -> T {
        let row = try #require(try await pool.query(sql).first)
        return try row.decode(at: 0)
    }

    /// The first column of all rows.
    func values<T: PostgresDecodable>(_ sql: SQL, as type: T.Type = T.self) async throws -> [T] {
        try await pool.query(sql).map { try $0.decode(at: 0) }
    }

    /// Takes part in the fence of the schema, as the first connection of a coordinator does.
    func enterFence() async throws { try await pool.withConnection { try await SchemaFence.enter($0) } }

    /// Makes the database look like one whose files an administrator has restored.
    func restoreFiles() async throws { try await set("installation", "incarnation", to: "restored") }

    /// Stores what no verb would store: a value in a column of all rows, or of those with a name.
    func set(_ table: String, _ column: String, to value: some PostgresEncodable, of name: String? = nil) async throws {
        let condition: SQL = name.map { "name = \($0)" } ?? "true"
        try await run("UPDATE \(identifier: table) SET \(identifier: column) = \(value) WHERE \(condition)")
    }

    /// Breaks a function of the database.
    func apply(_ mutant: MutantTests.Mutant) async throws {
        let whole: String = try await value("SELECT pg_get_functiondef(\(mutant.function)::text::regproc)")
        let mutated: String = try await value("SELECT replace(\(whole), \(mutant.original), \(mutant.replacement))")
        try #require(mutated != whole, "the mutation no longer applies to the function")
        try await run(SQL(unsafeRaw: mutated))
    }

    // MARK: What most tests begin with

    /// Creates a group with tasks. By default it reuses nothing that other groups fetch: reuse has its own tests.
    @discardableResult
    func makeGroup(
        _ name: String, _ tasks: [Wanted] = [], sink: String = "sink", priority: Int32 = 0, weight: Int32 = 1,
        maxConnections: Int32? = nil, isSealed: Bool = false, resolver: String? = nil,
        reuses: Bool = false
    ) async throws -> GroupRecord {
        let upload = try await stage(tasks)
        var creation = GroupCreation(name: name, sink: sink)
        creation.priority = priority
        creation.weight = weight
        creation.maxConnections = maxConnections
        creation.isSealed = isSealed
        creation.resolver = resolver
        creation.reuses = reuses
        return try await store.createGroup(creation, upload: upload)
    }

    /// Adds tasks to a group.
    func add(_ tasks: [Wanted], to group: String, reopening: Bool = false) async throws -> Addition {
        try await store.addTasks(try await stage(tasks), to: group, reopening: reopening)
    }

    /// Stages tasks for an upload.
    ///
    /// - Parameter isWritten: whether they are in the database already, as with large uploads.
    func stage(_ tasks: [Wanted], isWritten: Bool = false) async throws -> Upload {
        var upload = try await store.beginUpload()
        var staged: [StagedTask] = []
        for (index, wanted) in tasks.enumerated() {
            let task = try TaskSpecification(
                urls: wanted.origins.map { "http://\($0).test/\(wanted.key)" }, key: wanted.key, path: wanted.path,
                size: wanted.size, priority: wanted.priority)
            staged.append(
                StagedTask(line: Int64(index + 1), task: task, digests: nil, metadata: nil, headers: nil))
        }
        try await store.stage(staged, upload: &upload)
        if isWritten { try await store.write(&upload) }
        return upload
    }

    /// Opens a session.
    func makeWorker(
        _ name: String = "worker", sinks: [String] = ["sink"], slots: Int32 = 8, timeToLive: Duration = .seconds(3600)
    ) async throws -> TestWorker {
        let session = try await store.openSession(
            SessionOpening(worker: name, version: "1", labels: "{}", slots: slots, sinks: sinks), timeToLive: timeToLive
        ).id
        return TestWorker(fixture: self, session: session)
    }

    /// Makes a session expire at once, and takes back its leases.
    @discardableResult
    func expire(_ session: SessionID) async throws -> Store.Swept {
        try await set(.expiry, ago: .seconds(1), of: session.rawValue)
        return try await store.sweepSessions()
    }

    /// Shifts everything that is compared with the clock by a minute, except waits.
    func passMinute() async throws { try await age(.grant, .learning, .limit, by: .seconds(60)) }

    /// Lets ten seconds pass without progress of any lease, so that each unfinished lease is a straggler. Skips leases that another
    /// transaction has locked: waiting for them in any order may deadlock, and the test's own statement is not repeated.
    func passStraggling() async throws {
        try await run(
            """
            UPDATE leases SET granted_at = granted_at - interval '10 s', progress_at = progress_at - interval '10 s',
                shrink_asked_at = shrink_asked_at - interval '10 s'
            WHERE chunk_id IN (SELECT chunk_id FROM leases FOR NO KEY UPDATE SKIP LOCKED)
            """)
    }

    /// Ends all backoffs, as four seconds would.
    func passBackoffs() async throws {
        try await age(.attempt, by: .seconds(4))
        try await run("UPDATE origins SET not_before = NULL WHERE not_before = try_at")
        try await passChunkWaits()
    }

    /// Deletes all rows of a table.
    func deleteRows(of table: String) async throws { try await run("DELETE FROM \(identifier: table)") }

    /// Empties the database for the next history.
    func wipe() async throws {
        try await run("DELETE FROM group_prerequisites")
        try await run(
            """
            WITH a AS (DELETE FROM ready_chunks), b AS (DELETE FROM leases), c AS (DELETE FROM done_chunks),
                d AS (DELETE FROM sessions), e AS (DELETE FROM events), p AS (DELETE FROM pending_events), h AS (DELETE FROM holdouts), r AS (DELETE FROM revocations), ds AS (DELETE FROM drained_sessions),
                f AS (UPDATE event_log SET last_position = 0), g AS (DELETE FROM staged_tasks), s AS (DELETE FROM sources),
                t AS (DELETE FROM tasks)
            DELETE FROM groups
            """)
        try await run(
            "UPDATE origins SET not_before = NULL, learned = NULL, learned_at = NULL, limited_at = NULL, limited_epoch = NULL, doubted_at = NULL, out_since = NULL, rate_bytes = 0, refusals = 0, limits_with = '{}', refuses_with = '{}'"
        )
        try await forgetAnswers()
    }

    /// Makes origins forget recent answers, so that they neither rest because of those nor are probed while they rest.
    func forgetAnswers() async throws {
        try await run(
            """
            WITH f AS (DELETE FROM origin_flow)
            UPDATE origins SET answers = 0, rate_bytes = 0, try_at = NULL, not_before = CASE WHEN not_before IS DISTINCT FROM try_at THEN not_before END
            """)
    }
}

/// A task for a test to create.
struct Wanted: Sendable {
    var key: String
    var origins = ["a"]
    var size: Int64?
    var priority: Int32 = 0
    var path: String

    init(_ key: String, size: Int64? = nil, origins: [String] = ["a"], priority: Int32 = 0, path: String? = nil) {
        self.key = key
        self.size = size
        self.origins = origins
        self.priority = priority
        self.path = path ?? key
    }

    /// Tasks `prefix1`, `prefix2`, …
    static func many(_ count: Int, _ prefix: String = "t", size: Int64? = nil, origins: [String] = ["a"]) -> [Wanted] {
        (1...count).map { Wanted("\(prefix)\($0)", size: size, origins: origins) }
    }
}

/// The template database, migrated once; all other databases are copies of it.
private enum TemplateDatabase {
    static func name() async throws -> String { try await made.value }

    private static let made = Task {
        let database = try await TestPostgres.shared().makeDatabase()
        _ = try await Migrator(PostgresConfiguration(database.conninfo)).migrate()
        return database.name
    }
}

extension String {
    /// The same connection string with another database: when a keyword occurs twice, its last value counts.
    fileprivate func replacingDatabase(with name: String) -> String { "\(self) dbname=\(name)" }
}
