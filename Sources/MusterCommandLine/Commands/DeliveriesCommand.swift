import ArgumentParser
import MusterAPI
import MusterCore

/// `muster deliveries`: how the deliveries to subscriptions stand.
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

    /// The section of a configuration file that its parts share.
    static let section = "deliveries"

    /// The table of deliveries.
    static func table(_ deliveries: [DeliveryDocument]) -> Table {
        var table = Table([
            .number("ID"), .text("STATE"), .number("TRIES"), .text("SUBSCRIPTION"), .number("EVENT"), .text("TYPE"),
            .text("SUBJECT"), .text("NEXT TRY", isOptional: true), .text("FAILURE", isOptional: true),
        ])
        for item in deliveries {
            table.add([
                "\(item.id)", item.state.rawValue, "\(item.attempts)", item.subscription, "\(item.position)",
                EventType.short(item.type), item.subject, item.nextTryAt?.description ?? "-",
                item.state == .delivered ? "" : item.failure ?? "",
            ])
        }
        return table
    }
}

/// `muster deliveries list`, which may be left out: lists deliveries.
struct DeliveriesListCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists deliveries, the oldest first.",
        usage: "muster deliveries [--state <state>] [--subscription <name>] [--json]",
        discussion: """
            Example:
              muster deliveries --state dead --json | jq -r '.items[].id' | xargs muster deliveries replay
            """
    )

    static var section: String { DeliveriesCommand.section }

    @Option(
        help: ArgumentHelp(
            "Only deliveries in this state: \(DeliveryState.allCases.map(\.rawValue).joined(separator: ", ")). (MUSTER_STATE)",
            valueName: "state"
        )
    )
    var state: String?

    @Option(help: ArgumentHelp("Only deliveries to this subscription. (MUSTER_SUBSCRIPTION)", valueName: "name"))
    var subscription: String?

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var given: [SettingName: [String]] {
        Given.values([
            .server: client.server, .token: client.token, .state: state, .subscription: subscription,
        ])
    }

    func perform(_ context: CommandContext) async throws {
        let state = try context.settings.choice(.state, of: DeliveryState.self)
        let subscription = context.settings.text(.subscription)
        if let subscription { try CommandContext.checkName(subscription, what: "subscription") }
        let deliveries = try await context.withClient { client in
            try await Page.all {
                try await client.deliveries(
                    state: state,
                    subscription: subscription,
                    after: $0,
                    limit: Limits.pageSize
                )
            }
        }
        if context.console.json {
            try context.console.document(Page(items: deliveries, next: nil))
        } else if deliveries.isEmpty {
            try context.console.line("there are no \(state.map { "\($0.rawValue) " } ?? "")deliveries")
        } else {
            try context.console.table(DeliveriesCommand.table(deliveries))
        }
    }
}

/// `muster deliveries replay`: delivers events once more.
struct DeliveriesReplayCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Delivers events once more, beginning the schedule anew.",
        usage: "muster deliveries replay <id> ...",
        discussion: """
            The receiver gets the same bytes with the same id as before.

            Example:
              muster deliveries replay 17 18
            """
    )

    static var section: String { DeliveriesCommand.section }

    @Argument(help: ArgumentHelp("The numbers of the deliveries.", valueName: "id"))
    var ids: [Int64]

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var given: [SettingName: [String]] { Given.values([.server: client.server, .token: client.token]) }

    func perform(_ context: CommandContext) async throws {
        let deliveries = try await context.withClient { client in
            var deliveries: [DeliveryDocument] = []
            for id in ids { deliveries.append(try await client.replay(delivery: id)) }
            return deliveries
        }
        if context.console.json {
            try context.console.document(Page(items: deliveries, next: nil))
        } else {
            try context.console.table(DeliveriesCommand.table(deliveries))
        }
    }
}
