import FoundationEssentials
import MusterAPI
import MusterCore
import SystemPackage
import Testing

@testable import MusterCommandLine

@Suite("Commands run by events")
struct EventRunnerTests {
    /// A directory of its own, which is removed afterwards.
    private func withDirectory(_ body: (String) async throws -> Void) async throws {
        let path = FileManager.default.temporaryDirectory.path + "/muster-on-\(RandomToken.make())"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await body(path)
    }

    private func command(_ script: String, _ directory: String) -> EventCommand {
        EventCommand(words: ["sh", "-c", "cd '\(directory)' && \(script)"], temporaryDirectory: directory)
    }

    private func text(_ path: String) -> String {
        (try? Data(contentsOf: URL(filePath: path))).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Runs the log's events through a command, up to the end of the log.
    private func run(_ log: ScriptedLog, _ command: EventCommand) async throws {
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        defer { try? null.close() }
        let console = Console(json: false, output: null, errorOutput: null)
        try await EventRunner(
            client: log.client(), consumer: "c", groups: "*", types: [], command: command, console: console
        ).run()
    }

    /// A failover to a standby that was behind, while the command runs for an event that is lost: the new log has another event at its position.
    @Test func eventsOfANewLogAreDealtWithAtThePositionsOfLostOnes() async throws {
        try await withDirectory { directory in
            var (lost, found) = (Samples.event("group.succeeded", [:]), Samples.event("group.failed", [:]))
            (lost.position, found.position) = (1, 1)
            let log = ScriptedLog(.init(events: [lost], end: 1))
            let script = "echo $MUSTER_EVENT_TYPE >> told; while [ ! -e go ]; do sleep 0.02; done"
            async let running: Void = run(log, command(script, directory))
            while text(directory + "/told").isEmpty { await Task.yield() }
            log.change { ($0.events, $0.log) = ([found], "second") }
            try Data().write(to: URL(filePath: directory + "/go"))
            _ = try? await running
            #expect(text(directory + "/told") == "\(lost.type)\n\(found.type)\n")
            #expect(log.place == 1)
        }
    }

    /// The same while no command runs: the acknowledgement of a lost event skips no event of the new log.
    @Test func eventsOfANewLogAreDealtWithWhereTheirPositionsWereAcknowledged() async throws {
        try await withDirectory { directory in
            var (lost, found) = (Samples.event("group.succeeded", [:]), Samples.event("group.failed", [:]))
            (lost.position, found.position) = (1, 1)
            let log = ScriptedLog(.init(events: [lost], end: 1, endsConsumers: false))
            async let running: Void = run(log, command("echo $MUSTER_EVENT_TYPE >> told", directory))
            while log.place < 1 { await Task.yield() }
            log.change { state in
                (state.events, state.log, state.place, state.endsConsumers) = ([found], "second", 0, true)
            }
            _ = try? await running
            #expect(text(directory + "/told") == "\(lost.type)\n\(found.type)\n")
            #expect(log.place == 1)
        }
    }

    @Test func theCommandGetsTheEventAndItsFacts() async throws {
        try await withDirectory { directory in
            let event = Samples.event("group.succeeded", ["state": .string("succeeded")])
            let script =
                #"cat > in && printf '%s %s %s' "$MUSTER_EVENT_TYPE" "$MUSTER_EVENT_ID" "$MUSTER_GROUP" > facts"#
            #expect(await command(script, directory).run(for: event) == nil)
            #expect(text(directory + "/facts") == "dev.muster.group.succeeded.v1 e nightly")
            let expected = try Console.encoded(event) + "\n"
            #expect(text(directory + "/in") == expected)
            // The file with the command's input is gone.
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory).sorted() == ["facts", "in"])
        }
    }

    @Test func aCommandMayLeaveItsInputUnread() async throws {
        try await withDirectory { directory in
            let event = Samples.event("task.failed", ["text": .string(String(repeating: "x", count: 200_000))])
            #expect(await command("true", directory).run(for: event) == nil)
        }
    }

    @Test func aShellsOwnWordIsNoCommand() async throws {
        try await withDirectory { directory in
            let event = Samples.event("group.failed", [:])
            let exit = EventCommand(words: ["exit"], temporaryDirectory: directory)
            #expect(await exit.run(for: event)?.hasPrefix("can't be run") == true)
            let odd = EventCommand(
                words: ["sh", "-c", "test \"$#-$1-$2\" = '2-a b-$HOME'", "x", "a b", "$HOME"],
                temporaryDirectory: directory)
            #expect(await odd.run(for: event) == nil)
        }
    }

    @Test func howACommandFailedIsTold() async throws {
        try await withDirectory { directory in
            let event = Samples.event("group.failed", [:])
            #expect(await command("exit 3", directory).run(for: event) == "exited with 3")
            #expect(await command("kill -9 $$", directory).run(for: event) == "was ended by signal 9")
            let missing = EventCommand(words: ["/nonexistent/program"], temporaryDirectory: directory)
            #expect(await missing.run(for: event)?.hasPrefix("can't be run") == true)
        }
    }

    @Test func aMistypedCommandIsFoundOutBeforeTheFirstEvent() async {
        for word in ["no-such-program-anywhere", "/nonexistent/program", "./nonexistent", "/etc/passwd"] {
            let command = EventCommand(words: [word], temporaryDirectory: "/tmp")
            await #expect(throws: CommandFailure.self, "\(word)") { try await command.check() }
        }
        await #expect(throws: Never.self) {
            try await EventCommand(words: ["/bin/sh"], temporaryDirectory: "/tmp").check()
        }
    }

    @Test(.timeLimit(.minutes(2))) func cancellationEndsTheCommandAndWhatItHasStarted() async throws {
        try await withDirectory { directory in
            let event = Samples.event("group.failed", [:])
            #expect(await command("mkfifo started end", directory).run(for: event) == nil)
            // The pipe ends with its last holder: the command and the process that it has started.
            let script = "exec 3> end && echo yes > started && { sleep 600 & wait; }"
            let watch = command("cat end > /dev/null", directory)
            async let end = watch.run(for: event)
            await withTaskGroup(of: String?.self) { tasks in
                tasks.addTask { await command(script, directory).run(for: event) }
                #expect(await command("read line < started", directory).run(for: event) == nil)
                tasks.cancelAll()
                #expect(await tasks.next() != .some(nil))
            }
            #expect(await end == nil)
        }
    }

    @Test func eventsAreDealtWithInOrderAndAcknowledgedOneByOne() async throws {
        try await withDirectory { directory in
            let events = (1...5).map { Samples.event("task.succeeded", [:], position: $0) }
            let log = ScriptedLog(.init(events: events, end: 9))
            try await run(log, command("sed 's/.*sequence\":\"0*//; s/\".*//' >> seen", directory))
            let acknowledged = log.requests.filter { $0.hasPrefix("POST") }
            #expect(acknowledged.count == 6, "five events, and once the rest of the log, which has none that is wanted")
            #expect(text(directory + "/seen") == "1\n2\n3\n4\n5\n")
        }
    }

    @Test func anEventWhoseCommandFailsComesAgainAndTheNextOnesWait() async throws {
        try await withDirectory { directory in
            let events = (1...2).map { Samples.event("task.succeeded", [:], position: $0) }
            let log = ScriptedLog(.init(events: events, end: 2))
            // The first try fails.
            let script = "echo run >> seen; test $(wc -l < seen) -gt 1"
            try await run(log, command(script, directory))
            #expect(text(directory + "/seen").split(separator: "\n").count == 3)
            #expect(log.place == 2)
        }
    }

    @Test func eventsThatAreNotKeptAnyMoreArePassedOver() async throws {
        try await withDirectory { directory in
            let events = (7...8).map { Samples.event("task.succeeded", [:], position: $0) }
            let log = ScriptedLog(.init(events: events, end: 8, oldest: 7))
            try await run(log, command("echo run >> seen", directory))
            #expect(text(directory + "/seen").split(separator: "\n").count == 2)
        }
    }
}
