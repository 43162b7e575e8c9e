import ArgumentParser
import MusterAPI
import MusterCore

/// `muster set`: changes how the sources of a group are asked.
struct SetCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Changes how the sources of a group are asked: header fields, credentials, proxy, authorities.",
        usage: "muster set <group> [<options>]",
        discussion: """
            The options take the place of all that the group was told before about how its sources are asked, also of those \
            that are not given again. They hold from the next request on; what has come stays. Tasks that have failed are put \
            back with muster retry. Secrets are never shown: give env:NAME or file:PATH, which the worker resolves.

            Examples:
              muster set nightly --header "Authorization: env:TOKEN"
              muster retry nightly
              muster set nightly --user anna:file:/run/secrets/anna
            """
    )

    @Argument(help: "The group's name.")
    var group: String

    @OptionGroup var sources: SourceArguments
    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] { sources.given }

    func perform(_ context: CommandContext) async throws {
        try CommandContext.checkName(group, what: "group")
        // Options of a configuration file, which are for every group, must not change this group without an option on the command line.
        guard sources.given.values.contains(where: { !$0.isEmpty }),
            let fetch = try context.settings.transfers(base: context.workingDirectory).fetch
        else { throw CommandFailure.usage("say how its sources are to be asked: see muster help set") }
        let document = try await context.withClient {
            try await $0.change(group: group, GroupPatch(fetch: .set(fetch)))
        }
        if context.console.json {
            try context.console.document(document)
        } else {
            for line in Self.lines(document) { try context.console.line(line) }
        }
    }

    /// Lines about the change, and about the command that puts failed tasks back.
    static func lines(_ group: GroupDocument) -> [String] {
        let options = (group.fetchOptions ?? []).joined(separator: ", ")
        var lines = ["changed \(group.name): its sources are asked with \(options) from now on"]
        let failed = group.tasks.failed
        if failed > 0 {
            lines.append(
                "\(failed == 1 ? "1 task has" : "\(failed) tasks have") failed; put \(failed == 1 ? "it" : "them") back with: "
                    + "muster retry \(ShellWord(group.name))")
        }
        return lines.map { TextWidth.escaped($0) }
    }
}
