import ArgumentParser
import MusterAPI
import MusterCore

/// `muster limit`: changes what a group may use, and when.
struct LimitCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract: "Changes what a group may use and when: its priority, caps, hours, deadline, and what it waits for.",
        usage: "muster limit <group> [<options>]",
        discussion: """
            The change applies at once, also to transfers that are running. When the cap on connections is lowered, those \
            that are too many end after the chunk they are fetching. Options that are not given change nothing. The value \
            "none" removes a setting: --rate none, --max-connections none, --between none, --deadline none, --after none. \
            --rate-between and --after replace the whole list that the group had. Without --tz, times of day keep the time \
            zone that the group already has.

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

    var own: [SettingName: [String]] { limits.given }

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(group, what: "group")
        let settings = context.settings
        let patch = try limits.patch(settings)
        guard patch != GroupPatch() else {
            throw CommandFailure.usage("say what is to change: see muster help limit")
        }
        // New hours without --tz must not move a group to another time zone.
        let needsZone = settings.text(.timeZone) == nil && patch.limits.hasHours
        let (before, document) = try await context.withClient { client in
            let before = try await client.group(group)
            let zone = needsZone ? before.limits.standingZone : nil
            let wish = try zone.map { zone throws(CommandFailure) in try settings.groupPatch(standingZone: zone) }
            return (before, try await client.change(group: group, wish ?? patch))
        }
        if context.console.json {
            try context.console.document(document)
        } else {
            // The deadline of an ended group begins to run when the group goes on, and is not shown before.
            let isChanged =
                FactLines.lines(GroupFactLines.limits(before)) != FactLines.lines(GroupFactLines.limits(document))
                || document.state.isTerminal && patch.deadline != .keep
            let unchanged =
                document.state.isTerminal
                ? "has \(document.state == .cancelled ? "been cancelled" : document.state.rawValue)"
                : "has these limits already"
            try context.console.line(
                isChanged ? "changed \(document.name)" : "nothing to change: \(document.name) \(unchanged)")
            for line in FactLines.lines(GroupFactLines.limits(document)) { try context.console.line(line) }
            if document.state.isTerminal, patch.deadline.value != nil {
                try context.console.line(
                    "its deadline begins to run when the group goes on: muster retry \(ShellWord(document.name))")
            }
            for line in FactLines.lines(document.notes.map { ("note", WallClock.ofThisMachine.sentence($0)) }) {
                try context.console.line(line)
            }
        }
    }
}

extension GroupLimitsPatch {
    /// Whether it sets something that depends on the time of day.
    fileprivate var hasHours: Bool { between.value != nil || timetable.value != nil }
}
