import ArgumentParser
import Glibc
import Logging
import MusterAPI
import MusterCore
import MusterWorker
import ServiceLifecycle

/// `muster work`: runs a worker.
struct WorkCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "work",
        abstract: "Runs a worker. Run as many as you like.",
        usage: "muster work [--server <url,...>] --sink <name=dir> ... [<options>]",
        discussion: """
            A worker fetches for the sinks that it is given, and for no others. The sink that groups use when they name none \
            is called \(defaultSinkName). SIGTERM lets it give back what it holds and end.

            The token is taken from MUSTER_WORKER_TOKEN, or else from MUSTER_TOKEN. That of muster up on this machine is found.

            Examples:
              muster work --sink default=/srv/files
              muster work --server http://a:7300,http://b:7300 --name rack3-host7 \\
                --sink default=/mnt/files --slots 64
            """
    )

    @Option(help: ArgumentHelp("The workers' token. Better set MUSTER_WORKER_TOKEN.", valueName: "token"))
    var workerToken: String?

    @Option(
        help: ArgumentHelp(
            "The worker's name, unique in the fleet. (MUSTER_NAME; default: the host's name and the process id)",
            valueName: "name"
        )
    )
    var name: String?

    @OptionGroup var sinks: SinkOptions

    @Option(
        help: ArgumentHelp("Transfers at once, 1 to 1024. (MUSTER_SLOTS; default: 16)", valueName: "n")
    )
    var slots: String?

    @Option(
        help: ArgumentHelp(
            "The most bytes per second of this worker, such as 10MiB/s. (default: no limit)",
            valueName: "rate"
        )
    )
    var rate: String?

    @OptionGroup var secrets: SecretOptions

    @Flag(help: ArgumentHelp("End when standard input ends.", visibility: .hidden))
    var exitWithParent = false

    @OptionGroup var client: ClientOptions
    @OptionGroup var global: GlobalOptions

    var own: [SettingName: [String]] {
        Given.values([.workerToken: workerToken, .name: name, .slots: slots, .rate: rate])
            .merging(Given.flags([.exitWithParent: exitWithParent])) { $1 }
            .merging(sinks.given) { $1 }.merging(secrets.given) { $1 }
    }

    func perform(_ context: CommandContext) async throws {
        let settings = context.settings
        let logger = try settings.logger(default: .info)
        let sinks = try settings.sinks(base: context.workingDirectory)
        guard !sinks.isEmpty else {
            throw CommandFailure.usage(
                "a worker needs at least one sink: give --sink \(defaultSinkName)=DIR, where the files shall end up"
            )
        }
        let name = settings.text(.name) ?? Self.defaultName()
        try CommandContext.checkName(name, what: "worker")
        let servers = try context.servers()
        var configuration = try settings.worker(
            servers: servers,
            tokens: settings.text(.workerToken).map { .common($0) } ?? context.tokens(for: servers),
            name: name,
            sinks: sinks
        )
        configuration.secrets = try settings.secretGrants(base: context.workingDirectory)
        // This worker belongs to a `muster up`, which may be killed with all of its workers.
        let endsWithParent = try settings.flag(.exitWithParent)
        if endsWithParent { configuration.progressInterval = WorkerConfiguration.shortProgressInterval }
        let worker: Worker
        do {
            worker = try Worker(configuration: configuration, logger: logger)
        } catch {
            throw CommandFailure.usage("\(error)")
        }
        var services: [any Service] = [worker]
        if endsWithParent { services.append(ParentWatch()) }
        _ = try await SignalledRun(services: services, grace: .seconds(10), logger: logger).run()
    }

    /// The host's name and the process id, in the characters that names may have.
    static func defaultName() -> String {
        name(host: MachineName.text ?? "host", processID: getpid())
    }

    /// A worker's name made from a host's name, which may have any characters.
    static func name(host: String, processID: Int32) -> String {
        let safe = host.prefix(150).map { NameRule.accepts("x\($0)") ? String($0) : "-" }.joined()
        return "\(safe.isEmpty ? "host" : safe)-\(processID)"
    }
}

extension Settings {
    /// The configuration of a worker.
    func worker(
        servers: [String],
        tokens: ServerTokens,
        name: String,
        sinks: [SinkArgument]
    ) throws(CommandFailure) -> WorkerConfiguration {
        var configuration = WorkerConfiguration(
            servers: servers,
            tokens: tokens,
            name: name,
            sinks: sinks.map { SinkConfiguration(name: $0.name, path: $0.directory, identity: $0.identity) },
            version: MusterVersion.current
        )
        if let slots = try number(.slots, in: Limits.slots) { configuration.slots = slots }
        configuration.bytesPerSecond = try rate(.rate)
        return configuration
    }
}
