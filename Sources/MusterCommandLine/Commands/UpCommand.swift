import ArgumentParser
import FoundationEssentials
import Logging
import MusterAPI
import MusterCoordinator
import MusterCore
import MusterWorker
import SystemPackage

/// `muster up`: everything on one machine, until it is stopped.
struct UpCommand: MusterSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "up",
        abstract: "Runs a coordinator, workers and a private PostgreSQL on this machine, until stopped.",
        usage: "muster up [--data <dir>] [--sink <name=dir>] ... [<options>]",
        discussion: """
            Everything is kept in the data directory; the same command again goes on where it was. The workers are processes \
            of their own. Without --sink, files of the sink \(defaultSinkName) end up in the data directory, in "files".

            On loopback it makes a token of its own, which commands of the same user find by themselves; for others it stands in \
            the data directory, in "token".

            Examples:
              muster up
              muster up --data /srv/muster --sink default=/srv/files --workers 4
              MUSTER_TOKEN=… MUSTER_WORKER_TOKEN=… muster up --listen 0.0.0.0:7300
            """
    )

    @Option(
        help: ArgumentHelp(
            "Where everything is kept. (MUSTER_DATA; default: $XDG_DATA_HOME/muster or ~/.local/share/muster)",
            valueName: "dir"
        )
    )
    var data: String?

    @Option(
        help: ArgumentHelp(
            "Where to listen; port 0 takes any that is free. (MUSTER_LISTEN; default: 127.0.0.1:7300)",
            valueName: "host:port"
        )
    )
    var listen: String?

    @Option(
        help: ArgumentHelp("Worker processes, 0 to 64. (MUSTER_WORKERS; default: 1)", valueName: "n")
    )
    var workers: String?

    @OptionGroup var sinks: SinkOptions

    @Option(
        help: ArgumentHelp("Transfers at once of each worker, 1 to 1024. (MUSTER_SLOTS; default: 16)", valueName: "n")
    )
    var slots: String?

    @OptionGroup var secrets: SecretOptions
    @OptionGroup var names: HostOptions
    @OptionGroup var tokens: TokenOptions
    @OptionGroup var tuning: CoordinatorOptions
    @OptionGroup var retention: RetentionOptions

    @OptionGroup var global: GlobalOptions

    var given: [SettingName: [String]] {
        Given.values([.data: data, .listen: listen, .workers: workers, .slots: slots])
            .merging(sinks.given) { $1 }
            .merging(tokens.given) { $1 }.merging(tuning.given) { $1 }.merging(secrets.given) { $1 }
            .merging(retention.given) { $1 }.merging(names.given) { $1 }
    }

    /// How long each part has to stop, so that all of it takes no longer than ten seconds.
    private static let drainLimit: Duration = .seconds(5)
    private static let stopLimit: Duration = .seconds(3)

    /// The default log level.
    private static let logLevel = Logger.Level.notice

    func perform(_ context: CommandContext) async throws {
        let settings = context.settings
        let logger = try settings.logger(default: Self.logLevel)
        let address = try settings.listenAddress()
        var configuration = try settings.coordinator(listen: address)
        configuration.ownsFleet = true
        let count = try settings.number(.workers, in: 0...64) ?? 1
        _ = try settings.number(.slots, in: Limits.slots)
        _ = try settings.secretGrants(base: context.workingDirectory)
        let data = try Self.dataDirectory(settings, base: context.workingDirectory)
        let sinks = try settings.sinks(base: context.workingDirectory, fallback: data + "/files")
        let departed = DepartedWorkers()
        if count > 0 {
            let own = Set(sinks.map(\.name))
            configuration.ownProcess.workers = { sink in
                guard own.contains(sink) else { return .none }
                return departed.count == count ? .left : .coming
            }
        }
        let ownToken = configuration.takesOwnToken
        // The token is read once the directory is there and locked. Until then any token will do for the check.
        if ownToken { configuration.use(ownToken: RandomToken.make()) }
        try Settings.check(configuration)
        let program = try Self.program()
        let lock = try DirectoryLock.acquire(data)
        if ownToken { configuration.use(ownToken: try TokenFile.lasting(in: FilePath(data))) }
        let published = ownToken ? configuration.adminToken : nil
        let isNamed = !settings.texts(.sink).isEmpty
        for sink in sinks where try Directories.makeNamed(sink.directory) && isNamed {
            context.console.remark(TextWidth.escaped("made the directory \(sink.directory), which was not there"))
        }

        let announcement = Announcement(console: context.console)
        announcement.data(data)
        for sink in sinks { announcement.sink(sink) }
        let remark: @Sendable (String) -> Void = { context.console.remark(TextWidth.escaped($0)) }
        let room = DatabaseRoom(tellsOfRunning: true, onFull: .wait, remark: remark)
        let damage = Eventual<String>()
        configuration.ownProcess.onDamage = { damage.fulfil($0) }
        configuration.ownProcess.databaseTrouble = { room.trouble }
        let database = Eventual<String>()
        let port = Eventual<Int>()
        let arguments = Self.workerArguments(
            settings: settings,
            address: address,
            sinks: sinks,
            base: context.workingDirectory
        )
        let lost = LostWorker(port: port, host: address.host, token: configuration.adminToken, logger: logger)
        let end = try await SignalledRun(
            services: [
                PostgresService(
                    stateDirectory: FilePath(data),
                    environment: settings.environment,
                    stopLimit: Self.stopLimit,
                    isSmall: false,
                    room: room,
                    onFull: .wait,
                    database: database,
                    damage: damage,
                    remark: remark,
                    logger: logger
                ),
                CoordinatorService(configuration: configuration, database: database, port: port, logger: logger),
                AnnouncedListening(
                    port: port,
                    host: address.host,
                    announcement: announcement,
                    publish: { address in
                        published.flatMap {
                            TokenFile.published($0, at: address, environment: settings.environment, logger: logger)
                        }
                    }
                ),
                WorkerProcesses(
                    count: count,
                    port: port,
                    program: program,
                    arguments: arguments,
                    token: configuration.workerToken ?? configuration.adminToken,
                    drainLimit: Self.drainLimit,
                    lose: { await lost.end($0) },
                    report: { news in
                        switch news {
                        case .started(let name, let processID): announcement.worker(name, processID: processID)
                        case .ended(let name, let status): announcement.workerEnded(name, status: status)
                        case .left(let name):
                            departed.add(name)
                            announcement.workerLeft(name)
                        }
                    },
                    logger: logger
                ),
                SilenceWatch(
                    port: port,
                    host: address.host,
                    token: configuration.adminToken,
                    room: room,
                    workers: Set((0..<count).map { WorkerProcesses.name($0 + 1) }),
                    report: { news in
                        switch news {
                        case .silent(let name, let duration): announcement.workerSilent(name, for: duration)
                        case .heard(let name): announcement.workerHeard(name)
                        }
                    }
                ),
            ],
            grace: .seconds(9),
            logger: logger
        ).run()
        withExtendedLifetime(lock) {}
        if case .signalled = end { announcement.stopped() }
    }

    /// The data directory: the one that was given, or else the default below the user's home.
    static func dataDirectory(_ settings: Settings, base: String) throws(CommandFailure) -> String {
        if let path = settings.text(.data) { return SinkArgument.absolute(path, base: base) }
        // The XDG specification says to ignore a relative path here.
        if let path = settings.environment["XDG_DATA_HOME"], path.hasPrefix("/") { return path + "/muster" }
        guard let home = settings.environment["HOME"], home.hasPrefix("/") else {
            throw .usage("there is no home directory to keep data in: give --data DIR")
        }
        return home + "/.local/share/muster"
    }

    /// The arguments of a worker; tokens are never among them.
    static func workerArguments(
        settings: Settings,
        address: ListenAddress,
        sinks: [SinkArgument],
        base: String
    ) -> @Sendable (_ name: String, _ port: Int) -> [String] {
        var common = sinks.flatMap { ["--sink", "\($0.name)=\($0.directory)"] }
        common += sinks.filter { $0.identity == .replaced }.flatMap { [SettingName.newDirectory.option, $0.name] }
        if let text = settings.text(.slots) { common += [SettingName.slots.option, text] }
        // A relative directory needs no change: workers run in the working directory of this process.
        for name in [SettingName.secretVariable, .secretDirectory] {
            common += settings.words(name).flatMap { [name.option, $0] }
        }
        // The lines of workers appear among those of this process, so that both have one log level.
        common += [SettingName.logLevel.option, settings.text(.logLevel) ?? Self.logLevel.rawValue]
        if let path = settings.configurationPath { common += ["--config", SinkArgument.absolute(path, base: base)] }
        let options = common
        return { name, port in
            [
                "work", "--exit-with-parent", "--server", ListenAddress(host: address.host, port: port).url, "--name",
                name,
            ]
                + options
        }
    }

    /// The file of this program, so that workers have the same version.
    private static func program() throws(CommandFailure) -> FilePath {
        do {
            return FilePath(try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        } catch {
            // Systems without /proc: the path that was typed. A bare name is refused, since the search path is not searched.
            guard let first = CommandLine.arguments.first, first.contains("/") else {
                throw .other("the file of this program can't be found: start it by its path")
            }
            return FilePath(first)
        }
    }
}
