import ArgumentParser
import MusterAPI
import MusterCore

/// `muster tasks`: lists the tasks of a group.
struct TasksCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "tasks",
        abstract: "Lists the tasks of a group.",
        usage: "muster tasks <group> [--state <state>]",
        discussion: """
            SPEED and ETA are of what is being fetched: the bytes per second lately, and how long the rest takes at that. FILE is where the file \
            stands, or will, where that is not its key.

            Examples:
              muster tasks nightly --state failed
              muster tasks nightly --json | jq -r .path
            """
    )

    @Option(
        help: ArgumentHelp(
            "Only tasks in this state: \(TaskState.allCases.map(\.rawValue).joined(separator: ", ")).",
            valueName: "state"
        )
    )
    var state: String?

    @Argument(help: "The group's name.")
    var group: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] { Given.values([.state: state]) }

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(group, what: "group")
        let state = try context.settings.choice(.state, of: TaskState.self)
        // Decided before the first page, so that every page has the columns or none has.
        let mayMove = state == nil || state == .active
        try await context.withClient { client in
            var after: String?
            var headings: [Substring] = []
            var failed: String?
            repeat {
                // A page at a time: a group may have millions of tasks.
                let page = try await client.tasks(of: group, state: state, after: after, limit: Limits.pageSize)
                if context.console.json {
                    for task in page.items { try context.console.document(task) }
                } else {
                    let lines = Self.table(page.items, mayMove: mayMove).lines(width: context.console.tableWidth)
                    // Another page may have other columns.
                    let own = lines[0].split(separator: " ")
                    for line in lines.dropFirst(own == headings ? 1 : 0) { try context.console.line(line) }
                    headings = own
                }
                failed = failed ?? page.items.first { $0.failure != nil }?.key
                after = page.next
            } while after != nil
            if let failed, !context.console.json {
                context.console.remark("why: \(TextWidth.escaped(FailureText.hint(group: group, key: failed)))")
            }
        }
    }

    /// A table of tasks.
    ///
    /// - Parameter mayMove: whether tasks may be active, so that there is a speed to show.
    static func table(_ tasks: [TaskDocument], mayMove: Bool) -> Table {
        let pace: [Table.Column] = mayMove ? [.number("SPEED"), .number("ETA")] : []
        var table = Table(
            [.text("STATE"), .number("DONE"), .number("SIZE")] + pace
                + [
                    .number("TRIES"), .name("KEY"), .name("FILE", isOptional: true),
                    .sentence("FAILURE", isOptional: true),
                ])
        for task in tasks {
            let total = task.bytes.total.map { "\(ByteCount(bytes: $0))" } ?? "-"
            let speed = task.state == .active ? task.bytesPerSecond.map(ProgressSnapshot.rate) : nil
            table.add(
                [task.state.rawValue, "\(ByteCount(bytes: task.bytes.done))", total]
                    + (mayMove ? [speed ?? "-", ProgressSnapshot.time(task.etaSeconds)] : [])
                    + [
                        "\(task.attempts)", task.key, task.path == task.key ? "-" : task.path,
                        task.failure.map { FailureText.text($0, isDecided: task.state == .failed) } ?? "",
                    ])
        }
        return table
    }
}
