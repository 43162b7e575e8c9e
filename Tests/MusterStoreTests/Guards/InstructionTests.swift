import MusterCore
import MusterPostgres
import MusterStore
import MusterTestSupport
import Subprocess
import SystemPackage
import Testing

/// Guards the CPU time that a claim and a look for lanes cost the database. No clock measures it reliably; the test counts the
/// instructions that the backend executes, with Valgrind.
@Suite struct InstructionTests {
    private static let batch = 256

    @Test func instructionsOfAClaimStayWithinTheirBound() async throws {
        let (cluster, claims) = try await Self.cluster()
        // The first claims read the catalogs and make plans; their cost is the same in both runs.
        let few = try await cluster.instructions(claims.prefix(2), printing: Self.batch)
        let many = try await cluster.instructions(claims.dropFirst(2), printing: Self.batch)
        let each = (many - few) / Int64(claims.count - 4)
        print("a claim of \(Self.batch): \(each) instructions")
        #expect(each > 0)
        // 81,600,000: 319,000 for each lease.
        #expect(each <= 102_000_000)
    }

    /// The look is made once a second per database; here for a group that is alone in its sink, at an origin with a cap.
    @Test func lookForLanesIsCheapIfAGroupIsAlone() async throws {
        let (cluster, claims) = try await Self.cluster()
        let looks = ["UPDATE origins SET max_connections = 4096;"] + claims.prefix(1)
        let look = "SELECT count(*) FROM preempt(4096);"
        let few = try await cluster.instructions(looks + Array(repeating: look, count: 2), printing: 0, times: 2)
        let many = try await cluster.instructions(looks + Array(repeating: look, count: 12), printing: 0, times: 12)
        let each = (many - few) / 10
        print("a look for lanes: \(each) instructions")
        #expect(each > 0)
        // 2,700,000, with 256 lanes.
        #expect(each <= 3_400_000)
    }

    /// A stopped server, with a claim for each of eight sessions.
    private static func cluster() async throws -> (Cluster, [String]) {
        var policy = Store.Policy()
        (policy.connectionsPerOrigin, policy.leasesPerSession) = (4_096, 512)
        let server = try await TestPostgres.start(settings: ["autovacuum": "off"])
        let cluster: Cluster
        let claims: [String]
        do {
            let database = try await server.makeDatabase()
            claims = try await prepare(database, policy)
            cluster = try await Cluster(of: server, database: database.name)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
        return (cluster, claims)
    }

    /// Makes a group, and returns a claim for each of eight sessions.
    private static func prepare(_ database: TestPostgres.Database, _ policy: Store.Policy) async throws -> [String] {
        let configuration = PostgresConfiguration(database.conninfo)
        _ = try await Migrator(configuration).migrate()
        let pool = PostgresPool(configuration, limits: .init(maximumConnections: 1))
        let wakes = WakeLog()
        let store = Store(pool: pool, policy: policy) { wakes.add($0) }
        let fixture = StoreFixture(
            pool: pool, store: store, policy: policy, conninfo: database.conninfo, wakes: wakes)
        do {
            try await fixture.makeGroup("g", Wanted.many(16 * batch, size: 1_000), isSealed: true)
            var claims: [String] = []
            for number in 0..<8 {
                var worker = try await fixture.makeWorker("worker\(number)")
                try await worker.sync()
                claims.append(
                    """
                    SELECT count(*) FROM (SELECT array_agg(s.chunk_id) AS chunks, array_agg(s.chunk_id) FILTER (WHERE s.is_limited) AS limited \
                    FROM share_leases(ARRAY[\(worker.session)::bigint], ARRAY[\(worker.sequence)::bigint], ARRAY[\(batch)], ARRAY[0], ARRAY[false], \
                    ROW(NULL, \(policy.connectionsPerOrigin), \(policy.leasesPerSession), NULL, NULL, NULL, NULL, NULL, NULL, NULL)::policy) \
                    AS s) AS shared \
                    CROSS JOIN LATERAL granted_leases(shared.chunks, coalesce(shared.limited, '{}')) AS g;
                    """)
            }
            try await fixture.run("VACUUM ANALYZE")
            await pool.shutdown()
            return claims
        } catch {
            await pool.shutdown()
            throw error
        }
    }

    /// The files of a server that will be stopped, and the user that may read them.
    private struct Cluster {
        /// Kept alive, since its deinitialization deletes the files.
        private let server: TestPostgres
        let data: FilePath
        let program: FilePath
        let user: String
        let database: String

        init(of server: TestPostgres, database: String) async throws {
            let process = try #require(await server.processID)
            data = FilePath(try await Self.output(["readlink", "/proc/\(process)/cwd"]))
            program = FilePath(try await Self.output(["readlink", "/proc/\(process)/exe"]))
            user = try await Self.output(["stat", "-c", "%u", data.string])
            self.database = database
            self.server = server
        }

        /// The number of instructions that a backend of its own executes for these statements, from its start to its end. Of the
        /// statements, `times` (all by default) must print `count`.
        func instructions(
            _ statements: some Collection<String>, printing count: Int, times: Int? = nil
        ) async throws -> Int64 {
            let file = data.appending("instructions")
            let valgrind = try #require(InstalledProgram.find("valgrind")).string
            let output = try await Self.output(
                ["setpriv", "--reuid=\(user)", "--clear-groups", "--", valgrind, "--tool=cachegrind", "--cache-sim=no"]
                    + ["--cachegrind-out-file=\(file)", program.string, "--single", "-D", data.string, database],
                input: statements.joined(separator: "\n") + "\n")
            let said = output.split(separator: "\n").count { $0.contains("count = \"\(count)\"") }
            #expect(said == times ?? statements.count, "\(output)")
            let summary = try await Self.output(["sed", "-n", "s/^summary: *//p", file.string])
            return try #require(Int64(summary))
        }

        private static func output(_ words: [String], input: String = "") async throws -> String {
            let result = try await Subprocess.run(
                .name(words[0]), arguments: Arguments(Array(words.dropFirst())), input: .string(input),
                output: .string(limit: 1 << 20), error: .combinedWithOutput)
            let text = result.standardOutput
            try #require(result.terminationStatus.isSuccess, "\(words[0]): \(text)")
            return String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
        }
    }
}
