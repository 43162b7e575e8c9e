import ArgumentParser
import Crypto
import FoundationEssentials
import Logging
import MusterAPI
import MusterCore

/// `muster on`: runs a command for each event.
struct OnCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "on",
        abstract: "Runs a command for each event of some groups, with the event on its standard input.",
        usage: "muster on <group-pattern> [<options>] -- <command> ...",
        discussion: """
            In the pattern, * stands for any number of characters and ? for one character.

            The command runs once per event, one event at a time, in the order of the log. The event is one line of JSON on its \
            standard input. In its environment, MUSTER_EVENT_TYPE and MUSTER_GROUP say what happened to which group, and \
            MUSTER_EVENT_ID identifies the event.

            Exit code 0 means that the event is done. After any other exit code the command runs again for the same event, after \
            1s, 2s, 4s and so on up to 1m; later events wait. An event can come twice, for example after a crash; \
            MUSTER_EVENT_ID is the same both times.

            The coordinator remembers under --consumer which event was done last, so that a restart continues there. A new \
            consumer begins with the oldest event that is kept. If several processes use one name, one of them works and the \
            others take over when it ends.

            Ctrl-C or SIGTERM lets a running command finish, for at most 10 seconds. If this process is killed, the command is \
            killed with it.

            Examples:
              muster on 'nightly-*' --types group.succeeded -- ./start-the-next-step
              muster on '*' --types group.failed,group.overdue --consumer pager -- \\
                sh -c 'jq -r .subject | mail -s failed ops'
            """
    )

    @Option(
        help: ArgumentHelp(
            """
            Only events of these types, such as group.succeeded or task.failed, separated by commas.
            """,
            valueName: "type,..."
        )
    )
    var types: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            The name under which the coordinator remembers what is done. (default: made from the pattern and the types, \
            such as on-nightly)
            """,
            valueName: "name"
        )
    )
    var consumer: String?

    @Argument(help: ArgumentHelp("The groups, in quotes if there is a * or a ? in it.", valueName: "group-pattern"))
    var pattern: String

    @Argument(parsing: .postTerminator, help: ArgumentHelp("The command and its arguments.", valueName: "command"))
    var command: [String] = []

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] {
        Given.values([.consumer: consumer]).merging(Given.lists([.types: types])) { $1 }
    }

    /// How long a running event command may take once `muster on` is told to stop.
    private static let grace: Duration = .seconds(10)

    func perform(_ context: CommandContext) async throws {
        let settings = context.settings
        let pattern = try GroupPattern(pattern)
        let types = try settings.eventTypes()
        let name = settings.text(.consumer) ?? Self.consumerName(pattern, types: types)
        try CommandContext.checkName(name, what: "consumer")
        guard !command.isEmpty else {
            throw CommandFailure.usage("give a command after --: muster on '\(pattern.text)' -- COMMAND…")
        }
        let command = EventCommand(words: command, temporaryDirectory: context.temporaryDirectory)
        try await command.check()
        let logger = try settings.logger(default: .error)
        try await context.withClient { client in
            let runner = EventRunner(
                client: client.once,
                consumer: name,
                groups: pattern.text,
                types: types,
                command: command,
                console: context.console
            )
            _ = try await SignalledRun(services: [runner], grace: Self.grace, logger: logger).run()
        }
    }

    /// The default name of the consumer, such as `on-nightly`. If the pattern has wildcards or is long, or only some types are wanted, the name ends
    /// with 8 digits of a hash of them, so that two commands for different events never share a place in the log.
    static func consumerName(_ pattern: GroupPattern, types: [String]) -> String {
        let readable = String(pattern.text.map { $0 == "*" || $0 == "?" ? "-" : $0 })
        if readable == pattern.text, types.isEmpty, readable.count <= 150 { return "on-\(readable)" }
        let all = ([pattern.text] + types.sorted()).joined(separator: " ")
        let digest = ContentDigest(algorithm: .sha256, bytes: SHA256.hash(data: Data(all.utf8)))
        return "on-\(readable.prefix(150)).\(digest.hexadecimal.prefix(8))"
    }
}
