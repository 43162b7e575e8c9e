import ArgumentParser
import MusterAPI
import MusterCore

/// `muster wait`: waits for a group.
struct WaitCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Waits until groups are done, and ends with the exit code that says how.",
        usage: "muster wait <group> ... [--timeout <duration>]",
        discussion: """
            Several groups are waited for one after the other; the exit code is that of the first one that did not succeed. Failures are shown as they happen, with the next try; a wait that is stopped says how far it came.

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

    @Argument(help: ArgumentHelp("The groups' names.", valueName: "group"))
    var groups: [String]

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] { Given.values([.timeout: timeout]) }

    func perform(_ context: CommandContext) async throws {
        for group in groups { try CommandContext.checkName(group, what: "group") }
        let deadline = try context.settings.duration(.timeout).map { ContinuousClock.now + $0 }
        try await context.withClient { client in
            let start = try await Interruption.watched {
                try await Self.within(deadline) {
                    try await context.watcher(client, group: groups[0]).lastPosition(deadline: deadline)
                }
            }
            var ended: [GroupDocument] = []
            var status = ExitStatus.success
            // A mistyped name is reported before the other groups have ended.
            for group in groups.dropFirst() {
                let watcher = context.watcher(client, group: group)
                try await Interruption.watched {
                    try await Self.within(deadline) { try await watcher.find(deadline: deadline) }
                }
            }
            do {
                for group in groups {
                    let watcher = context.watcher(client, group: group)
                    let end = try await Interruption.watched {
                        try await Self.within(deadline) {
                            try await watcher.untilTerminal(deadline: deadline, news: .failures(after: start))
                        }
                    }
                    ended.append(end.group)
                    let own = try await GroupResult(client: client, console: context.console).tell(end)
                    if status == .success { status = own }
                }
            } catch CommandFailure.timedOut(let text) where context.console.json {
                // A program gets the documents after a timeout too, to know how far the groups came.
                for group in groups.dropFirst(ended.count) {
                    if let known = try? await Self.within(ContinuousClock.now, { try await client.group(group) }) {
                        ended.append(known)
                    }
                }
                try show(ended, context.console)
                throw CommandFailure.timedOut(text)
            }
            if context.console.json { try show(ended, context.console) }
            if status != .success { throw CommandFailure.ended(status) }
        }
    }

    /// Prints the documents of the groups as one document.
    private func show(_ documents: [GroupDocument], _ console: Console) throws {
        if groups.count > 1 {
            try console.document(Page(items: documents, next: nil))
        } else if let document = documents.first {
            try console.document(document)
        }
    }

    /// How long after the deadline a silent coordinator is given up. A watcher that knows the state of the group reports it at the deadline itself.
    private static let grace: Duration = .milliseconds(200)

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
