import MusterTestSupport
import SystemPackage
import Testing

@Suite struct ServerTests {
    @Test func schemasAreEmptyAndApart() async throws {
        let postgres = try await TestPostgres.shared()
        let first = try await postgres.makeSchema()
        let second = try await postgres.makeSchema("other")
        #expect(first.name != second.name && second.name.hasPrefix("other_"))
        try await postgres.execute("CREATE TABLE t (n int); INSERT INTO t VALUES (1)", conninfo: first.conninfo)
        #expect(try await postgres.execute("SELECT n FROM t", conninfo: first.conninfo) == "1\n")
        #expect(try await postgres.execute("SELECT current_schema()", conninfo: second.conninfo) == "\(second.name)\n")
        await #expect(throws: TestPostgres.StatementFailed.self) {
            try await postgres.execute("SELECT n FROM t", conninfo: second.conninfo)
        }
    }

    @Test func databasesComeAndGo() async throws {
        let postgres = try await TestPostgres.shared()
        let database = try await postgres.makeDatabase()
        #expect(
            try await postgres.execute("SELECT current_database()", conninfo: database.conninfo) == "\(database.name)\n"
        )
        try await postgres.dropDatabase(database.name)
        await #expect(throws: TestPostgres.StatementFailed.self) {
            try await postgres.execute("SELECT 1", conninfo: database.conninfo)
        }
    }

    @Test func ownClusterKeepsItsDataOverRestarts() async throws {
        let postgres = try await TestPostgres.start(durability: .full)
        #expect(try await postgres.execute("SHOW fsync") == "on\n")
        try await postgres.execute("CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
        let conninfo = await postgres.conninfo
        try await postgres.restart(.immediate)
        #expect(try await postgres.execute("SELECT n FROM t", conninfo: conninfo) == "1\n")
        try await postgres.restart(.fast)
        #expect(try await postgres.execute("SELECT n FROM t", conninfo: conninfo) == "1\n")
        await postgres.stop()
        await #expect(throws: TestPostgres.StatementFailed.self) { try await postgres.execute("SELECT 1") }
    }

    @Test func standbyHasWhatItsSourceHasCommittedAndTakesOver() async throws {
        let source = try await TestPostgres.start(settings: PostgresCopy.sourceSettings(isSynchronous: true))
        let copy = try await PostgresCopy(of: source)
        try await copy.copySource()
        try await copy.start(as: .standby)
        try await source.execute("CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
        try await source.crash()
        try await copy.promote()
        try await source.execute("INSERT INTO t VALUES (2)", conninfo: copy.conninfo)
        #expect(try await source.execute("SELECT n FROM t ORDER BY n", conninfo: copy.conninfo) == "1\n2\n")
        try await copy.stop()
    }

    @Test func restoredCopyHasWhatItsSourceHadThen() async throws {
        let source = try await TestPostgres.start(settings: PostgresCopy.sourceSettings())
        let backup = try await PostgresCopy(of: source)
        let copy = try await PostgresCopy(of: source)
        try await source.execute("CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
        try await backup.copySource()
        try await copy.copy(backup)
        try await source.execute("INSERT INTO t VALUES (2)")
        await source.stop()
        for one in [backup, copy] {
            try await one.start(as: .restored)
            #expect(try await source.execute("SELECT n FROM t", conninfo: one.conninfo) == "1\n")
            try await one.crash()
        }
    }

    @Test func nginxServesRangesAndLogsThem() async throws {
        let directory = try TemporaryDirectory(permissions: .ownerReadWriteExecute)
        let bytes = ScriptedOrigin.Content.seeded(seed: 1, size: 5000).allBytes
        let file = try FileDescriptor.open(
            directory.path.appending("f"),
            .writeOnly,
            options: .create,
            permissions: .ownerReadWrite
        )
        try file.closeAfter { _ = try file.writeAll(bytes) }
        let nginx = try await NginxServer.start(
            documentRoot: directory.path,
            limitRate: 10_000_000,
            serverDirectives: "location = /teapot { return 418; }"
        )
        let client = try await RawClient.connect(port: nginx.port)
        try await client.send(
            RawClient.request("/f?x", headers: ["Range: bytes=10-19"])
                + RawClient.request("/teapot", headers: ["Connection: close"])
        )
        let received = try await client.received.wait(for: "the answers") { $0.isClosed }
        #expect(received.head.hasPrefix("HTTP/1.1 206 "))
        #expect(Array(received.body.prefix(10)) == Array(bytes[10..<20]))
        let requests = try await nginx.waitForRequests(count: 2)
        #expect(requests[0].uri == "/f?x")
        #expect(requests[0].range == "bytes=10-19")
        #expect(requests[0].status == 206)
        #expect(requests[0].bodyBytesSent == 10)
        #expect(requests[1].status == 418)
        #expect(requests[1].range == nil)
        let processes = nginx.processIDs
        try await nginx.stop()
        for process in processes { try await ProcessTree.waitForEnd(of: process) }
    }
}
