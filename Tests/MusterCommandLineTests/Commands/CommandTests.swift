import MusterAPI
import MusterCore
import Subprocess
import Testing

@testable import MusterCommandLine

@Suite("Commands")
struct CommandTests {
    private func settings(
        _ arguments: [SettingName: [String]] = [:],
        environment: [String: String] = [:]
    ) throws -> Settings {
        try Settings(command: "up", arguments: arguments, configuration: nil, environment: environment)
    }

    @Test func theDataDirectoryFollowsTheSpecificationOfXDG() throws {
        func directory(_ environment: [String: String], _ arguments: [SettingName: [String]] = [:]) throws -> String {
            try UpCommand.dataDirectory(try settings(arguments, environment: environment), base: "/base")
        }
        #expect(try directory(["HOME": "/home/u"]) == "/home/u/.local/share/muster")
        #expect(try directory(["HOME": "/home/u", "XDG_DATA_HOME": "/d"]) == "/d/muster")
        #expect(try directory(["HOME": "/home/u", "XDG_DATA_HOME": "relative"]) == "/home/u/.local/share/muster")
        #expect(try directory(["HOME": "/home/u"], [.data: ["x"]]) == "/base/x")
        #expect(throws: CommandFailure.self) { try directory([:]) }
    }

    @Test func theArgumentsOfAWorkerHoldNoToken() throws {
        let settings = try settings(
            [.token: ["secret-admin"], .workerToken: ["secret-worker"], .slots: ["5"]],
            environment: ["MUSTER_DATABASE": "secret-database"]
        )
        let arguments = UpCommand.workerArguments(
            settings: settings,
            address: ListenAddress(host: "0.0.0.0", port: 0),
            sinks: [SinkArgument(name: "default", directory: "/srv")],
            base: "/"
        )("up-worker-1", 7301)
        #expect(
            arguments == [
                "work", "--exit-with-parent", "--server", "http://127.0.0.1:7301", "--name", "up-worker-1", "--sink",
                "default=/srv", "--slots", "5", "--log-level", "notice",
            ]
        )
    }

    @Test func theWorkersOfUpHaveTheirOwnTokenAlone() {
        let variables = WorkerProcesses.variables(token: "secret")
        #expect(variables["MUSTER_TOKEN"] == .some(nil) && variables["MUSTER_WORKER_TOKEN"] == "secret")
    }

    @Test func aWorkersNameIsMadeOfTheHostsName() {
        #expect(WorkCommand.name(host: "rack3.host-7", processID: 12) == "rack3.host-7-12")
        #expect(WorkCommand.name(host: "höst (1)", processID: 12) == "h-st--1--12")
        #expect(NameRule.accepts(WorkCommand.name(host: String(repeating: "x", count: 400), processID: 12)))
        #expect(NameRule.accepts(WorkCommand.name(host: "", processID: 12)))
        #expect(NameRule.accepts(WorkCommand.defaultName()))
    }

    @Test func theTableOfGroups() {
        let groups = [Samples.group(), Samples.group("b", state: .failed, total: 3, succeeded: 2, failed: 1, eta: nil)]
        #expect(
            StatusCommand.table(groups).lines() == [
                "GROUP    STATE   FILES  FAILED            BYTES       SPEED  ETA  SINK",
                "nightly  sealed  12/40       0  1.2 GiB/2.6 GiB  35.1 MiB/s  42s  default",
                "b        failed    2/3       1  1.2 GiB/2.6 GiB           -    -  default",
            ]
        )
    }

    @Test func aSmallTerminalShowsWhatRunsAndSaysHowMuchMoreThereIs() {
        var groups = (1...30).map { Samples.group("g\($0)", state: .succeeded) }
        groups[4] = Samples.group("waits")
        groups[28] = Samples.group("runs", notes: ["it is limited to 1.0 MiB/s now"])
        groups[28].tasks.active = 1
        let frame = StatusCommand.frame(groups, size: .init(columns: 80, rows: 24))
        #expect(frame.count == 23)
        #expect(frame[1].hasPrefix("runs ") && frame[2].contains("note: ") && frame[3].hasPrefix("waits "))
        #expect(frame[4].hasPrefix("g1 ") && frame.last == "and 10 more groups: muster status")
        let all = StatusCommand.frame(groups, size: .init(columns: 80, rows: 33))
        #expect(all.count == 32 && all[1].hasPrefix("g1 ") && all.last?.hasPrefix("g30 ") == true)
        #expect(StatusCommand.frame([], size: .init(columns: 80, rows: 24)) == ["there are no groups"])
    }

    @Test func aMistypedGroupNamesTheNearestOne() {
        func completed(_ name: String, _ groups: String...) -> String {
            CommandSuggestion.completed(Problem(.groupNotFound, "there is no group \"\(name)\""), among: groups).detail
        }
        #expect(completed("nigthly", "nightly", "weekly") == "there is no group \"nigthly\"; did you mean nightly?")
        #expect(completed("nightly-2026", "nightly-2026-11", "weekly").hasSuffix("did you mean nightly-2026-11?"))
        #expect(completed("reports", "nightly", "weekly") == "there is no group \"reports\"")
        #expect(completed("a") == "there is no group \"a\"")
    }

    @Test func tableOfGroupsShowsWhatTheyWaitFor() {
        let groups = [
            Samples.group(notes: ["it waits for the group \"a\"", "it is open"]),
            Samples.group("b", state: .failed, total: 3, succeeded: 2, failed: 1, eta: nil),
        ]
        let lines = StatusCommand.table(groups).lines()
        #expect(lines[0].hasSuffix("  SINK     NOTE"))
        #expect(
            lines[1].hasSuffix("  default  it waits for the group \"a\"; it is open") && lines[2].hasSuffix("  default")
        )
    }

    @Test func aVerbThatComesTooLateSaysSo() {
        #expect(PauseCommand.sentence(Samples.group(), keys: 0) == "paused nightly")
        #expect(ResumeCommand.sentence(Samples.group(), keys: 2) == "resumed 2 tasks of nightly")
        let done = Samples.group(state: .succeeded)
        #expect(PauseCommand.sentence(done, keys: 0) == "nothing to pause: nightly has succeeded")
        #expect(CancelCommand.sentence(done, keys: 0) == "nothing to cancel: nightly has succeeded")
        #expect(CancelCommand.sentence(Samples.group(state: .cancelled), keys: 0) == "cancelled nightly")
        #expect(
            RetryCommand.sentence(Samples.group(state: .cancelled), keys: 0)
                == "nothing to retry: nightly has been cancelled")
        #expect(CancelCommand.sentence(done, keys: 1) == "cancelled 1 task of nightly", "it may be what ended it")
        var some = Samples.group()
        some.changedTasks = 1
        #expect(PauseCommand.sentence(some, keys: 3) == "paused 1 of 3 tasks of nightly")
        #expect(PauseCommand.sentence(some, keys: 1) == "paused 1 task of nightly")
    }

    @Test func aRetryTellsWhatItPutBackAndWhatIsLeft() {
        var group = Samples.group()
        group.changedTasks = 2
        #expect(RetryCommand.sentence(group, keys: 0) == "retried nightly: 2 tasks were put back")
        group.changedTasks = 1
        group.tasks.cancelled = 3
        let sentence = RetryCommand.sentence(group, keys: 0)
        #expect(sentence.hasPrefix("retried nightly: 1 task was put back; 3 are cancelled and stay so"), "\(sentence)")
        #expect(sentence.contains("muster add nightly --reopen"))
        group.deadlineAt = Samples.moment
        let renewed = RetryCommand.renewedDeadline(group, before: Samples.group(state: .failed))
        #expect(renewed?.hasPrefix("its deadline begins anew: ") == true && renewed?.hasSuffix(", then fails") == true)
        #expect(RetryCommand.renewedDeadline(group, before: Samples.group()) == nil, "it runs on")
        group.state = .cancelled
        #expect(RetryCommand.sentence(group, keys: 0).hasPrefix("nothing to retry: nightly has been cancelled; 3 are"))
    }

    @Test func aRetryOfAGroupWithoutItsFailuresSaysHowItEnded() {
        let failed = Samples.group(state: .failed, total: 2, succeeded: 1, failed: 1)
        var after = Samples.group(state: .succeeded, total: 1, succeeded: 1, generation: 2)
        after.changedTasks = 0
        #expect(
            RetryCommand.sentence(after, before: failed, keys: 0)
                == "retried nightly: nothing of it has failed any more, and it has succeeded")
        #expect(
            RetryCommand.sentence(after, before: after, keys: 0)
                == "nothing to retry: no task of nightly has failed")
        let cancelled = Samples.group(state: .cancelled)
        #expect(
            CancelCommand.sentence(cancelled, before: cancelled, keys: 0) == "nothing to cancel: nightly is cancelled")
    }

    @Test func aVerbThatChangesNothingSaysSo() {
        var group = Samples.group()
        group.changedTasks = 0
        #expect(RetryCommand.sentence(group, keys: 0) == "nothing to retry: no task of nightly has failed")
        #expect(
            PauseCommand.sentence(group, keys: 1)
                == "nothing to pause: the task of nightly is paused already, or has ended")
        #expect(ResumeCommand.sentence(group, keys: 0) == "resumed nightly: no task of it was paused")
        #expect(CancelCommand.sentence(group, keys: 2) == "nothing to cancel: the tasks of nightly have ended already")
        #expect(RetryCommand.sentence(group, keys: 1) == "nothing to retry: the task of nightly has not failed")
    }

    @Test func anEventIsALine() throws {
        #expect(
            try EventsCommand.line(Samples.event("task.cancelled", Samples.task("a\nb")), clock: Samples.clock)
                == "      42  2026-03-01 13:00:00  task.cancelled  groups/nightly  a\\u{a}b"
        )
    }

    @Test func anEventOfALaterTypeIsALineToo() throws {
        #expect(
            try EventsCommand.line(Samples.event("group.of-tomorrow", [:]), clock: Samples.clock)
                == "      42  2026-03-01 13:00:00  group.of-tomorrow  groups/nightly"
        )
        #expect(throws: DecodingError.self) { try EventsCommand.line(Samples.event("task.cancelled", [:])) }
    }

    @Test func anAdditionIsToldInOneLine() {
        var result = Submission.Result(group: Samples.group(), added: 4, existing: 0, isCreated: true)
        #expect(AddCommand.summary(result) == "added 4 tasks to nightly (0 existed already), sealed")
        (result.isCreated, result.existing) = (true, 1)
        #expect(AddCommand.summary(result) == "added 4 tasks to nightly (1 listed twice), sealed")
    }

    @Test func theResultOfGetIsTheGroupsDocumentWithMore() throws {
        let result = GetSession.Result(
            group: Samples.group(state: .succeeded),
            failures: [],
            explanations: [],
            wasComplete: true,
            changed: [],
            directory: "/d"
        )
        let text = try Console.encoded(result)
        #expect(text.contains(#""directory":"/d""#))
        #expect(text.contains(#""wasComplete":true"#))
        #expect(text.contains(#""name":"nightly""#))
        #expect(text.contains(#""bytes":{"done":1288490188"#))
        #expect(result.status == .success)
    }

    @Test func aFileThatIsInTheWayIsNoReasonToTryAgain() {
        var task = Samples.troubled("s1.bin", kind: .storage)
        task.state = .failed
        task.failure?.detail = "a different file stands at s1.bin: it has another size"
        var result = GetSession.Result(
            group: Samples.group(state: .failed, total: 1, succeeded: 0, failed: 1), failures: [task],
            explanations: [], wasComplete: false, changed: [], directory: "/d")
        #expect(result.hints.contains { $0.contains("--if-exists replace") && $0.contains("--if-exists rename") })
        #expect(!result.hints.contains { $0.contains("run the same command again") })
        #expect(GroupResult.lines([task], of: result.group).contains { $0.contains("--if-exists replace") })
        result.failures.append(Samples.troubled("b", kind: .network))
        #expect(result.hints.contains { $0.contains("run the same command again") })
    }

    @Test(arguments: [
        ("TLS connect error: SSL_ERROR_SYSCALL in connection to 127.0.0.1:28000", "check scheme and port"),
        ("SSL: certificate subject name 'localhost' does not match target host name '127.0.0.1'", "another name"),
        ("SSL certificate problem: unable to get local issuer certificate", "--ca-file"),
    ])
    func adviceForTLSIsForWhatWasWrong(detail: String, advice: String) {
        let failure = TaskFailure(kind: .tls, detail: detail, at: Samples.moment)
        #expect(FailureAdvice.advice(failure)?.text.contains(advice) == true)
    }

    @Test(
        arguments: [
            (["stauts"], "status"), (["gte", "http://h/a"], "get"), (["subscriptions", "rotat", "x"], "rotate"),
            (["help", "explian"], "explain"), (["stat"], "status"), (["origins", "ste"], "set"), (["xyzzy"], nil),
            (["download", "http://h/a"], "get"), (["ls"], "status"), (["rm", "g"], "remove"),
        ] as [([String], String?)])
    func aMistypedCommandNamesTheNearestOne(arguments: [String], nearest: String?) throws {
        let complaint = try #require(CommandSuggestion.complaint(arguments))
        #expect(complaint.contains("there is no 'muster "))
        #expect(complaint.contains("Did you mean") == (nearest != nil), "\(complaint)")
        if let nearest { #expect(complaint.contains("Did you mean '\(nearest)'?")) }
    }

    @Test func aBareURLNamesTheCommandThatDownloadsIt() {
        #expect(
            CommandSuggestion.complaint(["https://u:secret@h/a"])
                == "Error: a URL is no command.\n  To download it: muster get <url>")
    }

    @Test func commandNamesOfOtherToolsLeadToExistingCommands() {
        #expect(
            CommandSuggestion.usual.values.allSatisfy { MusterCommand.names.contains("\($0.prefix { $0 != " " })") })
        #expect(MusterCommand.names.isDisjoint(with: CommandSuggestion.usual.keys))
    }

    @Test(arguments: [
        [], ["--json"], ["status", "nightly"], ["help"], ["help", "get"], ["origins"], ["origins", "set", "o"],
        ["subscriptions", "--json"], ["--version"],
    ])
    func aKnownCommandRaisesNoComplaint(arguments: [String]) {
        #expect(CommandSuggestion.complaint(arguments) == nil)
    }

    @Test func aChangedFileIsAFailure() {
        let result = GetSession.Result(
            group: Samples.group(state: .succeeded),
            failures: [],
            explanations: [],
            wasComplete: false,
            changed: ["a"],
            directory: "/d"
        )
        #expect(result.status == .failure)
        #expect(result.summary.contains("failed: 1 file was changed"), "\(result.summary)")
    }

    @Test func aGetOfNothingSaysThatTheManifestIsEmpty() {
        let result = GetSession.Result(
            group: Samples.group(state: .succeeded, total: 0, succeeded: 0), failures: [], explanations: [],
            wasComplete: true, changed: [], directory: "/d")
        #expect(result.summary == "nothing to do: the manifest is empty")
    }

    @Test(
        arguments: [
            (.authentication, "--user"), (.digestMismatch, "digest"), (.notFound, "check the URL"),
            (.httpStatus(403), "--header"), (.httpStatus(400), "check the URL"), (.badRange, "another source"),
            (.dns, "check the URL and the network"), (.proxy, "--proxy direct"), (.httpStatus(200), "a page to log in"),
        ] as [(FailureKind, String)])
    func anErrorThatDoesNotGoAwayNamesWhatHelps(kind: FailureKind, help: String) {
        let failed = Samples.troubled("a", kind: kind)
        let lines = FailureAdvice.lines([failed, failed])
        #expect(lines.count == 1 && lines[0].contains(help), "\(lines)")
        #expect(
            FailureAdvice.lines([failed, Samples.troubled("b", kind: .timeout)]).last
                == "run the same command again, which goes on where it stopped; --tries N has it try more often, such as through a longer outage"
        )
        #expect(
            FailureAdvice.groupHints([Samples.troubled("b", kind: .timeout)], of: "g")
                == ["what failed is tried again with: muster retry g"])
    }

    @Test func anEndThatNothingProvesCanBeTakenAsItIs() {
        let detail = "the body ends with its connection, and can't be read again to prove its end: status 410"
        var task = Samples.troubled("a", kind: .notFound)
        task.failure?.detail = detail
        let lines = FailureAdvice.lines([task])
        #expect(lines.count == 1 && lines[0].contains("--accept-unframed"), "\(lines)")
    }

    @Test(arguments: [("", false), (": it has no validator", true)])
    func aTruncatedFileIsNotSaidToGoOnWhereItCanNot(reason: String, hasNoValidator: Bool) {
        var task = Samples.troubled("a", kind: .network)
        task.failure?.detail = "truncated, after 9 bytes, and what came can't be gone on with\(reason)"
        let lines = FailureAdvice.lines([task])
        #expect(lines.count == 1 && lines[0].contains("another source"), "\(lines)")
        #expect(lines[0].contains("--digest") == hasNoValidator && !lines[0].contains("goes on"), "\(lines)")
    }

    @Test(arguments: [
        ("something else stands at d: it is a directory", "a directory is at that path"),
        ("something else stands at d: it is a symbolic link", "a symbolic link is at that path"),
        ("something else stands at d: it is no regular file", "something that is no file is at that path"),
    ])
    func directoryOrLinkIsNotSaidToBeReplaceable(detail: String, advice: String) {
        var task = Samples.troubled("a", kind: .storage)
        task.failure?.detail = "the destination is taken: \(detail)"
        let lines = FailureAdvice.lines([task])
        #expect(lines.count == 1 && lines[0].contains(advice) && !lines[0].contains("--if-exists"), "\(lines)")
    }

    /// Advice doesn't name the option that was used already.
    @Test(arguments: [
        (
            "a file stands at d, and the group takes none that was there before", "--if-exists verify takes it",
            "another"
        ),
        ("something else stands at d: it was there before", "--if-exists verify takes it", "another"),
        ("something else stands at d: it is another installation's", "--if-exists rename", "--if-exists replace"),
    ])
    func aFileInTheWayIsCalledWhatItIs(detail: String, advice: String, not other: String) {
        var task = Samples.troubled("a", kind: .storage)
        task.failure?.detail = detail
        let lines = FailureAdvice.lines([task])
        #expect(lines.count == 1 && lines[0].contains(advice) && !lines[0].contains(other), "\(lines)")
    }
}
