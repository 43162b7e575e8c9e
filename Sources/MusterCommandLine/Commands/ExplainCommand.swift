import ArgumentParser
import MusterAPI
import MusterCore

/// `muster explain`: why a group or a task is not done.
struct ExplainCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Tells why a group or a task is not done: what it waits for, and what happens next.",
        usage: "muster explain <group> [<key>]",
        discussion: """
            Of a group it tells what keeps its tasks, which origin is the slowest, what has to happen before the end, and when \
            that will be, as far as anybody can know. Of a task it shows who works on it, how each of its sources did, and what \
            was tried: when, with which answer, and what followed.

            Examples:
              muster explain nightly
              muster explain nightly a/b.tar
              muster explain nightly a/b.tar --json | jq -r .summary
            """
    )

    @Argument(help: "The group's name.")
    var group: String

    @Argument(help: "The task's key; the group as a whole if absent.")
    var key: String?

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(group, what: "group")
        try await context.withClient { client in
            if let key {
                let explanation = try await client.explanation(of: key, in: group)
                try show(explanation, { ExplanationText.lines($0, width: $1) }, context.console)
            } else {
                let explanation = try await client.groupExplanation(of: group)
                let failures =
                    explanation.group.tasks.failed > 0 && !context.console.json
                    ? try await GroupResult.failures(of: group, client)
                    : []
                try show(
                    explanation, { document, _ in GroupExplanationText.lines(document, failures: failures) },
                    context.console)
            }
        }
    }

    private func show<Document: Encodable>(
        _ document: Document,
        _ lines: (Document, Int?) -> [String],
        _ console: Console
    ) throws {
        guard !console.json else { return try console.document(document) }
        for line in lines(document, console.tableWidth) { try console.line(line) }
    }
}
