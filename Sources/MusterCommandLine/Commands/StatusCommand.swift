import ArgumentParser
import FoundationEssentials
import MusterAPI
import MusterCore

/// `muster status`: shows groups.
struct StatusCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows all groups, or one of them in detail.",
        usage: "muster status [<group>] [--watch]",
        discussion: """
            With --watch it goes on showing until the group is done, or until it is interrupted. With --json --watch each \
            look at a group is a line of its own.

            Examples:
              muster status
              muster status nightly --watch
              muster status nightly --json
            """
    )

    @Flag(help: "Go on showing. (MUSTER_WATCH)")
    var watch = false

    @Argument(help: "The group's name; all groups if absent.")
    var group: String?

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var given: [SettingName: [String]] {
        Given.values([.server: client.server, .token: client.token]).merging(Given.flags([.watch: watch])) { $1 }
    }

    /// How often groups are looked at.
    private static let period: Duration = .seconds(1)

    func perform(_ context: CommandContext) async throws {
        if let group { try CommandContext.checkName(group, what: "group") }
        let watches = try context.settings.flag(.watch)
        try await context.withClient { client in
            switch (group, watches) {
            case (nil, false): try await all(client, context)
            case (nil, true): try await watchAll(client, context)
            case (let group?, false): try await show(try await client.group(group), client, context.console)
            case (let group?, true): try await watchOne(group, client, context)
            }
        }
    }

    private func all(_ client: MusterClient, _ context: CommandContext) async throws {
        let groups = try await Self.groups(client)
        if context.console.json {
            try context.console.document(Page(items: groups, next: nil))
        } else if groups.isEmpty {
            try context.console.line("there are no groups")
        } else {
            for line in Self.table(groups).lines(width: context.console.tableWidth) { try context.console.line(line) }
        }
    }

    private func watchAll(_ client: MusterClient, _ context: CommandContext) async throws {
        var region = LiveRegion()
        let patience = Patience(console: context.console)
        while true {
            let groups = try await patience.persist(until: nil) { try await Self.groups(client) }
            if context.console.json {
                for group in groups { try context.console.document(group) }
            } else if let terminal = context.console.liveTerminal {
                let size = Terminal.size(of: terminal)
                let lines = groups.isEmpty ? ["there are no groups"] : Self.table(groups).lines(width: size.columns - 1)
                try context.console.draw(region.redraw(lines, size: size), on: terminal)
            } else {
                for group in groups { try context.console.line(PlainProgress.line(ProgressSnapshot(group: group))) }
            }
            try await Task.sleep(for: Self.period)
        }
    }

    private func watchOne(_ group: String, _ client: MusterClient, _ context: CommandContext) async throws {
        guard context.console.json else {
            let document = try await context.watcher(client, group: group).untilTerminal()
            try await show(document, client, context.console)
            return
        }
        let patience = Patience(console: context.console)
        while true {
            let document = try await patience.persist(until: nil) { try await client.group(group) }
            try context.console.document(document)
            if document.state.isTerminal { return }
            try await Task.sleep(for: Self.period)
        }
    }

    /// All groups, page by page.
    static func groups(_ client: MusterClient) async throws -> [GroupDocument] {
        var groups: [GroupDocument] = []
        var after: String?
        repeat {
            let page = try await client.groups(after: after)
            groups += page.items
            after = page.next
        } while after != nil
        return groups
    }

    private func show(_ group: GroupDocument, _ client: MusterClient, _ console: Console) async throws {
        guard !console.json else { return try console.document(group) }
        for line in Self.details(group) { try console.line(line) }
        guard group.tasks.failed > 0 else { return }
        let failures = try await GroupResult(client: client, console: console).failures(of: group)
        for line in GroupResult.lines(failures, of: group) { try console.line(line) }
    }

    /// The table of groups.
    static func table(_ groups: [GroupDocument]) -> Table {
        var table = Table([
            .text("GROUP"), .text("STATE"), .number("FILES"), .number("FAILED"), .number("BYTES"), .number("SPEED"),
            .number("ETA"), .text("SINK"),
        ])
        for group in groups {
            let snapshot = ProgressSnapshot(group: group)
            table.add([
                group.name, group.state.rawValue, "\(group.tasks.succeeded)/\(group.tasks.total)",
                "\(group.tasks.failed)", snapshot.bytesText,
                group.state.isTerminal ? "-" : ProgressSnapshot.rate(group.bytesPerSecond),
                group.etaSeconds.map { DurationNotation.format(.seconds($0)) } ?? "-", group.sink,
            ])
        }
        return table
    }

    /// A group in detail.
    static func details(_ group: GroupDocument) -> [String] {
        let tasks = group.tasks
        let counts = [
            (tasks.succeeded, "succeeded"), (tasks.active, "active"), (tasks.finalizing, "finalizing"),
            (tasks.queued, "queued"), (tasks.paused, "paused"), (tasks.failed, "failed"),
            (tasks.cancelled, "cancelled"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let snapshot = ProgressSnapshot(group: group)
        var facts: [(String, String)] = [
            ("group", group.name),
            ("state", group.state.rawValue + (group.sealed || group.state.isTerminal ? "" : " (not sealed)")),
            ("generation", "\(group.generation)"),
            ("sink", group.sink),
            ("priority", "\(group.priority)"),
            ("tasks", "\(tasks.total)" + (counts.isEmpty ? "" : ": " + counts.joined(separator: ", "))),
            (
                "bytes",
                snapshot.bytesText
                    + (group.bytes.unknownTasks > 0 ? " (size unknown of \(group.bytes.unknownTasks))" : "")
            ),
        ]
        if !group.state.isTerminal {
            facts.append(("speed", ProgressSnapshot.rate(group.bytesPerSecond)))
            if let eta = group.etaSeconds { facts.append(("ETA", DurationNotation.format(.seconds(eta)))) }
        }
        facts.append(("created", group.createdAt.description))
        if let finished = group.finishedAt { facts.append(("finished", finished.description)) }
        facts += group.notes.map { ("note", $0) }
        return facts.map { TextWidth.padded("\($0.0):", to: 12) + TextWidth.escaped($0.1) }
    }
}
