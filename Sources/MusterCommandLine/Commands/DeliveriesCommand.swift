import ArgumentParser
import MusterAPI
import MusterCore

/// `muster deliveries`: lists deliveries to subscriptions, and replays them.
struct DeliveriesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deliveries",
        abstract: "Lists the deliveries of events to subscriptions, or delivers some once more.",
        usage: """
            muster deliveries [--state <state>] [--subscription <name>] [--json]
            muster deliveries replay <id> ...
            """,
        discussion: """
            A delivery that fails is tried again after 5s, 5m, 30m, 2h, 5h, 10h, 14h, 20h and 24h, and is dead then.

            Examples:
              muster deliveries --state dead
              muster deliveries replay 17 18
            """,
        subcommands: [DeliveriesListCommand.self, DeliveriesReplayCommand.self],
        defaultSubcommand: DeliveriesListCommand.self
    )

    /// The section of a configuration file that the subcommands share.
    static let section = "deliveries"

    /// The table of deliveries.
    ///
    /// - Parameter isWhole: whether these are all deliveries; otherwise later pages may fill columns that are still empty.
    static func table(_ deliveries: [DeliveryDocument], isWhole: Bool = true) -> Table {
        var table = Table([
            .number("ID"), .text("STATE"), .number("TRIES"), .name("SUBSCRIPTION"), .number("EVENT"), .text("TYPE"),
            .name("SUBJECT"), .text("NEXT TRY", isOptional: isWhole), .sentence("FAILURE", isOptional: isWhole),
        ])
        for item in deliveries {
            table.add([
                "\(item.id)", item.state.rawValue, "\(item.attempts)", item.subscription, "\(item.position)",
                EventType.short(item.type), item.subject,
                item.nextTryAt.map(WallClock.ofThisMachine.text) ?? (item.state == .pending ? "once enabled" : "-"),
                item.state == .delivered ? "" : item.failure ?? "",
            ])
        }
        return table
    }
}

/// `muster deliveries list`, which may be left out: lists deliveries.
struct DeliveriesListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists deliveries, the oldest first.",
        usage: "muster deliveries [--state <state>] [--subscription <name>] [--json]",
        discussion: """
            Example:
              muster deliveries --state dead --json | jq -r '.items[].id' |
                xargs -r muster deliveries replay
            """
    )

    static var section: String { DeliveriesCommand.section }

    @Option(
        help: ArgumentHelp(
            "Only deliveries in this state: \(DeliveryState.allCases.map(\.rawValue).joined(separator: ", ")).",
            valueName: "state"
        )
    )
    var state: String?

    @Option(help: ArgumentHelp("Only deliveries to this subscription.", valueName: "name"))
    var subscription: String?

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] { Given.values([.state: state, .subscription: subscription]) }

    func perform(_ context: CommandContext) async throws {
        let state = try context.settings.choice(.state, of: DeliveryState.self)
        let subscription = context.settings.text(.subscription)
        if let subscription { try CommandContext.checkName(subscription, what: "subscription") }
        try await context.withClient { client in
            try await Self.show(state: state, on: context.console) {
                try await client.deliveries(
                    state: state,
                    subscription: subscription,
                    after: $0,
                    limit: Limits.pageSize
                )
            }
        }
    }

    /// Prints the listing a page at a time, since there may be millions; as JSON it is one document.
    static func show(
        state: DeliveryState?,
        on console: Console,
        _ read: (_ after: String?) async throws -> Page<DeliveryDocument>
    ) async throws {
        if console.json { return try console.document(Page(items: try await Page.all(read), next: nil)) }
        var page = try await read(nil)
        guard !page.items.isEmpty else {
            return try console.line("there are no \(state.map { "\($0.rawValue) " } ?? "")deliveries")
        }
        let isWhole = page.next == nil
        try console.table(DeliveriesCommand.table(page.items, isWhole: isWhole))
        while let after = page.next {
            page = try await read(after)
            let lines = DeliveriesCommand.table(page.items, isWhole: isWhole).lines(width: console.tableWidth)
            for line in lines.dropFirst() { try console.line(line) }
        }
    }
}

/// `muster deliveries replay`: delivers events once more.
struct DeliveriesReplayCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Delivers events once more, beginning the schedule anew.",
        usage: "muster deliveries replay <id> ...",
        discussion: """
            The receiver gets the same bytes with the same id as before. If one of the deliveries does not exist, none is made.

            Example:
              muster deliveries replay 17 18
            """
    )

    static var section: String { DeliveriesCommand.section }

    @Argument(help: ArgumentHelp("The numbers of the deliveries.", valueName: "id"))
    var ids: [Int64]

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withClient { try await Self.replay(ids, by: $0, on: context.console) }
    }

    /// Delivers all of these once more, or none if one does not exist, and prints the deliveries.
    static func replay(_ ids: [Int64], by client: MusterClient, on console: Console) async throws {
        for id in ids {
            let next = try await id > 0 ? client.deliveries(after: String(id - 1), limit: 1).items.first : nil
            guard next?.id == id else {
                throw Problem(.deliveryNotFound, "there is no delivery \(id), or not any more; none was replayed")
            }
        }
        var replayed: [DeliveryDocument] = []
        func show() throws {
            if console.json {
                try console.document(Page(items: replayed, next: nil))
            } else {
                try console.table(DeliveriesCommand.table(replayed))
            }
        }
        do {
            for id in ids { replayed.append(try await client.replay(delivery: id)) }
        } catch {
            // A delivery or the coordinator has gone meanwhile. Finished replays stay, and are printed before the error.
            if !replayed.isEmpty { try show() }
            throw error
        }
        try show()
    }
}
