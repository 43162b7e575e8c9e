import ArgumentParser
import MusterAPI
import MusterCore

/// `muster explain`: why a task is not done.
struct ExplainCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Tells why a task is not done: what it waits for, since when, and what happens next.",
        usage: "muster explain <group> <key>",
        discussion: """
            It shows who works on the task, how each of its sources did, and what was tried: when, with which answer, and what \
            followed.

            Examples:
              muster explain nightly a/b.tar
              muster explain nightly a/b.tar --json | jq -r .summary
            """
    )

    @Argument(help: "The group's name.")
    var group: String

    @Argument(help: "The task's key.")
    var key: String

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var given: [SettingName: [String]] { Given.values([.server: client.server, .token: client.token]) }

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(group, what: "group")
        let explanation = try await context.withClient { try await $0.explanation(of: key, in: group) }
        if context.console.json {
            try context.console.document(explanation)
        } else {
            for line in ExplanationText.lines(explanation, width: context.console.tableWidth) {
                try context.console.line(line)
            }
        }
    }
}
