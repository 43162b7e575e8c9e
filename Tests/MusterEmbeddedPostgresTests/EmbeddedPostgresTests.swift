import Glibc
import MusterEmbeddedPostgres
import MusterTestSupport
import SystemPackage
import Testing

@Suite struct EmbeddedPostgresTests {
    @Test func startedServerServesItsOwnSocketAndKeepsItsData() async throws {
        let place = try PrivateServer()
        let server = place.server()
        let first = try await server.start()
        #expect(first.provenance == .created)
        #expect(try await query("SELECT current_database() || ' ' || current_user", first) == "muster muster")
        #expect(try await query("SHOW listen_addresses", first) == "")
        #expect(try await query("SHOW server_encoding", first) == "UTF8")
        #expect(try await query("SHOW synchronous_commit", first) == "on")
        #expect(try await query("SHOW max_connections", first) == "60")
        let socketDirectory = try first.socketDirectory.stat()
        #expect(socketDirectory.permissions.rawValue & 0o777 == 0o700)
        _ = try await query("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)", first)
        let processID = try #require(await server.processID)
        #expect(try await server.start() == first, "a second start only says where the server is")

        await server.stop()
        #expect(!ProcessTree.isAlive(processID))
        #expect(await server.processID == nil)

        let second = try await server.start()
        #expect(second.provenance == .started)
        #expect(try await query("SELECT n FROM kept", second) == "7")
        await server.stop()
    }

    /// A kill of the supervisors does not end the server.
    @Test func serverWithoutSupervisorsIsStoppedToo() async throws {
        let place = try PrivateServer()
        let server = place.server()
        _ = try await server.start()
        let processID = try #require(await server.processID)
        let directory = place.root.appending("data").string
        let supervisors = ProcessTree.descendants(of: getpid()).filter {
            let words = ProcessTree.commandLine(of: $0)
            return words.contains("muster-postgres") && words.contains(directory)
        }
        try #require(supervisors.count == 2)
        for supervisor in supervisors { try #require(kill(supervisor, SIGKILL) == 0) }
        await server.waitUntilExit()
        #expect(ProcessTree.isAlive(processID))
        await server.stop()
        #expect(!ProcessTree.isAlive(processID))
    }

    @Test func committedRowsSurviveAnImmediateShutdown() async throws {
        let place = try PrivateServer()
        let server = place.server()
        let endpoint = try await server.start()
        _ = try await query("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)", endpoint)
        let processID = try #require(await server.processID)
        let program = FilePath(try #require(ProcessTree.commandLine(of: processID).first))
        await server.stop(.immediate)
        let control = try await TestProcess.start(
            program.removingLastComponent().appending("pg_controldata"),
            arguments: [place.root.appending("data").string],
            environment: ["LC_ALL": "C"]
        )
        // A server that shuts down properly leaves "shut down".
        let line = try await control.waitForLine(containing: "Database cluster state:")
        #expect(line.hasSuffix(" in production"))
        let again = try await server.start()
        #expect(try await query("SELECT n FROM kept", again) == "7")
        await server.stop()
    }

    @Test(.enabled(if: PrivateServer.isRoot))
    func rootRunsTheServerUnderAnAccountThatOwnsOnlyItsDirectories() async throws {
        let place = try PrivateServer()
        let server = place.server()
        _ = try await server.start()
        let processID = try #require(await server.processID)
        let account = try #require(ProcessTree.userID(of: processID))
        #expect(account != 0)
        for name in ["data", "log", "run"] {
            #expect(try place.root.appending(name).stat().userID.rawValue == account)
        }
        for path in [place.stateDirectory, place.root, place.root.appending("owner.lock")] {
            #expect(try path.stat().userID.rawValue == 0)
        }
        await server.stop()
    }

    @Test func serverLivesInASessionThatNoTerminalReaches() async throws {
        let place = try PrivateServer()
        let server = place.server()
        _ = try await server.start()
        let processID = try #require(await server.processID)
        #expect(getsid(processID) != getsid(0))
        #expect(getpgid(processID) != getpgid(0))
        await server.stop()
    }

    @Test func secondStartOnTheSameStateDirectoryIsRefused() async throws {
        let place = try PrivateServer()
        let servers = [place.server(), place.server()]
        let outcomes = await withTaskGroup(of: Result<EmbeddedPostgres.Endpoint, any Error>.self) { group in
            for server in servers {
                group.addTask {
                    do { return .success(try await server.start()) } catch { return .failure(error) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var winners: [EmbeddedPostgres.Endpoint] = []
        for outcome in outcomes {
            switch outcome {
            case .success(let endpoint):
                winners.append(endpoint)
            case .failure(let error):
                let holder = try #require(error as? EmbeddedPostgresError)
                guard case .inUse(_, let processID) = holder else { throw error }
                #expect(processID == nil || processID == getpid())
            }
        }
        #expect(winners.count == 1)
        #expect(try await query("SELECT 1", try #require(winners.first)) == "1")
        for server in servers { await server.stop() }
    }

    @Test func interruptedInitializationIsNeverTakenForACluster() async throws {
        let place = try PrivateServer()
        // An initdb that dies half-way, as by a power cut.
        let binaries = place.directory.path.appending("bin")
        try #require(mkdir(binaries.string, 0o755) == 0)
        let real = try await EmbeddedPostgresTests.binaryDirectory()
        try #require(symlink(real.appending("postgres").string, binaries.appending("postgres").string) == 0)
        try write(
            """
            #!/bin/sh
            while [ "$1" != -D ]; do shift; done
            echo 15 >"$2/PG_VERSION"
            echo "out of luck" >&2
            kill -9 $$
            """,
            to: binaries.appending("initdb"),
            permissions: [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute]
        )
        let broken = place.server(environment: ["MUSTER_PG_BINDIR": binaries.string])
        await #expect {
            _ = try await broken.start()
        } throws: { error in
            guard case .toolFailed("initdb", _, let output)? = error as? EmbeddedPostgresError else { return false }
            return output.contains("out of luck")
        }
        #expect(throws: (any Error).self) { try place.root.appending("data").stat() }

        let server = place.server()
        let endpoint = try await server.start()
        #expect(endpoint.provenance == .created)
        #expect(try await query("SELECT 1", endpoint) == "1")
        let names = try await EmbeddedPostgresTests.names(in: place.root)
        #expect(!names.contains { $0.hasPrefix("data.new") }, "the half-made directory was removed")
        await server.stop()
    }

    @Test func failedStartCarriesTheServersLog() async throws {
        let place = try PrivateServer()
        let server = place.server { $0.settings = ["shared_buffers": "nonsense"] }
        await #expect {
            _ = try await server.start()
        } throws: { error in
            guard case .serverExited(_, let log)? = error as? EmbeddedPostgresError else { return false }
            return log.contains("shared_buffers")
        }
        let sound = place.server()
        #expect(try await query("SELECT 1", try await sound.start()) == "1")
        await sound.stop()
    }

    @Test func missingBinariesAreNamedWithTheirPackage() async throws {
        let place = try PrivateServer()
        let server = place.server(environment: ["MUSTER_PG_BINDIR": "/nonexistent"])
        await #expect(throws: EmbeddedPostgresError.binaryDirectoryUnusable(path: "/nonexistent", missing: "initdb")) {
            _ = try await server.start()
        }
        let error = EmbeddedPostgresError.serverBinariesNotFound(searched: ["/usr/lib/postgresql/*/bin"])
        #expect("\(error)".contains("apt-get install postgresql"))
    }

    @Test func dataOfAnotherMajorVersionIsRefusedByName() async throws {
        let place = try PrivateServer()
        let server = place.server()
        _ = try await server.start()
        await server.stop()
        try write("9\n", to: place.root.appending("data/PG_VERSION"))
        await #expect {
            _ = try await server.start()
        } throws: { error in
            guard case .versionMismatch(_, _, "9", let found)? = error as? EmbeddedPostgresError else { return false }
            return !found.isEmpty
        }
    }

    /// The directory of the binaries that are found here.
    static func binaryDirectory() async throws -> FilePath {
        let place = try PrivateServer()
        let server = place.server()
        _ = try await server.start()
        let words = ProcessTree.commandLine(of: try #require(await server.processID))
        await server.stop()
        return FilePath(try #require(words.first)).removingLastComponent()
    }

    static func names(in directory: FilePath) async throws -> [String] {
        let process = try await TestProcess.start("/bin/ls", arguments: ["-a", directory.string])
        try await process.waitForExit()
        return process.standardOutput.split(separator: "\n").map(String.init)
    }
}
