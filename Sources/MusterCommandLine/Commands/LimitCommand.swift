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
            stays as it is; the value none takes a cap, the hours, the deadline or what the group waits for away. \
            --rate-between and --after replace all there were. Without --tz, parts of the day are in the time zone that the \
            group has already.

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

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(group, what: "group")
        let settings = context.settings
        let patch = try limits.patch(settings)
        guard patch != GroupPatch() else {
            throw CommandFailure.usage("say what is to change: see muster help limit")
        }
        // Nobody is to be moved to another zone by naming other hours.
        let needsZone = settings.text(.timeZone) == nil && patch.limits.hasHours
        let document = try await context.withClient { client in
            guard needsZone, let zone = try await client.group(group).limits.standingZone else {
                return try await client.change(group: group, patch)
            }
            return try await client.change(group: group, try settings.groupPatch(standingZone: zone))
        }
        if context.console.json {
            try context.console.document(document)
        } else {
            try context.console.line("changed \(document.name)")
            for line in FactLines.lines(GroupFacts.limits(document)) { try context.console.line(line) }
            for line in FactLines.lines(document.notes.map { ("note", $0) }) { try context.console.line(line) }
        }
    }
}

extension GroupLimitsPatch {
    /// Whether it sets something that depends on the time of day.
    fileprivate var hasHours: Bool { between.value != nil || timetable.value != nil }
}
