import MusterAPI
import MusterCore
import SystemPackage
import Testing

@testable import MusterCommandLine

@Suite("Waiting for a group")
struct GroupWatcherTests {
    /// Watches the group to its end and returns it. Output goes to /dev/null unless a descriptor is given.
    private func watch(
        _ log: ScriptedLog,
        news: GroupWatcher.News = .none,
        deadline: ContinuousClock.Instant? = nil,
        output: FileDescriptor? = nil,
        errorOutput: FileDescriptor? = nil,
        since: Timestamp? = nil,
        maxRate: Int64? = nil
    ) async throws -> GroupDocument {
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        defer { try? null.close() }
        let console = Console(json: false, output: output ?? null, errorOutput: errorOutput ?? output ?? null)
        var watcher = GroupWatcher(
            client: log.client(), group: "nightly", console: console, patience: Patience(console: console),
            environment: [:])
        watcher.since = since
        watcher.maxRate = maxRate
        return try await watcher.untilTerminal(deadline: deadline, news: news).group
    }

    private func ended(_ state: GroupState, position: Int64) -> EventDocument {
        Samples.event("group.\(state.rawValue)", Samples.end(state), position: position)
    }

    @Test func theEndRingsAndIsLookedAtAtOnce() async throws {
        let log = ScriptedLog(
            .init(
                events: [ended(.succeeded, position: 8)], end: 8,
                looks: [Samples.group(), Samples.group(state: .succeeded)]))
        // The watcher reads the end of the log first; only later events wake it.
        log.change { $0.end = 7 }
        #expect(try await watch(log).state == .succeeded)
        let looks = log.requests.filter { $0.hasPrefix("GET /v1/groups/") }
        #expect(looks.count == 2)
        #expect(
            log.requests.contains { $0.contains("after=7") && $0.contains("group=nightly") && $0.contains("wait=") })
    }

    @Test func anEndThatTheLogHasToldIsNotWaitedForOnceMore() async throws {
        let log = ScriptedLog(
            .init(
                events: [ended(.failed, position: 8)], end: 8,
                looks: [Samples.group(), Samples.group(state: .failed)]))
        #expect(try await watch(log, news: .failures(after: 7)).state == .failed)
        #expect(log.requests.count { $0.contains("wait=") } == 1)
    }

    @Test func bytesOfATaskThatStartsOverCountAsNew() async throws {
        let reason: JSONValue = .object(["kind": .string("changed"), "detail": .string("another ETag")])
        let facts = Samples.task("a", with: ["contentVersion": .integer(2), "reason": reason])
        let log = ScriptedLog(
            .init(
                events: [Samples.event("task.changed", facts, position: 8), ended(.succeeded, position: 9)], end: 7,
                looks: [Samples.group(state: .succeeded)]))
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        defer { try? null.close() }
        let console = Console(json: false, output: null, errorOutput: null)
        var watcher = GroupWatcher(
            client: log.client(), group: "nightly", console: console, patience: Patience(console: console),
            environment: [:])
        var start = Gain.Start(Samples.group(), at: .now)
        start.note([Samples.part("a", done: 100 << 20, total: nil)])
        watcher.start = start
        #expect(try await watcher.untilTerminal(news: .all(after: 7)).gain.bytes == 100 << 20)
    }

    @Test func anEndThatWasReopenedAtOnceIsNotMissed() async throws {
        let log = ScriptedLog(
            .init(
                events: [ended(.failed, position: 8)], end: 7,
                looks: [Samples.group(), Samples.group(state: .open, generation: 2)]))
        let document = try await watch(log)
        #expect(document.state == .failed)
    }

    @Test func aGroupThatIsDoneAlreadyIsNotWaitedFor() async throws {
        let log = ScriptedLog(.init(looks: [Samples.group(state: .failed)]))
        #expect(try await watch(log).state == .failed)
        #expect(try await watch(log, news: .failures(after: 7)).state == .failed)
        #expect(!log.requests.contains { $0.contains("wait=") })
    }

    /// What a watcher writes to its output.
    private func printed(_ body: (FileDescriptor) async throws -> Void) async throws -> String {
        let pipe = try FileDescriptor.pipe()
        try await body(pipe.writeEnd)
        try pipe.writeEnd.close()
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = try buffer.withUnsafeMutableBytes { try pipe.readEnd.read(into: $0) }
        try pipe.readEnd.close()
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    @Test func aPausedGroupIsNotSaidToGoOnWhenTimeIsUp() async throws {
        func message(_ group: GroupDocument) async throws -> String? {
            let failure = await #expect(throws: CommandFailure.self) {
                try await watch(ScriptedLog(.init(end: 0, looks: [group])), deadline: .now)
            }
            return failure?.message
        }
        var group = Samples.group(total: 3, succeeded: 1)
        #expect(try await message(group)?.hasSuffix("to see what it waits for: muster explain nightly") == true)
        (group.tasks.queued, group.tasks.paused) = (0, 2)
        #expect(
            try await message(group)?.hasSuffix("is paused; go on with: muster resume nightly") == true)
    }

    /// The limit is one of the whole command, not just of the time after the first answer.
    @Test(.timeLimit(.minutes(1))) func timeIsUpAlsoWhereNothingHasEverAnswered() async throws {
        let null = try FileDescriptor.open("/dev/null", .writeOnly)
        defer { try? null.close() }
        let console = Console(json: false, output: null, errorOutput: null)
        let client = MusterClient(servers: ["http://127.0.0.1:1"], token: nil) { _ in throw Unreachable("refused") }
        let watcher = GroupWatcher(
            client: client, group: "nightly", console: console, patience: Patience(console: console), environment: [:])
        await #expect(throws: CommandFailure.self) { try await watcher.lastPosition(deadline: .now) }
        await #expect(throws: CommandFailure.self) { try await watcher.untilTerminal(deadline: .now) }
    }

    @Test func theRateThatACommandAllowsIsSaidToBeWhatLimitsIt() async throws {
        let log = ScriptedLog(.init(end: 0, looks: [Samples.group()]))
        let text = try await printed { output in
            await #expect(throws: CommandFailure.self) {
                try await watch(log, deadline: .now, output: output, maxRate: 10)
            }
        }
        #expect(text.contains("it is limited to 10 B/s now"), "\(text)")
    }

    @Test func troubleIsToldOnceAndAgainWhenTheCommandStops() async throws {
        var group = Samples.group()
        group.trouble = [.init(kind: .httpStatus(503), tasks: 1)]
        let log = ScriptedLog(.init(end: 0, looks: [group], troubled: [Samples.troubled("a.bin")]))
        let text = try await printed { output in
            await #expect(throws: CommandFailure.self) {
                try await watch(log, deadline: .now + .milliseconds(400), output: output)
            }
        }
        let line = "nightly: 12/40 files, 1.2 GiB/2.6 GiB, 35.1 MiB/s, ETA 42s, 1 retrying"
        let trouble = "retrying: a.bin: 503 Service Unavailable, try 3 of 8 in 4s"
        #expect(text.split(separator: "\n").map(String.init) == [trouble, line, trouble, line])
    }

    @Test func troubleOfAnEarlierRunIsNotTold() async throws {
        var group = Samples.group()
        group.trouble = [.init(kind: .httpStatus(503), tasks: 2)]
        var fresh = Samples.troubled("b.bin")
        fresh.failure?.at = Timestamp(microseconds: Samples.moment.microseconds + 1_000_000)
        let log = ScriptedLog(
            .init(looks: [group, Samples.group(state: .succeeded)], troubled: [Samples.troubled("a.bin"), fresh]))
        let text = try await printed { _ = try await watch(log, output: $0, since: Samples.moment) }
        #expect(text.contains("retrying: b.bin") && !text.contains("a.bin"), "\(text)")
        log.change {
            ($0.troubled, $0.looks) = ([Samples.troubled("a.bin")], [group, Samples.group(state: .succeeded)])
        }
        let quiet = try await printed { _ = try await watch(log, output: $0, since: Samples.moment) }
        #expect(!quiet.contains("retrying"), "\(quiet)")
    }

    @Test func onlyFailuresAreNamedWhereOnlyTheseAreWanted() async throws {
        let failure: JSONValue = .object(["kind": .string("notFound"), "detail": .string("status 404")])
        let events = [
            Samples.event("task.succeeded", Samples.success("a", size: 1_024), position: 3),
            Samples.event("task.failed", Samples.task("b", with: ["failure": failure]), position: 4),
            ended(.failed, position: 5),
        ]
        let looks = [Samples.group(), Samples.group(state: .failed)]
        let log = ScriptedLog(.init(events: events, end: 5, looks: looks))
        let text = try await printed { _ = try await watch(log, news: .failures(after: 0), output: $0) }
        #expect(text.split(separator: "\n").last == "failed: b: not found: status 404", "\(text)")
        // Failures are no results: a user who redirects the results still sees the failures on standard error.
        log.change { $0.looks = looks }
        let errors = try await printed { _ = try await watch(log, news: .failures(after: 0), errorOutput: $0) }
        #expect(errors == "failed: b: not found: status 404\n")
    }

    @Test func theLastFailuresHaveTheirLinesToo() async throws {
        let failure: JSONValue = .object(["kind": .string("notFound"), "detail": .string("status 404")])
        let log = ScriptedLog(
            .init(
                events: [
                    Samples.event("task.succeeded", Samples.success("a", size: 1_024), position: 3),
                    Samples.event("task.failed", Samples.task("b", with: ["failure": failure]), position: 4),
                    ended(.failed, position: 5),
                ], end: 5, looks: [Samples.group(state: .failed)]))
        let text = try await printed { _ = try await watch(log, news: .all(after: 0), output: $0) }
        #expect(text == "finished: a (1.0 KiB)\nfailed: b: not found: status 404\n")
    }

    @Test func aLogThatIsNotKeptFromItsBeginningIsReadFromWhereItIs() async throws {
        let log = ScriptedLog(
            .init(
                events: [ended(.cancelled, position: 90)], end: 90, oldest: 50,
                looks: [Samples.group(), Samples.group(state: .cancelled)]))
        #expect(try await watch(log, news: .all(after: 0)).state == .cancelled)
    }
}
