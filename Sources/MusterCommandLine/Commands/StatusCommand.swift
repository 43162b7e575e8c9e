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

    /// How often groups are looked at while one of them runs: their bytes grow without any event.
    private static let period: Duration = .seconds(1)

    func perform(_ context: CommandContext) async throws {
        if let group { try CommandContext.checkName(group, what: "group") }
        let watches = try context.settings.flag(.watch)
        try await context.withClient { client in
            switch (group, watches) {
            case (nil, false): try await all(client, context)
            case (nil, true): try await watchAll(client, context)
            case (let group?, false): try await one(group, client, context.console)
            case (let group?, true): try await watchOne(group, client, context)
            }
        }
    }

    private func all(_ client: MusterClient, _ context: CommandContext) async throws {
        let groups = try await Self.groups(client)
        if context.console.json { return try context.console.document(Page(items: groups, next: nil)) }
        let removals = try await Page.all { try await client.removals(after: $0, limit: Limits.pageSize) }
        if groups.isEmpty, removals.isEmpty {
            try context.console.line("there are no groups")
        } else {
            try context.console.table(Self.table(groups, removals))
        }
    }

    /// A group, or what is left of one that was removed.
    private func one(_ name: String, _ client: MusterClient, _ console: Console) async throws {
        do {
            try await show(try await client.group(name), client, console)
        } catch let problem as Problem where problem.code == .groupNotFound {
            let removal = try await client.removal(of: name)
            guard removal.files > 0 else { throw problem }
            guard !console.json else { return try console.document(removal) }
            for line in FactLines.lines(removal.facts) { try console.line(line) }
        }
    }

    private func watchAll(_ client: MusterClient, _ context: CommandContext) async throws {
        let patience = Patience(console: context.console)
        var listener = try await LogListener(client, group: nil, patience: patience)
        while true {
            let groups = try await patience.persist(until: nil) { try await Self.groups(client) }
            if context.console.json {
                for group in groups { try context.console.document(group) }
            } else if let terminal = context.console.liveTerminal {
                let size = Terminal.size(of: terminal)
                let lines = groups.isEmpty ? ["there are no groups"] : Self.table(groups).lines(width: size.columns - 1)
                try context.console.show(lines, on: terminal)
            } else {
                for group in groups {
                    try context.console.line(
                        WallClock.ofThisMachine.sentence(PlainProgress.line(ProgressSnapshot(group: group))))
                }
            }
            // Where nothing runs, nothing changes without an event.
            let isQuiet = groups.allSatisfy(\.state.isTerminal)
            try await pause(&listener, limit: isQuiet ? Limits.longPoll : Self.period)
        }
    }

    /// Waits until something happens, and at the most for `limit`; never less than the period, however much happens.
    private func pause(_ listener: inout LogListener, limit: Duration) async throws {
        let next = ContinuousClock.now + Self.period
        if try await listener.listen(limit: limit).count == LogListener.page { try await listener.skip() }
        try await ContinuousClock().sleep(until: next)
    }

    private func watchOne(_ group: String, _ client: MusterClient, _ context: CommandContext) async throws {
        guard context.console.json else {
            let watcher = context.watcher(client, group: group)
            let end = try await Interruption.watched { try await watcher.untilTerminal() }
            try await show(end.group, client, context.console)
            return
        }
        let patience = Patience(console: context.console)
        var listener = try await LogListener(client, group: group, patience: patience)
        while true {
            let document = try await patience.persist(until: nil) { try await client.group(group) }
            try context.console.document(document)
            if document.state.isTerminal { return }
            try await pause(&listener, limit: Self.period)
        }
    }

    /// All groups, page by page.
    static func groups(_ client: MusterClient) async throws -> [GroupDocument] {
        try await Page.all { try await client.groups(after: $0, limit: Limits.pageSize) }
    }

    private func show(_ group: GroupDocument, _ client: MusterClient, _ console: Console) async throws {
        guard !console.json else { return try console.document(group) }
        for line in FactLines.lines(GroupFacts.all(group)) { try console.line(line) }
        guard group.tasks.failed > 0 else { return }
        let failures = try await GroupResult(client: client, console: console).failures(of: group)
        for line in GroupResult.lines(failures, of: group) { try console.line(line) }
    }

    /// The table of groups, and of those that were removed and have files left.
    static func table(_ groups: [GroupDocument], _ removals: [RemovalDocument] = []) -> Table {
        var table = Table([
            .name("GROUP"), .text("STATE"), .number("FILES"), .number("FAILED"), .number("BYTES"), .number("SPEED"),
            .number("ETA"), .name("SINK"), .sentence("NOTE", isOptional: true),
        ])
        let clock = WallClock.ofThisMachine
        for group in groups {
            let snapshot = ProgressSnapshot(group: group)
            table.add([
                group.name, GroupFacts.state(group), "\(group.tasks.succeeded)/\(group.tasks.total)",
                "\(group.tasks.failed)", snapshot.bytesText,
                snapshot.speedText ?? "-",
                ProgressSnapshot.time(group.etaSeconds), group.sink,
                clock.sentence(group.notes.joined(separator: "; ")),
            ])
        }
        for removal in removals {
            table.add([
                removal.group, RemovalDocument.state, "-", "-", "-", "-", "-", removal.sink ?? "-", removal.note ?? "",
            ])
        }
        return table
    }
}
