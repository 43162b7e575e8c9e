import ArgumentParser
import MusterAPI
import MusterCore
import UnixSignals

/// `muster fsck`: checks the database against the sinks (adr/0048).
struct FsckCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "fsck",
        abstract: "Checks the database against the sinks, while everything runs.",
        usage: """
            muster fsck [--deep] [--repair] [--sink <name> ...]
            muster fsck --stop
            """,
        discussion: """
            Looks at finished files (are they there, with their size), at the parts of unfinished ones, at leftovers below .muster, and at the \
            rows of the database. Workers do it slowly beside what they fetch. One check runs at a time: Ctrl-C stops it, and so does \
            --stop from anywhere, if its command is gone.

            With --repair, missing files are fetched again in the next generation of their group, and so are damaged ones that no other \
            program has written to; leftovers are deleted, and groups counted anew. Files that another program has written to, and all \
            that belongs to another installation, are never touched. The command waits until the groups are done whose files are fetched \
            again.

            Ends with 0 if nothing is left to do, with 1 if something is.

            Examples:
              muster fsck
              muster fsck --deep --repair --sink default
              muster fsck --json | jq -r '.findings[].subject'
            """
    )

    @Flag(help: "Read finished files, and compare them with their checksums.")
    var deep = false

    @Flag(help: "Repair what is safe.")
    var repair = false

    @Option(help: ArgumentHelp("A sink to check; may be repeated. (default: all)", valueName: "name"))
    var sink: [String] = []

    @Flag(help: "Stop the check that is under way, whichever command began it.")
    var stop = false

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] {
        Given.flags([.deep: deep, .repair: repair]).merging(Given.lists([.sink: sink])) { $1 }
    }

    /// The result as JSON.
    private struct Document: Encodable {
        var check: CheckDocument
        var findings: [FindingDocument]
    }

    /// How often the command asks how far the check is.
    private static let period: Duration = .milliseconds(500)

    /// For how long an interrupted command tries to stop its check.
    private static let stopTime: Duration = .seconds(2)

    /// The most lines about a sink in trouble.
    private static let shownTroubles = 3

    func perform(_ context: CommandContext) async throws {
        let console = context.console
        if stop {
            guard own.isEmpty else {
                throw CommandFailure.usage(
                    "--stop takes neither --deep, --repair nor --sink: it stops the check that is under way")
            }
            return try await context.withClient { try await Self.stopRunning($0, console) }
        }
        // The sinks of a worker in a configuration file, NAME=DIR, choose nothing here.
        let sinks = sink.isEmpty ? context.settings.texts(.sink).filter { !$0.contains("=") } : sink
        for name in sinks { try CommandContext.checkName(name, what: "sink") }
        let request = CheckRequest(
            deep: try context.settings.flag(.deep), repair: try context.settings.flag(.repair),
            sinks: sinks.isEmpty ? nil : sinks)
        let (check, findings) = try await context.withClient { direct in
            let client = Patience(console: console).asking(by: direct)
            let check = try await Self.finished(request, client, stoppingBy: direct, console)
            let findings = try await Interruption.watched {
                try await Page<FindingDocument>.all {
                    try await client.findings(of: check.id, after: $0, limit: Limits.pageSize)
                }
            }
            return (check, findings)
        }
        if console.json {
            try console.document(Document(check: check, findings: findings))
        } else {
            if !findings.isEmpty { try console.table(Self.table(findings)) }
            for line in Self.advice(findings, of: check) { try console.line(line) }
            try console.line(FindingText.summary(check))
        }
        let areThere = try await context.withClient { try await Self.areThereAgain(findings, $0, context) }
        guard check.found == 0, check.state == "finished", check.failure == nil, areThere else {
            throw CommandFailure.ended(.failure)
        }
    }

    /// Waits until the groups are done whose lost files are fetched again. Returns whether all of these succeeded. A group that takes more tasks is not
    /// waited for.
    private static func areThereAgain(
        _ findings: [FindingDocument], _ client: MusterClient, _ context: CommandContext
    ) async throws -> Bool {
        let lost = findings.filter { $0.outcome == "repaired" && [.fileMissing, .fileChanged].contains($0.kind) }
        var isWhole = true
        for group in Set(lost.compactMap(\.group)).sorted() {
            if try await client.group(group).state == .open {
                context.console.remark(
                    "\(TextWidth.escaped(group)) fetches its lost files again, and is open: muster status shows how it goes"
                )
                continue
            }
            context.console.remark(
                "waiting for \(TextWidth.escaped(group)), which fetches its lost files again, also after Ctrl-C")
            let end = try await Interruption.watched {
                try await context.watcher(client, group: group).untilTerminal(deadline: nil)
            }
            if try await GroupResult(client: client, console: context.console).tell(end) != .success { isWhole = false }
        }
        return isWhole
    }

    /// Begins a check, and waits until it has ended. If the command is stopped, the check is too: by a client that does not wait for a coordinator
    /// that is away.
    private static func finished(
        _ request: CheckRequest, _ client: MusterClient, stoppingBy direct: MusterClient, _ console: Console
    ) async throws -> CheckDocument {
        let begun = Eventual<Int64>()
        return try await Interruption.watched {
            var check = try await client.beginCheck(request)
            begun.fulfil(check.id)
            var told: Set<String> = []
            while check.state == "running" {
                if let terminal = console.liveTerminal {
                    try console.show(FindingText.progress(check).map { TextWidth.escaped($0) }, on: terminal)
                }
                for sink in check.sinks where sink.phase != "done" && sink.workersReaching == 0 {
                    guard told.insert(sink.name).inserted else { continue }
                    let workers = try await Page<WorkerDocument>.all {
                        try await client.workers(after: $0, limit: Limits.pageSize)
                    }
                    for line in waiting(for: sink.name, workers) { console.remark(TextWidth.escaped(line)) }
                }
                try await Task.sleep(for: period)
                check = try await client.check(check.id)
            }
            try console.clear()
            return check
        } closing: { hurried in
            try? console.clear()
            console.remark("stopping the check")
            await giveUp(begun.current, of: request, direct.once, console, within: stopTime, hurried: hurried)
        }
    }

    /// That no live worker reaches a sink, and what workers report of it.
    static func waiting(for sink: String, _ workers: [WorkerDocument]) -> [String] {
        ["no live worker reaches the sink \(sink): the check waits for one"]
            + WorkersCommand.sinksInTrouble(workers, named: sink).prefix(shownTroubles)
    }

    /// Tries to stop the check of a command that is interrupted, and says whether it is stopped.
    ///
    /// - Parameters:
    ///   - known: its number; `nil` if the command was stopped before the coordinator said it. The coordinator may have begun the check then: the same
    ///     request joins it.
    ///   - time: for how long it tries.
    ///   - hurried: known once the command is to end at once.
    static func giveUp(
        _ known: Int64?, of request: CheckRequest, _ client: MusterClient, _ console: Console, within time: Duration,
        hurried: Eventual<UnixSignal>
    ) async {
        let outcome = await withTaskGroup(of: String?.self) { tasks -> String? in
            tasks.addTask { await stopped(known, of: request, client) }
            tasks.addTask {
                try? await Task.sleep(for: time)
                return nil
            }
            tasks.addTask {
                _ = try? await hurried.value()
                return nil
            }
            defer { tasks.cancelAll() }
            return await tasks.next().flatMap { $0 }
        }
        console.remark(
            TextWidth.escaped(
                outcome ?? "the check may go on: muster fsck --stop stops it, once a coordinator answers"))
    }

    /// Stops the check of an interrupted command; returns what there is to say, or `nil` if the check may go on.
    private static func stopped(_ known: Int64?, of request: CheckRequest, _ client: MusterClient) async -> String? {
        do {
            let id: Int64
            if let known { id = known } else { id = try await client.beginCheck(request).id }
            try await client.stopCheck(id)
            return "the check is stopped"
        } catch let problem as Problem where known == nil && problem.status < 500 {
            return "no check was begun: \(problem.detail)"
        } catch {
            return nil
        }
    }

    /// Stops the check that is under way, if there is one, and says which one it was. The result as JSON is a page of one check, or of none.
    static func stopRunning(_ client: MusterClient, _ console: Console) async throws {
        var stopped: [CheckDocument] = []
        if let running = try await client.checks().items.first(where: { $0.state == "running" }) {
            try await client.stopCheck(running.id)
            stopped = [try await client.check(running.id)]
        }
        if console.json {
            try console.document(Page(items: stopped, next: nil))
        } else {
            let end = stopped.first.map { FindingText.end($0, clock: .ofThisMachine) }
            try console.line(end ?? "no check is under way")
        }
    }

    /// The table of findings.
    static func table(_ findings: [FindingDocument]) -> Table {
        var table = Table([
            .text("FOUND"), .text("STATE"), .name("NAME"), .text("SINK", isOptional: true),
            .name("GROUP", isOptional: true), .sentence("DETAIL"),
        ])
        for finding in findings {
            table.add([
                FindingText.title(finding.kind), FindingText.outcome(finding), finding.subject, finding.sink ?? "-",
                finding.group ?? "-", finding.detail,
            ])
        }
        return table
    }

    /// What to do next, a line for each kind of findings that are left.
    static func advice(_ findings: [FindingDocument], of check: CheckDocument) -> [String] {
        let left = Set(findings.filter { $0.outcome == "found" }.map(\.kind))
        var lines = FindingKind.allCases.filter(left.contains).map {
            "\(FindingText.title($0)): \(FindingText.advice($0, isRepair: check.repair))"
        }
        if check.isCut { lines.append("there may be more than these: run muster fsck again once they are mended") }
        if let failure = check.failure { lines.append("the rows of the database are not checked: \(failure)") }
        return lines
    }
}
