import ArgumentParser
import MusterAPI
import MusterCore

/// `muster fsck`: checks the database against the sinks (adr/0048).
struct FsckCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "fsck",
        abstract: "Checks the database against the sinks, while everything runs.",
        usage: "muster fsck [--deep] [--repair] [--sink <name> ...]",
        discussion: """
            Looks at finished files (are they there, with their size), at the parts of unfinished ones, at leftovers below .muster, and at the \
            rows of the database. Workers do it slowly beside what they fetch. Ctrl-C stops it.

            With --repair, missing files are fetched again in the next generation of their group, and so are damaged ones that no other \
            program has written to; leftovers are deleted, and groups counted anew. Files that another program has written to, and all \
            that belongs to another installation, are never touched.

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

    func perform(_ context: CommandContext) async throws {
        let console = context.console
        // The sinks of a worker in a configuration file, NAME=DIR, choose nothing here.
        let sinks = sink.isEmpty ? context.settings.texts(.sink).filter { !$0.contains("=") } : sink
        for name in sinks { try CommandContext.checkName(name, what: "sink") }
        let request = CheckRequest(
            deep: try context.settings.flag(.deep), repair: try context.settings.flag(.repair),
            sinks: sinks.isEmpty ? nil : sinks)
        let (check, findings) = try await context.withClient { client in
            let client = Patience(console: console).asking(by: client)
            let check = try await Self.finished(try await client.beginCheck(request), client, console)
            let findings = try await Page.all {
                try await client.findings(of: check.id, after: $0, limit: Limits.pageSize)
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
        guard check.found == 0, check.state == "finished", check.failure == nil else {
            throw CommandFailure.ended(.failure)
        }
    }

    /// Waits until a check has ended. If the command is stopped, the check is too.
    private static func finished(
        _ begun: CheckDocument, _ client: MusterClient, _ console: Console
    ) async throws -> CheckDocument {
        do {
            return try await Interruption.watched {
                var check = begun
                var told: Set<String> = []
                while check.state == "running" {
                    if let terminal = console.liveTerminal {
                        try console.show(FindingText.progress(check).map { TextWidth.escaped($0) }, on: terminal)
                    }
                    for sink in check.sinks where sink.phase != "done" && sink.workersReaching == 0 {
                        guard told.insert(sink.name).inserted else { continue }
                        console.remark("no live worker reaches the sink \(sink.name): the check waits for one")
                    }
                    try await Task.sleep(for: period)
                    check = try await client.check(begun.id)
                }
                try console.clear()
                return check
            }
        } catch CommandFailure.ended(let status) {
            try? console.clear()
            try? await client.stopCheck(begun.id)
            console.remark("the check is stopped")
            throw CommandFailure.ended(status)
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
