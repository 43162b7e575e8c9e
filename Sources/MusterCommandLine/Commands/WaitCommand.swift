import ArgumentParser
import MusterAPI
import MusterCore

/// `muster wait`: waits for a group.
struct WaitCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Waits until a group is done, and ends with the exit code that says how.",
        usage: "muster wait <group> [--timeout <duration>]",
        discussion: """
            Failures are shown as they happen, with the next try; a wait that is stopped says how far it came.

            Exit codes: 0 every task succeeded; 1 at least one failed; 4 the timeout passed; 5 the group was cancelled; \
            130 stopped by Ctrl-C, while the group goes on.

            Example:
              muster wait nightly --timeout 2h && start-the-next-step
            """
    )

    @Option(
        help: ArgumentHelp("How long to wait at the most; for ever if absent. (MUSTER_TIMEOUT)", valueName: "duration")
    )
    var timeout: String?

    @Argument(help: "The group's name.")
    var group: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var given: [SettingName: [String]] {
        Given.values([.server: client.server, .token: client.token, .timeout: timeout])
    }

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(group, what: "group")
        let deadline = try context.settings.duration(.timeout).map { ContinuousClock.now + $0 }
        try await context.withClient { client in
            let watcher = context.watcher(client, group: group)
            do {
                let end = try await Interruption.watched {
                    let start = try await watcher.lastPosition()
                    return try await watcher.untilTerminal(deadline: deadline, news: .failures(after: start))
                }
                if context.console.json { try context.console.document(end.group) }
                try await GroupResult(client: client, console: context.console).conclude(end)
            } catch CommandFailure.timedOut(let text) where context.console.json {
                // A program wants to know how far it got.
                try context.console.document(try await client.group(group))
                throw CommandFailure.timedOut(text)
            }
        }
    }
}
