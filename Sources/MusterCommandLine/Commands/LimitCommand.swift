import ArgumentParser
import MusterAPI
import MusterCore

/// `muster limit`: changes what a group may use, and when.
struct LimitCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract: "Changes what a group may use and when: its priority, caps, hours, deadline, and what it waits for.",
        usage: "muster limit <group> [--priority <n>] [--weight <n>] [--max-connections <n>] [--rate <rate>] ...",
        discussion: """
            It holds at once, for what is running too; connections beyond a lower cap end with their chunks. What is not named \
            on the command line stays as it is: of the variables below only MUSTER_TZ counts here, the others are those of \
            muster add. The value none takes a cap, the hours, the deadline or what the group waits for away. --rate-between \
            and --after replace all there were.

            Examples:
              muster limit nightly --rate 10MiB/s --max-connections 8
              muster limit nightly --between 22:00-06:00 --tz Europe/Berlin
              muster limit nightly --rate-between 08:00-18:00=2MiB/s --tz Europe/Berlin
              muster limit nightly --deadline 2h --on-deadline continue
              muster limit report --after nightly --after weekly:finished
              muster limit nightly --rate none --between none
            """
    )

    @Argument(help: "The group's name.")
    var group: String

    @OptionGroup var limits: LimitArguments
    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var given: [SettingName: [String]] {
        Given.values([.server: client.server, .token: client.token]).merging(limits.given) { $1 }
    }

    static let typed: Set<SettingName> = [
        .priority, .weight, .maxConnections, .rate, .between, .rateBetween, .deadline, .onDeadline, .after,
    ]

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(group, what: "group")
        let patch = try context.settings.groupPatch()
        guard patch != GroupPatch() else {
            throw CommandFailure.usage("say what is to change: see muster help limit")
        }
        let document = try await context.withClient { try await $0.change(group: group, patch) }
        if context.console.json {
            try context.console.document(document)
        } else {
            try context.console.line("changed \(document.name)")
            for line in FactLines.lines(GroupFacts.limits(document)) { try context.console.line(line) }
            for line in FactLines.lines(document.notes.map { ("note", $0) }) { try context.console.line(line) }
        }
    }
}
