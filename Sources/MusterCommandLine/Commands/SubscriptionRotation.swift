import ArgumentParser
import MusterAPI
import MusterCore

/// `muster subscriptions rotate`: replaces the secret that signs the deliveries.
struct SubscriptionsRotateCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Signs deliveries with another secret; the old one signs too, for a day.",
        usage: "muster subscriptions rotate <name> [--secret-file <file>]",
        discussion: """
            For a day every delivery has a signature of either secret, so that the receiver may change to the new one at any time \
            meanwhile. Without --secret-file a secret is made and shown, this once.

            Examples:
              muster subscriptions rotate pager
              muster subscriptions rotate etl --secret-file /run/secrets/etl
            """
    )

    static var section: String { SubscriptionsCommand.section }

    @Option(help: ArgumentHelp("The file with the new secret; one is made if absent.", valueName: "file"))
    var secretFile: String?

    @Argument(help: "The subscription's name.")
    var name: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] { Given.values([.secretFile: secretFile]) }

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(name, what: "subscription")
        let given = try context.settings.webhookSecret()
        var generator = SystemRandomNumberGenerator()
        let secret = given ?? WebhookSecret(random: &generator)
        var document = try await context.withClient {
            try await $0.changeSubscription(name, SubscriptionPatch(secret: Secret(secret.text)))
        }
        if given == nil { document.secret = secret.text }
        if context.console.json {
            try context.console.document(document)
        } else {
            let until =
                document.previousSecretUntil.map { "; the old one signs too until \(WallClock.ofThisMachine.text($0))" }
                ?? ""
            try context.console.line("\(document.name) has another secret\(until)")
            if let made = document.secret {
                try context.console.line("secret (shown this once): \(TextWidth.escaped(made))")
            }
        }
    }
}

extension Settings {
    /// The largest file of a secret, in bytes, with the line break at its end.
    private static let secretLimit = 4_096

    /// The secret in the file that was named; `nil` if none was.
    func webhookSecret() throws(CommandFailure) -> WebhookSecret? {
        guard let path = text(.secretFile) else { return nil }
        let bytes = try SmallFile.read(path, what: "secret in the file", limit: Self.secretLimit)
        let text = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).joined()
        do throws(WebhookSecret.Refusal) {
            return try WebhookSecret(validating: text)
        } catch {
            throw .usage("the secret in the file \(path) \(error.description)")
        }
    }
}
