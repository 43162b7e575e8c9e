import ArgumentParser
import MusterAPI
import MusterCore

/// `muster remove`: forgets a group or some of its tasks.
struct RemoveCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Forgets a group, or some of its tasks. Finished files stay unless told otherwise.",
        usage: "muster remove <group> [<key> ...] [--files keep|delete]",
        discussion: """
            Examples:
              muster remove nightly
              muster remove nightly a.tar --files delete
            """
    )

    @Option(
        help: ArgumentHelp(
            "What becomes of finished files: keep or delete. (default: keep)",
            valueName: "what"
        )
    )
    var files: String?

    @OptionGroup var arguments: VerbArguments
    @OptionGroup var global: GlobalOptions

    var given: [SettingName: [String]] {
        Given.values([.server: arguments.client.server, .token: arguments.client.token, .files: files])
    }

    /// The result as JSON.
    private struct Document: Encodable {
        var group: String
        var keys: [String]?
        var files: String
        var removed = true
    }

    func perform(_ context: CommandContext) async throws {
        let (group, keys) = (arguments.group, arguments.keys)
        try CommandContext.checkName(group, what: "group")
        let files = try context.settings.choice(.files, of: RemovedFiles.self) ?? .keep
        try await context.withClient { client in
            if keys.isEmpty {
                try await client.removeGroup(group, files: files)
            } else {
                _ = try await client.removeTasks(keys, of: group, files: files)
            }
        }
        if context.console.json {
            try context.console.document(Document(group: group, keys: keys.isEmpty ? nil : keys, files: files.rawValue))
        } else {
            let what = keys.isEmpty ? group : "\(keys.count) task\(keys.count == 1 ? "" : "s") of \(group)"
            try context.console.line("removed \(what); finished files were \(files == .keep ? "kept" : "deleted")")
        }
    }
}
