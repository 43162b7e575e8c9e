import ArgumentParser
import MusterAPI

/// A command that enables or disables a subscription.
protocol SubscriptionSwitch: ClientCommand {
    /// Whether the command enables the subscription.
    static var enables: Bool { get }
    /// The subscription's name.
    var name: String { get }
}

extension SubscriptionSwitch {
    static var section: String { SubscriptionsCommand.section }

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(name, what: "subscription")
        let document = try await context.withClient {
            try await $0.changeSubscription(name, SubscriptionPatch(enabled: Self.enables))
        }
        if context.console.json {
            try context.console.document(document)
        } else {
            try context.console.table(SubscriptionsListCommand.table([document]))
            for line in SubscriptionsListCommand.notes([document]) { try context.console.line(line) }
        }
    }
}

/// `muster subscriptions enable`: posts events again.
struct SubscriptionsEnableCommand: SubscriptionSwitch {
    static let enables = true
    static let configuration = CommandConfiguration(
        commandName: "enable",
        abstract: "Has events posted again. Those that came meanwhile are posted first.",
        usage: "muster subscriptions enable <name>",
        discussion: """
            A receiver that answers 410 has its subscription disabled. Events that were dropped from the log meanwhile are \
            passed over.

            Example:
              muster subscriptions enable pager
            """
    )

    @Argument(help: "The subscription's name.")
    var name: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions
}

/// `muster subscriptions disable`: posts nothing for a while.
struct SubscriptionsDisableCommand: SubscriptionSwitch {
    static let enables = false
    static let configuration = CommandConfiguration(
        commandName: "disable",
        abstract: "Has nothing posted until the subscription is enabled again; its place in the log is kept.",
        usage: "muster subscriptions disable <name>",
        discussion: """
            Example:
              muster subscriptions disable pager
            """
    )

    @Argument(help: "The subscription's name.")
    var name: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions
}
