import ArgumentParser
import FoundationEssentials
import MusterAPI
import MusterCore

/// `muster status`: shows groups.
struct StatusCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows all groups, or some of them in detail.",
        usage: "muster status [<group> ...] [--watch]",
        discussion: """
            With --watch it goes on showing until the groups that are named are done, or until it is interrupted. With --json --watch each \
            look at a group is a line of its own.

            Examples:
              muster status
              muster status nightly weekly
              muster status nightly --watch
              muster status nightly --json
            """
    )

    @Flag(help: "Go on showing. (MUSTER_WATCH)")
    var watch = false

    @Argument(help: ArgumentHelp("Names of groups; all groups if there are none.", valueName: "group"))
    var groups: [String] = []

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] { Given.flags([.watch: watch]) }

    /// How often groups are read while one of them runs, since their bytes grow without any event.
    private static let period: Duration = .seconds(1)

    func perform(_ context: CommandContext) async throws {
        for group in groups { try CommandContext.checkName(group, what: "group") }
        let watches = try context.settings.flag(.watch)
        try await context.withClient { client in
            switch (groups.count, watches) {
            case (0, false): try await all(client, context)
            case (1, true): try await watchOne(groups[0], client, context)
            case (_, true): try await watchSeveral(client, context)
            case (1, false): try await one(groups[0], client, context.console)
            case (_, false): try await several(client, context.console)
            }
        }
    }

    private func several(_ client: MusterClient, _ console: Console) async throws {
        if console.json { return try console.document(Page(items: try await named(client), next: nil)) }
        for (index, group) in groups.enumerated() {
            if index > 0 { try console.line("") }
            try await one(group, client, console)
        }
    }

    /// The groups that were named; all groups if none was.
    private func named(_ client: MusterClient) async throws -> [GroupDocument] {
        guard !groups.isEmpty else { return try await Self.groups(client) }
        var named: [GroupDocument] = []
        for group in groups { named.append(try await client.group(group)) }
        return named
    }

    /// All groups as JSON, and the removals that have files left.
    private struct All: Encodable {
        var items: [GroupDocument]
        let next: String? = nil
        var removals: [RemovalDocument]

        private enum CodingKeys: CodingKey {
            case items, next, removals
        }

        /// Writes that there is no next page as an explicit `null`, as other lists do.
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(items, forKey: .items)
            try container.encode(next, forKey: .next)
            try container.encode(removals, forKey: .removals)
        }
    }

    private func all(_ client: MusterClient, _ context: CommandContext) async throws {
        let groups = try await Self.groups(client)
        let removals = try await Page.all { try await client.removals(after: $0, limit: Limits.pageSize) }
        if context.console.json { return try context.console.document(All(items: groups, removals: removals)) }
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

    /// Shows several groups, or all, in a line each. Ends once named groups are done; without names it goes on.
    private func watchSeveral(_ client: MusterClient, _ context: CommandContext) async throws {
        let console = context.console
        let patience = Patience(console: console)
        let client = client.once
        var listener = try await LogListener(client, group: nil, patience: patience)
        while true {
            let found = try await patience.persist(until: nil) { try await named(client) }
            if console.json {
                for group in found { try console.document(group) }
            } else if let terminal = console.liveTerminal {
                try console.show(Self.frame(found, size: Terminal.size(of: terminal)), on: terminal)
            } else {
                for group in found { try console.line(PlainProgress.sentence(ProgressSnapshot(group: group))) }
            }
            // While no group runs, nothing changes without an event.
            let isQuiet = found.allSatisfy(\.state.isTerminal)
            if isQuiet, !groups.isEmpty {
                try console.clear()
                return console.json ? () : try await several(client, console)
            }
            try await pause(&listener, limit: isQuiet ? Limits.longPoll : Self.period)
        }
    }

    /// What a terminal shows of groups. If it has no room for all of them, groups with work in progress come first, then the other unfinished
    /// groups, and at the end the number of groups that are not shown.
    static func frame(_ groups: [GroupDocument], size: Terminal.Size) -> [String] {
        guard !groups.isEmpty else { return ["there are no groups"] }
        // One row is left for the cursor.
        let rows = max(2, size.rows - 1)
        var shown = groups
        while true {
            let more = groups.count - shown.count
            let lines =
                table(shown).lines(width: size.columns - 1)
                + (more > 0 ? ["and \(more) more group\(more == 1 ? "" : "s"): muster status"] : [])
            guard lines.count > rows, shown.count > 1 else { return lines }
            if more == 0 {
                let urgent = groups.enumerated().sorted {
                    (Self.urgency($0.element), $0.offset) < (Self.urgency($1.element), $1.offset)
                }
                shown = urgent.prefix(rows).map(\.element)
            }
            // A group may take several lines, since a note may need lines of its own.
            shown.removeLast()
        }
    }

    /// The place of a group in the order of display; the lowest value comes first.
    private static func urgency(_ group: GroupDocument) -> Int {
        if group.state.isTerminal { return 2 }
        return group.tasks.active + group.tasks.finalizing > 0 ? 0 : 1
    }

    /// Waits for an event, but no longer than `limit` and no shorter than the period.
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
        let client = client.once
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
        for line in FactLines.lines(GroupFactLines.all(group)) { try console.line(line) }
        guard group.tasks.failed > 0 else { return }
        let failures = try await GroupResult.failures(of: group.name, client)
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
                group.name, GroupFactLines.state(group), "\(group.tasks.succeeded)/\(group.tasks.total)",
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
