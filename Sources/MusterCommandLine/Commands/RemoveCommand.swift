import ArgumentParser
import MusterAPI
import MusterCore
import Synchronization

/// `muster remove`: forgets a group or some of its tasks.
struct RemoveCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Forgets a group, or some of its tasks. Finished files stay unless told otherwise.",
        usage: "muster remove <group> [<key> ...] [--files keep|delete] [--wait]",
        discussion: """
            Files are deleted by the workers that reach the sink. Until they are gone, muster status shows the group as removing.

            Examples:
              muster remove nightly
              muster remove nightly --files delete --wait
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

    @Flag(help: "Wait until the files that are to be deleted are gone. (MUSTER_WAIT)")
    var wait = false

    @OptionGroup var arguments: VerbArguments
    @OptionGroup var global: GlobalOptions

    var client: ClientOptions { arguments.client }
    var own: [SettingName: [String]] { Given.values([.files: files]).merging(Given.flags([.wait: wait])) { $1 } }

    /// The result as JSON.
    private struct Document: Encodable {
        var group: String
        var keys: [String]?
        var files: String
        var removed = true
        /// How many finished files are still to be deleted.
        var filesLeft: Int64
        /// How many files are deleted and how many stay; `nil` if all are kept.
        var fate: RemovalDocument.Fate?
        /// What became of the files that were to be deleted, as far as workers have reported.
        var outcome: RemovalDocument.Outcome?
    }

    /// How often the command checks whether the files are gone.
    private static let period: Duration = .milliseconds(500)

    func perform(_ context: CommandContext) async throws {
        let (group, keys) = (arguments.group, arguments.keys)
        try CommandContext.checkName(group, what: "group")
        let files = try context.settings.choice(.files, of: RemovedFiles.self) ?? .keep
        let waits = try context.settings.flag(.wait)
        let done = try await context.withClient { client in
            try await Self.remove(group, keys, files, waits: waits, client, context.console)
        }
        let removal = done.removal
        if context.console.json {
            try context.console.document(
                Document(
                    group: group, keys: keys.isEmpty ? nil : keys, files: done.files.rawValue, filesLeft: removal.files,
                    fate: removal.fate, outcome: removal.outcome))
        } else {
            try context.console.line(Self.line(done.what, done.files, removal))
            if let rest = done.rest { try context.console.line(PlainProgress.sentence(ProgressSnapshot(group: rest))) }
        }
    }

    /// The result of a removal.
    struct Done {
        /// What was removed, in words.
        var what: String
        var removal: RemovalDocument
        /// What happens to the files. If the removal was begun before, its choice counts.
        var files: RemovedFiles
        /// The group, where only some of its tasks were removed.
        var rest: GroupDocument?
    }

    /// Removes a group or some of its tasks.
    ///
    /// - Parameter waits: whether to wait until the files are deleted, and for a coordinator that is away.
    static func remove(
        _ group: String, _ keys: [String], _ files: RemovedFiles, waits: Bool, _ client: MusterClient,
        _ console: Console
    ) async throws -> Done {
        let client = waits ? Patience(console: console).asking(by: client) : client
        var done: Done
        if keys.isEmpty {
            do {
                done = Done(what: group, removal: try await client.removeGroup(group, files: files), files: files)
            } catch let problem as Problem where problem.code == .groupNotFound {
                // A group that is being removed already is not removed again; this command joins that removal.
                done = Done(what: group, removal: try await client.removal(of: group), files: .delete)
                guard done.removal.note != nil else { throw problem }
            }
        } else {
            let rest = try await client.removeTasks(keys, of: group, files: files)
            done = Done(
                what: what(Set(keys).count, of: group, removed: rest.changedTasks),
                removal: try await client.removal(of: group), files: files, rest: rest)
            done.removal.fate = rest.fate
        }
        if waits { done.removal = try await gone(done.removal, done.what, done.files, client, console) }
        return done
    }

    /// Words for some tasks of a group.
    ///
    /// - Parameter removed: how many of them this command has removed. A request removes all of its tasks or none, so that another process has removed
    ///   the missing ones, or the whole group, at the same time.
    static func what(_ tasks: Int, of group: String, removed: Int64?) -> String {
        let names = "task\(tasks == 1 ? "" : "s") of \(group)"
        guard let removed, removed < tasks else { return "\(tasks) \(names)" }
        let others = removed == 0 ? "the group or them" : "the others"
        return "\(removed) of \(tasks) \(names), because another command has removed \(others)"
    }

    /// Waits until the removal is complete. Prints an obstacle at once, and what is left if the command is stopped.
    private static func gone(
        _ removal: RemovalDocument, _ what: String, _ files: RemovedFiles, _ client: MusterClient, _ console: Console
    ) async throws -> RemovalDocument {
        let last = Mutex(removal)
        let group = removal.group
        do {
            return try await Interruption.watched {
                var removal = removal
                var told: String?
                while removal.note != nil {
                    if let obstacle = removal.obstacle, obstacle != told {
                        console.remark(TextWidth.escaped(line(what, files, removal)))
                        told = obstacle
                    }
                    try await Task.sleep(for: period)
                    let fate = removal.fate
                    removal = try await client.removal(of: group)
                    removal.fate = fate
                    let seen = removal
                    last.withLock { $0 = seen }
                }
                return removal
            }
        } catch CommandFailure.ended(let status) {
            console.remark(TextWidth.escaped(line(what, files, last.withLock { $0 })))
            throw CommandFailure.ended(status)
        }
    }

    /// A line that says what is removed, and what is still to be done.
    static func line(_ what: String, _ files: RemovedFiles, _ removal: RemovalDocument) -> String {
        if files == .delete || removal.pending == true, let note = removal.note {
            return
                "removed \(what); \(note)\(removal.fate.flatMap(kept).map { "; \($0)" } ?? ""); see: muster status"
        }
        guard files == .delete else { return "removed \(what); finished files were kept" }
        let said = [outcome(removal.outcome), removal.fate.flatMap(kept)].compactMap { $0 }
        return "removed \(what); \(said.joined(separator: "; "))"
    }

    /// What became of the files that were to be deleted. Only the log of the worker that deletes them names those that stay.
    private static func outcome(_ outcome: RemovalDocument.Outcome?) -> String {
        let (deleted, changed, missing) = (outcome?.deleted ?? 0, outcome?.changed ?? 0, outcome?.missing ?? 0)
        var said = "\(deleted) file\(deleted == 1 ? "" : "s") deleted"
        if changed > 0 {
            let name = changed == 1 ? "the worker's log names it" : "the workers' logs name them"
            // The file may always have been that of another installation with the same sink.
            said +=
                "; \(changed) kept, since what is there is not this installation's, or was changed: \(name)"
        }
        if missing > 0 { said += "; \(missing) gone already" }
        return said
    }

    /// How many files stay, and why; `nil` if none does.
    private static func kept(_ fate: RemovalDocument.Fate) -> String? {
        guard fate.kept > 0 else { return nil }
        let files = fate.kept == 1 ? "1 kept" : "\(fate.kept) kept"
        // If no other group is named, another task of this group has the path.
        return fate.keptBy.map { "\(files): the group \($0) has \(fate.kept == 1 ? "it" : "them") too" } ?? files
    }
}
