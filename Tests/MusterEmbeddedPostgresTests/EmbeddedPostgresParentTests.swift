import Glibc
import MusterEmbeddedPostgres
import MusterTestSupport
import SystemPackage
import Testing

/// The fate of the server when its parent, the process that started it, dies. The parent is this test bundle, run again
/// for one test.
@Suite struct EmbeddedPostgresParentTests {
    private static let variable = "MUSTER_TEST_PARENT_OF"

    /// Not a test by itself: the parent that the other tests kill.
    @Test(.enabled(if: getenv(variable) != nil))
    func parentOfAServer() async throws {
        let stateDirectory = FilePath(String(cString: try #require(getenv(Self.variable))))
        let server = try PrivateServer().server(in: stateDirectory)
        let endpoint = try await server.start()
        let processID = try #require(await server.processID)
        print("server \(processID) \(endpoint.provenance) account \(ProcessTree.userID(of: processID) ?? 0)")
        fflush(nil)
        // Waits forever, since the server is not stopped.
        await server.waitUntilExit()
    }

    /// Starts a parent, and returns it with the process id of its server.
    private func startParent(
        _ place: PrivateServer,
        prefix: [String] = []
    ) async throws -> (parent: TestProcess, serverID: Int32, line: String) {
        let parent = try await TestProcess.rerunTest(
            named: "parentOfAServer",
            environment: [Self.variable: place.stateDirectory.string],
            prefix: prefix
        )
        let line = try await parent.waitForLine(containing: "server ", in: .standardOutput)
        let words = line.split(separator: " ")
        return (parent, try #require(words.count > 1 ? Int32(words[1]) : nil), line)
    }

    @Test func killedParentTakesItsServerAlong() async throws {
        let place = try PrivateServer()
        let (parent, serverID, _) = try await startParent(place)
        #expect(ProcessTree.isAlive(serverID))
        try parent.signal(SIGKILL)
        try await parent.waitForExit()
        try await ProcessTree.waitForEnd(of: serverID)
        let log = try read(try await Self.newestLog(place))
        #expect(log.contains("fast shutdown"))
    }

    @Test func watcherThatIsKilledIsFollowedByAnother() async throws {
        let place = try PrivateServer()
        let (parent, serverID, _) = try await startParent(place)
        let supervisors = Self.supervisors(of: parent)
        let watcher = try #require(supervisors.last)
        try #require(supervisors.count == 2)
        try #require(kill(watcher, SIGKILL) == 0)
        try await ProcessTree.waitForEnd(of: watcher)
        #expect(ProcessTree.isAlive(serverID))
        // The next watcher notices the death of the parent, even if the watcher starts only afterwards.
        try parent.signal(SIGKILL)
        try await parent.waitForExit()
        try await ProcessTree.waitForEnd(of: serverID)
    }

    @Test func serverThatIsAboutToBeStoppedIsWaitedForRatherThanAdopted() async throws {
        let place = try PrivateServer()
        let (parent, serverID, _) = try await startParent(place)
        // The supervisor will stop the server, but not yet: the supervisor itself is suspended.
        let supervisors = Self.supervisors(of: parent)
        try #require(!supervisors.isEmpty)
        for supervisor in supervisors { try #require(kill(supervisor, SIGSTOP) == 0) }
        try parent.signal(SIGKILL)
        try await parent.waitForExit()
        let impatient = place.server { $0.startLimit = .seconds(1) }
        await #expect {
            _ = try await impatient.start()
        } throws: { error in
            guard case .predecessorRunning(let predecessor, _)? = error as? EmbeddedPostgresError else { return false }
            // The server itself runs, so continuing it would not help: the help names the supervisors.
            let words = supervisors.sorted().map(String.init).joined(separator: " ")
            return predecessor.processIDs == [serverID] && predecessor.help.contains("kill -CONT \(words))")
        }
        #expect(ProcessTree.isAlive(serverID))

        for supervisor in supervisors { try #require(kill(supervisor, SIGCONT) == 0) }
        let server = place.server()
        let endpoint = try await server.start()
        #expect(endpoint.provenance == .started)
        #expect(await server.processID != serverID)
        #expect(try await query("SELECT 1", endpoint) == "1")
        await server.stop()
    }

    @Test func stateDirectoryOfALivingParentIsInUse() async throws {
        let place = try PrivateServer()
        let (parent, _, _) = try await startParent(place)
        let server = place.server()
        await #expect {
            _ = try await server.start()
        } throws: { error in
            guard case .inUse(_, parent.processID)? = error as? EmbeddedPostgresError else { return false }
            return true
        }
        try await parent.killTree()
    }

    @Test func leftoverServerIsAdoptedAndStopped() async throws {
        let place = try PrivateServer()
        let (parent, serverID, _) = try await startParent(place)
        // The supervisor and its watcher die before the parent, so that no process stops the server. The parent is suspended
        // first, because it would hang up as soon as it noticed their death.
        try parent.signal(SIGSTOP)
        let supervisors = Self.supervisors(of: parent)
        try #require(!supervisors.isEmpty)
        for supervisor in supervisors { _ = kill(supervisor, SIGKILL) }
        try parent.signal(SIGKILL)
        try await parent.waitForExit()
        #expect(ProcessTree.isAlive(serverID))

        let server = place.server()
        let endpoint = try await server.start()
        #expect(endpoint.provenance == .adopted)
        #expect(await server.processID == serverID)
        #expect(try await query("SELECT 1", endpoint) == "1")
        await server.stop()
        #expect(!ProcessTree.isAlive(serverID))
    }

    /// A shutdown that waits forever for one of the server's processes would block every later start.
    @Test func leftoverServerWhoseShutdownHangsIsEndedByForce() async throws {
        let place = try PrivateServer()
        let (parent, serverID, _) = try await startParent(place)
        try parent.signal(SIGSTOP)
        for supervisor in Self.supervisors(of: parent) { _ = kill(supervisor, SIGKILL) }
        let checkpointer = try #require(
            ProcessTree.descendants(of: serverID).first {
                ProcessTree.commandLine(of: $0).joined(separator: " ").contains("checkpointer")
            })
        try #require(kill(checkpointer, SIGSTOP) == 0)
        try parent.signal(SIGKILL)
        try await parent.waitForExit()
        try #require(kill(serverID, SIGINT) == 0)
        let file = place.root.appending("data/postmaster.pid")
        while try !read(file).contains("stopping") { await Task.yield() }

        let server = place.server { $0.stopLimit = .seconds(1) }
        let endpoint = try await server.start()
        #expect(endpoint.provenance == .started)
        #expect(!ProcessTree.isAlive(serverID))
        #expect(try await query("SELECT 1", endpoint) == "1")
        await server.stop()
    }

    /// The server's storage may hang, or the server may be suspended. The user has to learn which process the start waits for.
    @Test func serverThatNeitherAnswersNorEndsIsNamedWhileItIsWaitedFor() async throws {
        let place = try PrivateServer()
        let (parent, serverID, _) = try await startParent(place)
        try #require(kill(serverID, SIGSTOP) == 0)
        try parent.signal(SIGKILL)
        try await parent.waitForExit()

        let server = place.server()
        let (waits, continuation) = AsyncStream.makeStream(of: EmbeddedPostgres.StartNews.self)
        async let start = server.start { continuation.yield($0) }
        guard case .waiting(let predecessor)? = await waits.first(where: { _ in true }) else {
            Issue.record("nothing was told of it")
            return
        }
        #expect(predecessor.processIDs == [serverID])
        #expect(predecessor.description.contains("process \(serverID)"))
        #expect(predecessor.description.contains(place.root.appending("data").string))
        #expect(predecessor.help.contains("kill -CONT \(serverID)"))

        try #require(kill(serverID, SIGCONT) == 0)
        #expect(try await start.provenance == .started)
        await server.stop()
    }

    /// A backend that was suspended when its server was killed keeps the server's memory. Nothing in the data directory names it.
    @Test func backendThatOutlivesAKilledServerIsNamedWhileItIsWaitedFor() async throws {
        let place = try PrivateServer()
        let (parent, serverID, _) = try await startParent(place)
        // The session prints its process ID, and then sleeps.
        let session = try await TestProcess.start(
            "/usr/bin/env",
            arguments: [
                "psql", "-XAtq", "-h", place.root.appending("run").string, "-U", "muster", "muster",
                "-c", "SELECT 'backend ' || pg_backend_pid()", "-c", "SELECT pg_sleep(600)",
            ])
        let line = try await session.waitForLine(containing: "backend ", in: .standardOutput)
        let backendID = try #require(line.split(separator: " ").last.flatMap { Int32($0) })
        try #require(kill(backendID, SIGSTOP) == 0)
        try parent.signal(SIGKILL)
        try #require(kill(serverID, SIGKILL) == 0)
        try await parent.waitForExit()

        let server = place.server()
        let (waits, continuation) = AsyncStream.makeStream(of: EmbeddedPostgres.StartNews.self)
        async let start = server.start { continuation.yield($0) }
        guard case .waiting(let predecessor)? = await waits.first(where: { _ in true }) else {
            Issue.record("nothing was told of it")
            return
        }
        #expect(predecessor.processIDs.contains(backendID), "\(predecessor)")
        #expect(predecessor.help.contains("\(backendID)"))

        try #require(kill(backendID, SIGKILL) == 0)
        #expect(try await start.provenance == .started)
        await server.stop()
        try await session.waitForExit()
    }

    @Test func reusedProcessIDDoesNotHinderTheStart() async throws {
        let place = try PrivateServer()
        let server = place.server()
        let endpoint = try await server.start()
        let serverID = try #require(await server.processID)
        let account = try #require(ProcessTree.userID(of: serverID))
        let file = place.root.appending("data/postmaster.pid")
        let text = try read(file)
        _ = try await query("CREATE TABLE kept (n int)", endpoint)
        await server.stop(.immediate)

        // A process of the server's account now has the number of the old server.
        let sleeper = try await TestProcess.start(
            PrivateServer.isRoot ? "/usr/bin/setpriv" : "/bin/sleep",
            arguments: PrivateServer.isRoot
                ? ["--reuid=\(account)", "--regid=\(account)", "--clear-groups", "/bin/sleep", "3600"] : ["3600"]
        )
        while ProcessTree.userID(of: sleeper.processID) != account { await Task.yield() }
        let rest = text.drop { $0 != "\n" }
        try write("\(sleeper.processID)\(rest)", to: file)
        try #require(chown(file.string, account, account) == 0)

        #expect(try await query("SELECT count(*) FROM kept", try await server.start()) == "0")
        #expect(ProcessTree.isAlive(sleeper.processID))
        await server.stop()
        try await sleeper.killTree()
    }

    @Test(.enabled(if: PrivateServer.isRoot && access("/usr/bin/setpriv", X_OK) == 0))
    func normalUserRunsTheServerAsThemselves() async throws {
        let place = try PrivateServer()
        let user: UInt32 = 65534
        try #require(chown(place.directory.path.string, user, user) == 0)
        let (parent, serverID, line) = try await startParent(
            place,
            prefix: ["/usr/bin/setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
        )
        #expect(line.hasSuffix("account \(user)"))
        #expect(ProcessTree.userID(of: serverID) == user)
        try parent.signal(SIGKILL)
        try await parent.waitForExit()
        try await ProcessTree.waitForEnd(of: serverID)

        // Root starts the same cluster again, under its owner's account.
        let server = place.server()
        #expect(try await server.start().provenance == .started)
        #expect(ProcessTree.userID(of: try #require(await server.processID)) == user)
        await server.stop()
    }

    private static func supervisors(of parent: TestProcess) -> [Int32] {
        ProcessTree.descendants(of: parent.processID).filter {
            ProcessTree.commandLine(of: $0).contains("muster-postgres")
        }
    }

    private static func newestLog(_ place: PrivateServer) async throws -> FilePath {
        let directory = place.root.appending("log")
        let names = try await EmbeddedPostgresTests.names(in: directory).filter { $0.hasSuffix(".log") }
        return directory.appending(try #require(names.first))
    }
}
