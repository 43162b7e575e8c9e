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
                    try await Self.within(deadline) {
                        let start = try await watcher.lastPosition()
                        return try await watcher.untilTerminal(deadline: deadline, news: .failures(after: start))
                    }
                }
                if context.console.json { try context.console.document(end.group) }
                try await GroupResult(client: client, console: context.console).conclude(end)
            } catch CommandFailure.timedOut(let text) where context.console.json {
                // A program wants to know how far it got.
                let known = try? await Self.within(ContinuousClock.now) { try await client.group(group) }
                if let known { try context.console.document(known) }
                throw CommandFailure.timedOut(text)
            }
        }
    }

    /// How much later than at the deadline a coordinator that says nothing is given up: one that answers tells how far the group is.
    private static let grace: Duration = .seconds(2)

    /// Runs `body`, and no longer than the deadline allows, whether or not the coordinator answers.
    private static func within<Value: Sendable>(
        _ deadline: ContinuousClock.Instant?, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let deadline else { return try await body() }
        return try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await ContinuousClock().sleep(until: deadline + grace)
                throw CommandFailure.timedOut("the coordinator did not answer in time")
            }
            defer { group.cancelAll() }
            guard let first = try await group.next() else { throw CancellationError() }
            return first
        }
    }
}
