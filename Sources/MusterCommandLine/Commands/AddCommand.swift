import ArgumentParser
import MusterAPI
import MusterCore

/// `muster add`: adds tasks to a group.
struct AddCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Adds tasks to a group, which is created if it is missing.",
        usage: "muster add <group> [-i <manifest>] [--open] [<options>] [<url> ...]",
        discussion: """
            The group is sealed afterwards, so that it completes once every task is done; with --open more can be added \
            later. Tasks whose key is there already change nothing; one without a key is known by its path and its URLs, and refused if a task with \
            other URLs has its name. A list with a mistake is refused as a whole. With --reopen \
            a group that is sealed, or has finished, takes more: it completes once more then. How files are fetched, what the \
            group may use and what it waits for is said when the group is made; see muster help limit. Paths and env:NAME are \
            those of the workers.

            A manifest has a URL per line, or a task as JSON per line:
              https://example.org/a.tar
              {"urls": ["https://example.org/b.tar"], "path": "b/b.tar", "size": 123}
            The fields of a task are urls, key, path, size, digests, headers, priority, metadata, contentType, deadline and fetch \
            (docs/configuration.md).

            Examples:
              muster add nightly https://example.org/a.tar https://example.org/b.tar
              muster add nightly -i manifest.ndjson --wait
              generate-list | muster add nightly -i - --open
              muster add nightly --reopen https://example.org/c.tar
              muster add report -i reports.txt --after nightly --rate 10MiB/s
              muster add private -i urls.txt --header 'X-Key: file:/run/secrets/key'
            """
    )

    @Option(
        name: [.customShort("i"), .customLong("manifest")],
        help: ArgumentHelp("The list of tasks; - is standard input.", valueName: "manifest"),
        completion: .file()
    )
    var manifest: [String] = []

    @Option(
        help: ArgumentHelp(
            "The sink of a new group. (default: \(defaultSinkName))",
            valueName: "name"
        )
    )
    var sink: String?

    @Flag(help: "Leave the group open for more tasks.")
    var open = false

    @Flag(help: "Open the group again if it is sealed or has finished.")
    var reopen = false

    @Flag(help: "Wait until the group is done, and show how it goes. (MUSTER_WAIT)")
    var wait = false

    @Argument(help: "The group's name.")
    var group: String

    @Argument(help: ArgumentHelp("URLs to fetch.", valueName: "url"))
    var urls: [String] = []

    @OptionGroup var limits: LimitArguments
    @OptionGroup var sources: SourceArguments
    @OptionGroup var policy: PolicyArguments
    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    func validate() throws {
        guard manifest.count > 1 else { return }
        throw ValidationError("one manifest at a time: cat a.txt b.txt | muster add GROUP -i -")
    }

    var own: [SettingName: [String]] {
        Given.values([.manifest: manifest.last, .sink: sink])
            .merging(Given.flags([.open: open, .reopen: reopen, .wait: wait])) { $1 }
            .merging(limits.given) { $1 }.merging(sources.given) { $1 }.merging(policy.given) { $1 }
    }

    /// The result as JSON.
    private struct Document: Encodable {
        var added: Int64
        var existing: Int64
        var created: Bool
        var group: GroupDocument
    }

    func perform(_ context: CommandContext) async throws {
        let settings = context.settings
        try CommandContext.checkName(group, what: "group")
        let isOpen = try settings.flag(.open)
        let waits = try settings.flag(.wait)
        let reopens = try settings.flag(.reopen)
        if isOpen, waits {
            throw CommandFailure.usage("--wait with --open would wait for ever: an open group never completes")
        }
        let sink = try sink(settings)
        let wishes = try limits.patch(settings)
        let manifest = try settings.text(.manifest).map { path throws(CommandFailure) in
            try ManifestFile.open(path, temporaryDirectory: context.temporaryDirectory)
        }
        let tasks = try TaskList(manifest: manifest, urls: urls, identifies: false)
        if tasks.isAbsent, !isOpen {
            throw CommandFailure.usage("give URLs, or a manifest with -i, or --open for an empty group")
        }
        for line in try tasks.renamings() { context.console.remark(TextWidth.escaped(line)) }
        let transfers = try settings.transfers(base: context.workingDirectory)
        if let line = transfers.sharing(tasks.survey.hosts) { context.console.remark(line) }
        try await context.withClient { client in
            let submission = Submission(
                client: client,
                group: group,
                sink: sink,
                wishes: wishes,
                transfers: transfers,
                seals: !isOpen,
                reopens: reopens,
                tasks: tasks
            )
            let watcher = context.watcher(client, group: group)
            let start = waits ? try await Self.beginningOfNews(of: group, client, watcher) : 0
            var result = try await submission.submit(tasks.survey)
            if !context.console.json {
                let isEmpty = tasks.survey.count == 0 && manifest != nil
                try context.console.line(Self.summary(result) + (isEmpty ? ": the manifest is empty" : ""))
            }
            if tasks.survey.count == 0, result.group.sealed, result.group.tasks.total == 0 {
                context.console.remark(
                    "note: the group has no tasks and succeeds without any file, which is a mistake if its list should have had some: "
                        + "muster add \(ShellWord(group)) --reopen -i MANIFEST adds them; with --open a group waits for its first ones"
                )
            }
            if wishes != GroupPatch(), !result.isCreated {
                context.console.remark(
                    "note: the group was there already, and may use and waits for what it did before; change that with: muster limit \(ShellWord(group)) …"
                )
            }
            if !transfers.isEmpty, !result.isCreated {
                context.console.remark(
                    "note: the group was there already, and its files are fetched as before; how its sources are asked is changed with: muster set \(ShellWord(group)) …"
                )
            }
            if reopens, result.existing > 0, !result.isCreated {
                let (those, files) = result.existing == 1 ? ("that", "its file is") : ("those", "their files are")
                context.console.remark(
                    "note: nothing is done about \(those) which existed already, not even a look whether \(files) still there; to have a file "
                        + "fetched again: muster remove \(ShellWord(group)) KEY, and then this command once more"
                )
            }
            var end: GroupWatcher.End?
            if waits {
                do {
                    end = try await Interruption.watched { try await watcher.untilTerminal(news: .all(after: start)) }
                } catch CommandFailure.ended(let status) where status == .interrupted || status == .terminated {
                    context.console.remark("the group goes on: muster wait \(ShellWord(group))")
                    throw CommandFailure.ended(status)
                }
                if let end { result.group = end.group }
            } else {
                for note in result.group.notes {
                    context.console.remark("note: \(TextWidth.escaped(WallClock.ofThisMachine.sentence(note)))")
                }
            }
            if context.console.json {
                try context.console.document(
                    Document(
                        added: result.added,
                        existing: result.existing,
                        created: result.isCreated,
                        group: result.group
                    )
                )
            }
            if let end { try await GroupResult(client: client, console: context.console).conclude(end) }
        }
    }

    /// The sink to use; `nil` if none was named. A setting that does not come from the command line may be a worker's list of directories, which says
    /// nothing about groups.
    private func sink(_ settings: Settings) throws(CommandFailure) -> String? {
        let texts = settings.texts(.sink)
        guard let name = texts.first, sink != nil || texts.count == 1 && !name.contains("=") else { return nil }
        try CommandContext.checkName(name, what: "sink")
        return name
    }

    /// The log position after which events are printed: a group of this name may exist, or have existed, and have many earlier events. Fails at once if
    /// no coordinator answers.
    private static func beginningOfNews(
        of group: String, _ client: MusterClient, _ watcher: GroupWatcher
    ) async throws -> Int64 {
        do {
            _ = try await client.group(group)
        } catch let problem as Problem where problem.code == .groupNotFound {
            // The submission creates it.
        }
        return try await watcher.lastPosition()
    }

    /// `added 4 tasks to g (0 existed already), sealed`. A new group has no earlier tasks: if some "existed", the list names them twice.
    static func summary(_ result: Submission.Result) -> String {
        let state = result.group.sealed ? "sealed" : "open"
        return "added \(result.added) task\(result.added == 1 ? "" : "s") to \(result.group.name) "
            + "(\(result.existing) \(result.isCreated && result.existing > 0 ? "listed twice" : "existed already")), \(state)"
    }
}
