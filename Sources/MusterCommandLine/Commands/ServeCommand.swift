import ArgumentParser
import Logging
import MusterCoordinator
import MusterCore

/// `muster serve`: runs a coordinator.
struct ServeCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Runs a coordinator. Run as many as you like on one database.",
        usage: "muster serve [--database <url>] [--listen <host:port>]",
        discussion: """
            Listening beyond this machine needs two tokens: MUSTER_TOKEN for administrators, MUSTER_WORKER_TOKEN for \
            workers. All coordinators of a database run one build: to upgrade, stop all of them, run muster migrate \
            (or one with --migrate) and start them again. Workers go on meanwhile.

            Example:
              export MUSTER_DATABASE=postgresql://muster@db/muster
              export MUSTER_TOKEN=… MUSTER_WORKER_TOKEN=…
              muster migrate && muster serve --listen 0.0.0.0:7300
            """
    )

    @Option(
        help: ArgumentHelp(
            "The connection string of PostgreSQL. Better set MUSTER_DATABASE, since it may hold a password.",
            valueName: "url"
        )
    )
    var database: String?

    @Option(
        help: ArgumentHelp(
            "Where to listen; port 0 takes any that is free. (MUSTER_LISTEN; default: 127.0.0.1:7300)",
            valueName: "host:port"
        )
    )
    var listen: String?

    @OptionGroup var names: HostOptions

    @Flag(
        help: ArgumentHelp(
            """
            Bring the database's schema up to date first, as muster migrate does. Waits 10s for the coordinators of \
            another build to end. (MUSTER_MIGRATE)
            """
        )
    )
    var migrate = false

    @OptionGroup var tokens: TokenOptions
    @OptionGroup var tuning: CoordinatorOptions
    @OptionGroup var retention: RetentionOptions

    @OptionGroup var global: GlobalOptions

    var given: [SettingName: [String]] {
        Given.values([.database: database, .listen: listen]).merging(tokens.given) { $1 }.merging(tuning.given) { $1 }
            .merging(retention.given) { $1 }.merging(names.given) { $1 }.merging(Given.flags([.migrate: migrate])) {
                $1
            }
    }

    func perform(_ context: CommandContext) async throws {
        let settings = context.settings
        let logger = try settings.logger(default: .info)
        let address = try settings.listenAddress()
        var configuration = try settings.coordinator(listen: address)
        configuration.database = try settings.databaseConnection()
        let announcement = Announcement(console: context.console)
        let sender = try WebhookSender(addressGuard: configuration.addressGuard)
        let coordinator: Coordinator
        do {
            coordinator = try Coordinator(configuration: configuration, logger: logger, post: sender.post) { port in
                announcement.listening(ListenAddress(host: address.host, port: port))
            }
        } catch {
            throw CommandFailure.usage("\(error)")
        }
        if configuration.adminToken == nil {
            logger.warning(
                """
                every user of this machine can control this coordinator, and its workers: \
                set MUSTER_TOKEN and MUSTER_WORKER_TOKEN
                """)
        }
        if try settings.flag(.migrate) {
            let applied = try await DatabaseStart.patiently(logger: logger) {
                try await SchemaMigration.migrate(database: configuration.database)
            }
            for name in applied { logger.info("schema.applied", metadata: ["name": "\(name)"]) }
        }
        try await CommandFailure.listening(at: address) {
            _ = try await SignalledRun(services: [coordinator], grace: .seconds(8), logger: logger).run()
        }
    }
}

/// The names under which a coordinator accepts requests.
struct HostOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            A further name or address under which the coordinator is asked, such as that of a reverse proxy; may be repeated. \
            (MUSTER_HOST, separated by commas)
            """,
            valueName: "name"
        )
    )
    var host: [String] = []

    /// The options that were given.
    var given: [SettingName: [String]] { Given.lists([.host: host]) }
}

/// The tokens of a coordinator.
struct TokenOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The administrators' token. Better set MUSTER_TOKEN: arguments can be seen by everybody.",
            valueName: "token"
        )
    )
    var token: String?

    @Option(
        help: ArgumentHelp("The workers' token. Better set MUSTER_WORKER_TOKEN.", valueName: "token")
    )
    var workerToken: String?

    /// The options that were given.
    var given: [SettingName: [String]] { Given.values([.token: token, .workerToken: workerToken]) }
}

/// `muster migrate`: brings a database's schema up to date.
struct MigrateCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Brings a database's schema up to date.",
        usage: "muster migrate [--database <url>]",
        discussion: """
            Running it again, or on several machines at once, does no harm. While coordinators of another build use the \
            database it waits for them to end, for 10s, and then says which are left. Workers go on meanwhile.

            Example:
              MUSTER_DATABASE=postgresql://muster@db/muster muster migrate
            """
    )

    @Option(
        help: ArgumentHelp(
            "The connection string of PostgreSQL. Better set MUSTER_DATABASE, since it may hold a password.",
            valueName: "url"
        )
    )
    var database: String?

    @OptionGroup var global: GlobalOptions

    var given: [SettingName: [String]] { Given.values([.database: database]) }

    /// The result as JSON.
    private struct Document: Encodable {
        var applied: [String]
    }

    func perform(_ context: CommandContext) async throws {
        let applied = try await SchemaMigration.migrate(database: try context.settings.databaseConnection())
        if context.console.json {
            try context.console.document(Document(applied: applied))
        } else if applied.isEmpty {
            try context.console.line("the schema is up to date")
        } else {
            for name in applied { try context.console.line("applied \(name)") }
        }
    }
}
