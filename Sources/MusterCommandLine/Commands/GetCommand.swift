import ArgumentParser
import FoundationEssentials
import Logging
import MusterAPI
import MusterCoordinator
import MusterCore
import MusterWorker
import ServiceLifecycle
import SystemPackage
import UnixSignals

/// `muster get`: one download with everything embedded.
struct GetCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Downloads URLs into a directory: everything embedded, with progress bars.",
        usage: "muster get [-d <dir>] [-i <manifest>] [<options>] [<url> ...]",
        discussion: """
            Its state is kept in DIR/.muster. The same command again, after a crash or Ctrl-C, goes on where it was: what \
            failed is tried again, and files that came before but are not there any more are fetched again. A new token (--header, --user) and a list of other files keep what has come of the files that are wanted \
            again. Failures are shown as they happen, with the next try. User and password in a URL are sent to its origin and never \
            shown. URLs that end in the same name get numbers: a.bin and "a (2).bin", and each keeps its name in later lists of the directory; a \
            task in JSON says its path itself.

            With --if-exists rename a file gets a numbered name where another one has its own. It stays the file of its URL: later runs look for it, and \
            renew it, where it stands.

            The origin is not asked about files that are there as they were fetched, by whichever list of this directory. With --if-exists \
            replace it is asked about all of them at each run, also after one that failed or was ended early, and what has changed there is replaced.

            A file that is there and can't be checked again, such as with a token that has expired, stays as it is; the exit code is 1, \
            because it is unknown whether it is still the origin's.

            When the reader of standard output is gone, as of muster get … | head -1, it goes on, and its exit code is that of the files.

            With --json the result is the group's document with more fields: directory, failures, explanations, there (how many more files earlier lists of the directory have brought), changed (files that \
            somebody changed since, which makes the exit code 1), unchecked (files that are there and could not be checked again), \
            and wasComplete (every file was there already, and nothing was done).

            Examples:
              muster get https://example.org/a.iso
              muster get -d mirror -i urls.txt
              muster get --digest sha256:9f86d081… https://example.org/a.iso
              muster get -o today.json 'https://example.org/api?day=today'
              muster get --user me:env:PASSWORD https://example.org/private.tar
              generate-list | muster get -d mirror -i - --json
            """
    )

    @Option(
        name: [.customShort("d"), .customLong("directory")],
        help: ArgumentHelp("Where the files go. (MUSTER_DIRECTORY; default: the working directory)", valueName: "dir"),
        completion: .directory
    )
    var directory: String?

    @Option(
        name: [.customShort("i"), .customLong("manifest")],
        help: ArgumentHelp(
            "A list: a URL or a task as JSON per line; - is standard input.",
            valueName: "manifest"
        ),
        completion: .file()
    )
    var manifest: [String] = []

    @Option(
        help: ArgumentHelp("What the content of a single URL must be.", valueName: "sha256:hex")
    )
    var digest: String?

    @Option(
        name: [.customShort("o"), .customLong("output")],
        help: ArgumentHelp(
            "The name of a single URL's file, below the directory, whatever its origin suggests.", valueName: "file")
    )
    var output: [String] = []

    @Option(
        help: ArgumentHelp("Workers in this process, 1 to 16. (MUSTER_WORKERS; default: 1)", valueName: "n")
    )
    var workers: String?

    @Option(
        help: ArgumentHelp("Transfers at once of each worker, 1 to 1024. (MUSTER_SLOTS; default: 16)", valueName: "n")
    )
    var slots: String?

    @Option(
        help: ArgumentHelp(
            "What happens when the disk is full: fail, or wait for room and go on. (default: fail)", valueName: "rule")
    )
    var onFull: String?

    @OptionGroup var sources: SourceArguments
    @OptionGroup var policy: PolicyArguments
    @OptionGroup var tuning: CoordinatorOptions

    @Argument(help: ArgumentHelp("URLs to fetch.", valueName: "url"))
    var urls: [String] = []

    @OptionGroup var global: GlobalOptions

    func validate() throws {
        if manifest.count > 1 { throw ValidationError("one manifest at a time: cat a.txt b.txt | muster get -i -") }
        if output.count > 1 { throw ValidationError("-o names the file of a single URL: give it once") }
    }

    var given: [SettingName: [String]] {
        Given.values([
            .directory: directory, .manifest: manifest.last, .digest: digest, .output: output.last, .workers: workers,
            .slots: slots, .onFull: onFull,
        ]).merging(sources.given) { $1 }.merging(policy.given) { $1 }.merging(tuning.given) { $1 }
    }

    /// The result is files, as with `curl -o`, so that the command goes on without a reader of its output.
    static let outlivesReader = true

    /// How long the leases of a killed `get` block the next one. It can be short, since no network lies between worker and coordinator.
    private static let sessionTimeToLive: Duration = .seconds(5)

    /// The default log level: nothing is logged. What the user should know is printed as sentences.
    private static let logLevel = Logger.Level.critical

    func perform(_ context: CommandContext) async throws {
        let settings = context.settings
        let logger = try settings.logger(default: Self.logLevel)
        var digest: DigestArgument?
        if let text = settings.text(.digest) { digest = try DigestArgument(text) }
        let manifest = try settings.text(.manifest).map { path throws(CommandFailure) in
            try ManifestFile.open(path, temporaryDirectory: context.temporaryDirectory)
        }
        let tasks = try TaskList(manifest: manifest, urls: urls, digest: digest, name: settings.text(.output))
        if tasks.isAbsent { throw CommandFailure.usage("give URLs, or a manifest with -i") }
        var asked = try settings.transfers(base: context.workingDirectory)
        // A typed name takes precedence over the origin's suggestion.
        if settings.text(.output) != nil { asked.policy?.names = nil }
        asked.followAuthorities(of: settings.environment, base: context.workingDirectory)
        let proxies = try asked.followProxies(of: settings.environment)
        if !proxies.isEmpty {
            let list = proxies.joined(separator: ", ")
            context.console.remark(
                "proxies are asked as \(list) say\(proxies.count == 1 ? "s" : ""); --proxy direct asks without one")
        }
        let transfers = asked
        if let line = transfers.sharing(tasks.survey.hosts) { context.console.remark(line) }
        let count = try settings.number(.workers, in: 1...16) ?? 1
        let (files, needed) = (DescriptorLimit.current, DescriptorLimit.least(workers: count))
        guard files >= needed else {
            throw CommandFailure.usage(
                "this process may open \(files) files, and get needs \(needed)"
                    + (count == 1 ? "" : " for \(count) workers") + ": raise the limit (ulimit -n)")
        }
        let onFull = try settings.choice(.onFull, of: OnFull.self) ?? .fail
        guard settings.text(.directory) != "" else { throw CommandFailure.usage("-d names no directory") }
        guard !context.workingDirectory.isEmpty else {
            throw CommandFailure.usage("the current directory is not there any more: cd to another one")
        }
        let directory = SinkArgument.absolute(settings.text(.directory) ?? ".", base: context.workingDirectory)
        // The worker is this process. Without this check, an unreadable file would fail every task by itself.
        try settings.checkFiles(base: context.workingDirectory)
        var coordinator = try settings.coordinator(listen: ListenAddress(host: "127.0.0.1", port: 0))
        let token = RandomToken.make()
        (coordinator.adminToken, coordinator.workerToken, coordinator.hosts) = (token, RandomToken.make(), [])
        if settings.text(.sessionTTL) == nil { coordinator.sessionTimeToLive = Self.sessionTimeToLive }
        coordinator.ownsFleet = true
        // The user waits: don't try an unknown host name or a hanging link for minutes, unless --tries says so.
        if settings.text(.tries) == nil { coordinator.unreachedAttempts = 3 }
        coordinator.waitsForRoom = onFull == .wait
        try Settings.check(coordinator)
        var configured = try settings.worker(
            servers: [],
            tokens: .common(coordinator.workerToken),
            name: "get",
            sinks: [SinkArgument(name: defaultSinkName, directory: directory, identity: .holdsDatabase)]
        )
        // A command is stopped more readily than a fleet: have bytes durable within about a second.
        configured.progressInterval = WorkerConfiguration.shortProgressInterval
        configured.workersInProcess = count
        // Grant only the secrets that the command line names: the author of a manifest may be another person.
        if let fetch = transfers.fetch { configured.secrets = fetch.grants }
        let worker = configured
        if settings.text(.maxConnectionsPerOrigin) == nil {
            // The user of `get` asked for as many connections as its worker has slots.
            coordinator.maxConnectionsPerOrigin = Int32(worker.slots)
        }
        var survey = tasks.survey
        survey.identity.add(transfers.policy, decodes: transfers.fetch?.decode == true)
        if try Directories.makeNamed(directory) {
            context.console.remark(TextWidth.escaped("made the directory \(directory), which was not there"))
        }
        let state = FilePath(directory).appending(".muster")
        let lock = try DirectoryLock.acquire(state.string)

        let remark: @Sendable (String) -> Void = { context.console.remark(TextWidth.escaped($0)) }
        let room = DatabaseRoom(tellsOfRunning: false, onFull: onFull, remark: remark)
        let own = OwnWorkers(count)
        coordinator.ownProcess.workers = { _ in own.arePassing ? .passing : .within }
        coordinator.ownProcess.databaseTrouble = { room.trouble }
        coordinator.ownProcess.waitsForSinks = onFull == .wait
        let (database, damage) = (Eventual<String>(), Eventual<String>())
        coordinator.ownProcess.onDamage = { damage.fulfil($0) }
        let (port, workPort) = (Eventual<Int>(), Eventual<Int>())
        let result = Eventual<GetSession.Result>()
        let postgres = PostgresService(
            stateDirectory: state,
            environment: settings.environment,
            stopLimit: .seconds(3),
            isSmall: true,
            room: room,
            onFull: onFull,
            database: database,
            damage: damage,
            remark: remark,
            logger: logger
        )
        let session = GetService(
            postgres: postgres,
            port: port,
            workPort: workPort,
            token: token,
            tasks: tasks,
            survey: survey,
            transfers: transfers,
            directory: directory,
            room: room,
            onFull: onFull,
            own: own,
            context: context,
            result: result,
            logger: logger
        )
        let names = (1...count).map { "get-\($0)" }
        let run = SignalledRun(
            services: [
                postgres,
                CoordinatorService(configuration: coordinator, database: database, port: port, logger: logger),
                // Stopped after the workers: their last reports are part of the result.
                session,
            ]
                + names.map { name in
                    WorkerService(
                        port: workPort,
                        own: own,
                        configuration: { server in
                            var configuration = worker
                            (configuration.servers, configuration.name) = ([server], name)
                            return configuration
                        },
                        logger: logger
                    )
                },
            grace: .seconds(9),
            onOverdue: { remark("\(EarlyInterruption.stopped)") },
            logger: logger
        )
        var end = SignalledRun.End.finished
        do {
            end = try await run.run()
        } catch  where result.current != nil {
            // An error during the shutdown changes nothing about the files.
            logger.error("get.stop.failed", metadata: ["error": "\(error)"])
        }
        withExtendedLifetime(lock) {}
        try conclude(end, result.current, context.console)
    }

    /// Prints the result and chooses the exit code.
    private func conclude(_ end: SignalledRun.End, _ result: GetSession.Result?, _ console: Console) throws {
        guard let result else {
            switch end {
            case .finished: throw CommandFailure.other("ended without a result")
            case .signalled(let signal):
                console.remark("\(EarlyInterruption.stopped)")
                throw CommandFailure.ended(signal == .sigint ? .interrupted : .terminated)
            }
        }
        if console.json {
            try console.document(result)
        } else if result.halt == nil {
            for line in result.troubles { console.remark(line) }
            try console.line(result.summary)
            for line in result.hints { console.remark(line) }
        }
        if let halt = result.halt { throw halt }
        if result.status != .success { throw CommandFailure.ended(result.status) }
    }
}
