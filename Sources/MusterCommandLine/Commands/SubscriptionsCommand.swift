import ArgumentParser
import MusterAPI
import MusterCore

/// `muster subscriptions`: lists and changes the subscriptions to events.
struct SubscriptionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscriptions",
        abstract:
            "Lists the subscriptions to events, adds one, switches one off and on, gives it another secret, or removes it.",
        usage: """
            muster subscriptions [--json]
            muster subscriptions add <name> <url> [<options>]
            muster subscriptions rotate <name> [--secret-file <file>]
            muster subscriptions enable|disable|remove <name>
            """,
        discussion: """
            Every event of its groups and types that happens from now on is posted to the URL of a subscription, signed by its \
            secret (Standard Webhooks), again and again until the receiver answers 2xx; what was given up is shown by muster \
            deliveries --state dead.

            Examples:
              muster subscriptions add pager https://example.org/hook \\
                --types group.failed,group.overdue
              muster subscriptions
              muster subscriptions remove pager
            """,
        subcommands: [
            SubscriptionsListCommand.self, SubscriptionsAddCommand.self, SubscriptionsEnableCommand.self,
            SubscriptionsDisableCommand.self, SubscriptionsRotateCommand.self, SubscriptionsRemoveCommand.self,
        ],
        defaultSubcommand: SubscriptionsListCommand.self
    )

    /// The section of a configuration file that the subcommands share.
    static let section = "subscriptions"
}

/// `muster subscriptions list`, which may be left out: lists the subscriptions.
struct SubscriptionsListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists the subscriptions, and how their deliveries stand.",
        usage: "muster subscriptions [--json]",
        discussion: """
            PENDING deliveries are under way or wait for their next try, those of a disabled subscription for being enabled; DEAD ones were given up. \
            Either is counted up to 1,000.

            Example:
              muster subscriptions --json | jq '.items[] | select(.dead > 0) | .name'
            """
    )

    static var section: String { SubscriptionsCommand.section }

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let subscriptions = try await context.withClient { client in
            try await Page.all { try await client.subscriptions(after: $0, limit: Limits.pageSize) }
        }
        if context.console.json {
            try context.console.document(Page(items: subscriptions, next: nil))
        } else if subscriptions.isEmpty {
            try context.console.line("there are no subscriptions")
        } else {
            try context.console.table(Self.table(subscriptions))
            for line in Self.notes(subscriptions) { try context.console.line(line) }
        }
    }

    /// Lines that say why subscriptions are disabled, and how many deliveries wait for their subscription to be enabled.
    static func notes(_ subscriptions: [SubscriptionDocument]) -> [String] {
        subscriptions.filter { !$0.enabled }.flatMap { item in
            let reason = item.disabledReason.map { TextWidth.escaped("\(item.name) is disabled: \($0)") }
            guard item.pending > 0 else { return [reason].compactMap { $0 } }
            let one = item.pending == 1
            let wait =
                "\(item.pending < Limits.deliveriesCounted ? "" : "at least ")\(item.pending) pending deliver\(one ? "y" : "ies") to \(item.name) wait\(one ? "s" : "") until it is enabled: muster subscriptions enable \(item.name)"
            return [reason, wait].compactMap { $0 }
        }
    }

    /// The table of subscriptions.
    static func table(_ subscriptions: [SubscriptionDocument]) -> Table {
        var table = Table([
            .name("NAME"), .text("STATE"), .number("PENDING"), .number("DEAD"), .name("GROUPS"), .sentence("TYPES"),
            .sentence("URL"),
        ])
        for item in subscriptions {
            let state = item.enabled ? "enabled" : "disabled"
            let types = item.types.isEmpty ? "all" : item.types.map(EventType.short).joined(separator: ",")
            table.add([item.name, state, count(item.pending), count(item.dead), item.groups, types, item.url])
        }
        return table
    }

    /// A number of deliveries; a `+` says that the count has reached its limit.
    private static func count(_ deliveries: Int64) -> String {
        "\(deliveries)\(deliveries < Limits.deliveriesCounted ? "" : "+")"
    }
}

/// `muster subscriptions add`: begins to post events to a URL.
struct SubscriptionsAddCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Has events posted to a URL from now on.",
        usage: "muster subscriptions add <name> <url> [<options>]",
        discussion: """
            The secret signs every delivery: "whsec_" and 24 to 64 bytes in Base64. Without --secret-file one is made and shown, \
            this once. In a pattern * stands for any characters and ? for one.

            Examples:
              muster subscriptions add pager https://example.org/hook --types group.failed
              muster subscriptions add etl https://example.org/etl \\
                --groups 'nightly-*' --secret-file /run/secrets/etl
            """
    )

    static var section: String { SubscriptionsCommand.section }

    @Option(
        help: ArgumentHelp(
            "The file with the secret; one is made if absent.",
            valueName: "file"
        )
    )
    var secretFile: String?

    @Option(
        help: ArgumentHelp("The groups whose events are wanted. (default: all)", valueName: "pattern")
    )
    var groups: String?

    @Option(
        help: ArgumentHelp(
            "The types that are wanted, such as group.succeeded, separated by commas. (default: all)",
            valueName: "type,..."
        )
    )
    var types: [String] = []

    @Argument(help: "The subscription's name.")
    var name: String

    @Argument(help: "Where events are posted to; without credentials.")
    var url: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] {
        Given.values([.secretFile: secretFile, .groups: groups]).merging(Given.lists([.types: types])) { $1 }
    }

    func perform(_ context: CommandContext) async throws {
        let settings = context.settings
        try CommandContext.checkName(name, what: "subscription")
        let groups = try settings.text(.groups).map { text throws(CommandFailure) in
            guard let pattern = try? GroupPattern(text) else {
                throw settings.refusal(.groups, "must be a group's name, in which * and ? may stand")
            }
            return pattern.text
        }
        let types = try settings.eventTypes()
        let secret = try settings.webhookSecret().map { Secret($0.text) }
        let request = SubscriptionRequest(
            name: name,
            url: url,
            secret: secret,
            groups: groups,
            types: types.isEmpty ? nil : types
        )
        let document = try await context.withClient {
            try await $0.createSubscription(request)
        }
        if context.console.json {
            try context.console.document(document)
        } else {
            try context.console.line("added \(document.name): events are posted to \(TextWidth.escaped(document.url))")
            if let made = document.secret {
                try context.console.line("secret (shown this once): \(TextWidth.escaped(made))")
            }
        }
    }
}

/// `muster subscriptions remove`: ends a subscription.
struct SubscriptionsRemoveCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Ends a subscription, and forgets its deliveries.",
        usage: "muster subscriptions remove <name>",
        discussion: """
            Example:
              muster subscriptions remove pager
            """
    )

    static var section: String { SubscriptionsCommand.section }

    @Argument(help: "The subscription's name.")
    var name: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    /// The result as JSON.
    private struct Document: Encodable {
        var subscription: String
        var removed = true
    }

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(name, what: "subscription")
        try await context.withClient { try await $0.removeSubscription(name) }
        if context.console.json {
            try context.console.document(Document(subscription: name))
        } else {
            try context.console.line("removed \(name)")
        }
    }
}
