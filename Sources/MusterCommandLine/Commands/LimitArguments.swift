import ArgumentParser
import MusterAPI
import MusterCore

/// Options about what a group may use and when, for the commands that create groups and for the one that changes them.
struct LimitArguments: ParsableArguments {
    // The next argument is the value in any case: a priority may begin with a minus.
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "-1000 to 1000; groups of a higher priority are served first. (default: 0)",
            valueName: "n"
        )
    )
    var priority: String?

    @Option(
        help: ArgumentHelp(
            "Share of the bytes among groups of the same priority, 1 to 1000. (default: 1)",
            valueName: "n"
        )
    )
    var weight: String?

    @Option(
        help: ArgumentHelp("The most connections in the whole fleet.", valueName: "n")
    )
    var maxConnections: String?

    @Option(
        help: ArgumentHelp(
            "The most bytes per second in the whole fleet, such as 10MiB/s.",
            valueName: "rate"
        )
    )
    var rate: String?

    @Option(
        help: ArgumentHelp(
            "The hours in which the group may run, such as 22:00-06:00; it waits outside of them.",
            valueName: "window"
        )
    )
    var between: String?

    @Option(
        name: .customLong("tz"),
        help: ArgumentHelp(
            "The time zone of --between and --rate-between, such as Europe/Berlin. (default: the one that the group has, or UTC)",
            valueName: "zone"
        )
    )
    var timeZone: String?

    @Option(
        help: ArgumentHelp(
            """
            The rate at certain hours, such as 08:00-18:00=2MiB/s. May be repeated: the first window that contains the \
            present time counts, and --rate applies outside of all windows.
            """,
            valueName: "window=rate"
        )
    )
    var rateBetween: [String] = []

    @Option(
        help: ArgumentHelp(
            "How long the group may take from now on, such as 2h.", valueName: "duration")
    )
    var deadline: String?

    @Option(
        help: ArgumentHelp(
            """
            What happens when the deadline passes: \(DeadlineAction.allCases.map(\.rawValue).joined(separator: ", ")). \
            (default: fail)
            """,
            valueName: "action"
        )
    )
    var onDeadline: String?

    @Option(
        help: ArgumentHelp(
            """
            A group that this one waits for: until it has succeeded, or, with :finished, until it has ended in any way. May \
            be repeated. (default: succeeded)
            """,
            valueName: "group[:succeeded|finished]"
        )
    )
    var after: [String] = []

    /// The options that were given.
    var given: [SettingName: [String]] {
        Given.values([
            .priority: priority, .weight: weight, .maxConnections: maxConnections, .rate: rate, .between: between,
            .timeZone: timeZone, .deadline: deadline, .onDeadline: onDeadline,
        ]).merging(Given.lists([.rateBetween: rateBetween, .after: after])) { $1 }
    }

    /// The limits of a group from all settings. A typed `--tz` without any hours is refused.
    ///
    /// - Throws: `CommandFailure.usage` with the option and the rule.
    func patch(_ settings: Settings) throws(CommandFailure) -> GroupPatch {
        if timeZone != nil, settings.text(.between) == nil, settings.texts(.rateBetween).isEmpty {
            throw .usage("--tz is the time zone of --between or --rate-between: give one of them with it")
        }
        return try settings.groupPatch()
    }
}
