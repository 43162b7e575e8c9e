import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport

/// The database cost of statements, in measures that neither a clock nor another test changes: one connection to a server of its
/// own, on which nothing else runs.
struct StoreCosts: Sendable {
    /// Costs so far, or between two moments.
    struct Sum: Sendable, Hashable, CustomStringConvertible {
        /// Bytes of the write-ahead log.
        var log: Int64
        /// Committed transactions.
        var commits: Int64
        /// Rows inserted, updated and deleted.
        var versions: Int64
        /// Updates among them that had to touch indexes.
        var coldUpdates: Int64
        /// Rows and index entries read.
        var reads: Int64

        static func - (left: Self, right: Self) -> Self {
            Self(
                log: left.log - right.log, commits: left.commits - right.commits,
                versions: left.versions - right.versions,
                coldUpdates: left.coldUpdates - right.coldUpdates, reads: left.reads - right.reads)
        }

        var description: String {
            "log \(log), commits \(commits), versions \(versions), updates of indexes \(coldUpdates), reads \(reads)"
        }
    }

    /// The fixture with the store.
    let fixture: StoreFixture

    /// Runs a test with a store on a server of its own.
    static func run(policy: Store.Policy, _ body: @Sendable (StoreCosts) async throws -> Void) async throws {
        let server = try await TestPostgres.start(settings: ["autovacuum": "off"])
        do {
            let database = try await server.makeDatabase()
            let configuration = PostgresConfiguration(database.conninfo)
            _ = try await Migrator(configuration).migrate()
            let pool = PostgresPool(configuration, limits: .init(maximumConnections: 1))
            let wakes = WakeLog()
            let store = Store(pool: pool, policy: policy) { wakes.add($0) }
            do {
                try await body(
                    StoreCosts(
                        fixture: StoreFixture(
                            pool: pool, store: store, policy: policy, conninfo: database.conninfo, wakes: wakes)))
            } catch {
                await pool.shutdown()
                throw error
            }
            await pool.shutdown()
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    /// The costs of some work, with statistics flushed before and after it. The first full page in the log after a checkpoint counts too.
    func costs(_ work: () async throws -> Void) async throws -> Sum {
        let before = try await now()
        try await work()
        return try await now() - before
    }

    private func now() async throws -> Sum {
        _ = try await fixture.run("SELECT pg_stat_force_next_flush()")
        let pool = fixture.pool
        let row = try await pool.query(
            """
            SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS log,
                (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits,
                (SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::bigint FROM pg_stat_user_tables) AS versions,
                (SELECT sum(n_tup_upd - n_tup_hot_upd)::bigint FROM pg_stat_user_tables) AS cold,
                (SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables)
                    + (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes) AS reads
            """)[0]
        return Sum(
            log: try row.decode("log"), commits: try row.decode("commits"), versions: try row.decode("versions"),
            coldUpdates: try row.decode("cold"), reads: try row.decode("reads"))
    }
}
