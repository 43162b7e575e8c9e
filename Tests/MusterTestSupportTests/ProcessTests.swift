import Glibc
import MusterTestSupport
import SystemPackage
import Testing

@Suite struct ProcessTests {
    private func shell(_ script: String, input: TestProcess.Input = .none) async throws -> TestProcess {
        try await TestProcess.start("/bin/sh", arguments: ["-c", script], input: input)
    }

    @Test func outputAndStatusAreKept() async throws {
        let process = try await shell("echo out; echo err >&2; exit 3")
        #expect(try await process.waitForExit() == .exited(3))
        #expect(process.standardOutput == "out\n")
        #expect(process.standardError == "err\n")
        #expect(process.exit == .exited(3))
    }

    @Test func linesCanBeWaitedForWhileItRuns() async throws {
        let process = try await shell("echo ready; read -r line; echo more", input: .open)
        #expect(try await process.waitForLine(containing: "read") == "ready")
        #expect(process.exit == nil)
        try process.signal(SIGKILL)
        #expect(try await process.waitForExit() == .signaled(SIGKILL))
    }

    @Test func waitEndsWithTheProcessAndShowsWhatItPrinted() async throws {
        let process = try await shell("echo something else")
        let error = try await #require(throws: TimedOut.self) {
            try await process.waitForLine(containing: "never printed")
        }
        #expect("\(error)".contains("something else"))
    }

    @Test func waitIsBounded() async throws {
        let process = try await shell("echo before; read -r line", input: .open)
        let error = try await #require(throws: TimedOut.self) {
            try await process.waitForLine(containing: "never", limit: .milliseconds(50))
        }
        #expect("\(error)".contains("still running"))
        try await process.killTree()
    }

    @Test func inputAndEnvironmentAndDirectoryReachIt() async throws {
        let process = try await TestProcess.start(
            "/bin/sh",
            arguments: ["-c", "cat; echo \"$MT_GIVEN\"; pwd; echo \"${HOME-none}\""],
            environment: ["MT_GIVEN": "value", "HOME": nil],
            workingDirectory: "/usr",
            input: .text("typed\n")
        )
        try await process.waitForExit()
        #expect(process.standardOutput == "typed\nvalue\n/usr\nnone\n")
    }

    @Test func longOutputIsBounded() async throws {
        let process = try await TestProcess.start(
            "/bin/sh",
            arguments: ["-c", "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last"],
            outputLimitBytes: 10_000
        )
        try await process.waitForExit()
        #expect(process.standardOutput.utf8.count < 30_000)
        #expect(process.standardOutput.hasSuffix("last\n"))
    }

    @Test func stoppedProcessGoesOnWhenItIsContinued() async throws {
        // There is no trap, because a shell with a trap may block in `read` before it handles the signal.
        let process = try await shell("echo up; read -r line", input: .open)
        try await process.waitForLine(containing: "up")
        try process.signal(SIGSTOP)
        try process.signal(SIGCONT)
        try process.signal(SIGUSR1)
        #expect(try await process.waitForExit() == .signaled(SIGUSR1))
    }

    @Test func wholeTreeIsKilled() async throws {
        // The grandchild has left the process group.
        let process = try await shell("setsid sh -c 'echo $$; sleep 3600' & wait")
        try await process.waitForOutput { $0.contains("\n") }
        let grandchild = try #require(Int32(process.standardOutput.split(separator: "\n")[0]))
        #expect(ProcessTree.isAlive(grandchild))
        try await process.killTree()
        try await ProcessTree.waitForEnd(of: grandchild)
    }

    @Test func missingProgramIsReported() async throws {
        await #expect(throws: TestProcess.LaunchFailed.self) { try await TestProcess.start("/nonexistent") }
    }

    private static let variable = "MUSTER_TEST_DYING"

    /// Not a test by itself: the process that the next test kills.
    @Test(.enabled(if: getenv(variable) != nil))
    func processThatDies() async throws {
        let directory = try TemporaryDirectory()
        let child = try await shell("echo up; read -r line", input: .open)
        try await child.waitForLine(containing: "up")
        let nginx = try await NginxServer.start(documentRoot: directory.path)
        let workers = nginx.processIDs.map(String.init).joined(separator: ",")
        let postgres = try await TestPostgres.start()
        let server = try #require(await postgres.processID)
        print("started \(directory.path) \(child.processID),\(server),\(workers)")
        fflush(nil)
        try await child.waitForExit(limit: .seconds(600))
        withExtendedLifetime((directory, nginx, postgres)) {}
    }

    @Test func killedTestProcessLeavesNothingBehind() async throws {
        let process = try await TestProcess.rerunTest(
            named: "processThatDies",
            environment: [Self.variable: "1"]
        )
        let line = try await process.waitForLine(containing: "started ", in: .standardOutput)
        let words = line.split(separator: " ")
        let processes = try #require(words.count == 3 ? words[2].split(separator: ",").compactMap { Int32($0) } : nil)
        #expect(processes.count >= 4)
        #expect(processes.allSatisfy { ProcessTree.isAlive($0) })
        try process.signal(SIGKILL)
        try await process.waitForExit()
        for each in processes { try await ProcessTree.waitForEnd(of: each) }
        let directory = FilePath(String(words[1]))
        while (try? directory.stat()) != nil { await Task.yield() }
    }
}
