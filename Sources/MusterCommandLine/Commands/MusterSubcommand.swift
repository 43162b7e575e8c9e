import ArgumentParser
import FoundationEssentials
import MusterAPI
import MusterCore
import MusterWorker

/// A command of `muster`: names the options it was given, and does its work with the settings that result.
protocol MusterSubcommand: AsyncParsableCommand {
    /// The section of a configuration file that is the command's own.
    static var section: String { get }
    /// Options of every command.
    var global: GlobalOptions { get }
    /// The options that stood on the command line, without the global ones.
    var given: [SettingName: [String]] { get }
    /// Whether the command goes on when the reader of standard output is gone, since it does more than print.
    static var outlivesReader: Bool { get }
    /// Does the work.
    ///
    /// - Throws: `CommandFailure`, or any error that `CommandFailure.init(_:)` converts.
    func perform(_ context: CommandContext) async throws
}

/// A command that talks to a coordinator.
protocol ClientCommand: MusterSubcommand {
    /// Where the coordinator is.
    var client: ClientOptions { get }
    /// The options of this command alone that stood on the command line.
    var own: [SettingName: [String]] { get }
}

extension ClientCommand {
    var own: [SettingName: [String]] { [:] }
    var given: [SettingName: [String]] {
        Given.values([.server: client.server, .token: client.token]).merging(own) { $1 }
    }
}

extension MusterSubcommand {
    static var section: String { configuration.commandName ?? "" }
    static var outlivesReader: Bool { false }

    /// Gathers the settings, does the work, and reports why it failed.
    mutating func run() async throws {
        var console = Console(json: global.json)
        do {
            let general = Given.flags([.json: global.json]).merging(Given.values([.logLevel: global.logLevel])) { $1 }
            let settings = try Settings(
                command: Self.section,
                arguments: general.merging(given) { $1 },
                configuration: global.config,
                environment: ProcessInfo.processInfo.environment
            )
            console = Console(
                json: try settings.flag(.json), outlivesReader: Self.outlivesReader, server: given[.server]?.first)
            _ = try settings.logLevel()
            try await perform(CommandContext(settings: settings, console: console))
            // An incomplete list must not pass for a complete one.
            if console.hasLostLines, !Self.outlivesReader { throw ExitCode(ExitStatus.failure.rawValue) }
        } catch let code as ExitCode {
            throw code
        } catch {
            let failure = CommandFailure(error)
            console.report(failure)
            throw ExitCode(failure.status.rawValue)
        }
    }
}

/// The settings and the console of a command.
struct CommandContext: Sendable {
    /// The command's settings.
    let settings: Settings
    /// Where it prints.
    let console: Console

    /// The directory that relative paths start from.
    var workingDirectory: String { FileManager.default.currentDirectoryPath }

    /// Where temporary files go.
    var temporaryDirectory: String { settings.environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp" }

    /// The coordinators that were named, each a base URL; a host alone, or with a port, is asked by http.
    func servers() throws(CommandFailure) -> [String] {
        let servers = (settings.text(.server) ?? ClientOptions.defaultServer)
            .split(separator: ",").map { $0.split(separator: " ").joined(separator: " ") }
            .map { $0.contains("://") ? $0 : "http://\($0)" }
        guard !servers.isEmpty else { throw settings.refusal(.server, "must be a URL") }
        for server in servers {
            guard !server.contains("@") else {
                throw .usage(
                    "\(settings.named(.server)) takes no user and password, which would be shown; a coordinator asks for a token: "
                        + settings.named(.token))
            }
            guard !server.contains("?"), !server.contains("#") else {
                throw settings.refusal(
                    .server, "must be a URL without a query and a fragment, such as \(ClientOptions.defaultServer)")
            }
            do {
                guard try SourceURL(validating: server).origin.hasPrefix("http") else {
                    throw settings.refusal(.server, "must be an http or https URL")
                }
            } catch let failure as CommandFailure {
                throw failure
            } catch {
                throw .usage("\(settings.named(.server)): \(server): \(error)")
            }
        }
        return servers
    }

    /// The token that was given, or else the tokens that this user's coordinators on this machine have made: each is sent to its own coordinator alone.
    func tokens(for servers: [String]) -> ServerTokens {
        if let token = settings.text(.token) { return .common(token) }
        let environment = settings.environment
        return .found { TokenFile.find(server: $0, environment: environment) }
    }

    /// Calls `body` with a client of the coordinator, and shuts its transport down afterwards. A request whose answer is lost is repeated.
    func withClient<Result>(_ body: (MusterClient) async throws -> Result) async throws -> Result {
        let servers = try servers()
        return try await Self.withClient(servers: servers, tokens: tokens(for: servers), installation) { client in
            try await body(Patience(console: console, waits: false).asking(by: client))
        }
    }

    /// What this machine and the environment tell of the coordinators.
    private var installation: ServerHint.Installation {
        let data = try? UpCommand.dataDirectory(settings, base: workingDirectory)
        return ServerHint.Installation(
            namesDatabase: settings.text(.database) != nil,
            hasData: data.map { FileManager.default.fileExists(atPath: $0) } ?? false)
    }

    /// Calls `body` with a client of these coordinators, and turns its errors into failures with hints.
    static func withClient<Result>(
        servers: [String],
        tokens: ServerTokens,
        _ installation: ServerHint.Installation = ServerHint.Installation(),
        _ body: (MusterClient) async throws -> Result
    ) async throws -> Result {
        let transport = try CurlTransport()
        let client = MusterClient(servers: servers, tokens: tokens, send: transport.send)
        do {
            let result = try await body(client)
            await transport.shutdown()
            return result
        } catch let problem as Problem where problem.code == .groupNotFound {
            let groups = try? await client.groups(limit: Limits.pageSize).items.map(\.name)
            var removal: RemovalDocument?
            if let name = CommandSuggestion.missingGroup(problem) { removal = try? await client.removal(of: name) }
            await transport.shutdown()
            throw CommandSuggestion.completed(problem, among: groups ?? [], removal: removal)
        } catch let problem as Problem {
            await transport.shutdown()
            throw ServerHint.strayed(problem, servers: servers) ?? problem
        } catch let answer as UnexpectedAnswer {
            await transport.shutdown()
            let names = servers.joined(separator: " or ")
            throw CommandFailure.unreachable(
                "\(names) is no Muster coordinator, or one of another version\n  \(answer)",
                hint: ServerHint.base(servers))
        } catch let unreachable as Unreachable {
            await transport.shutdown()
            throw CommandFailure.unreachable(
                unreachable.description, hint: ServerHint.text(unreachable, servers: servers, installation))
        } catch {
            await transport.shutdown()
            throw error
        }
    }

    /// Rejects an invalid name; `what` says what it names.
    static func checkName(_ name: String, what: String) throws(CommandFailure) {
        guard NameRule.accepts(name) else {
            throw .usage("the name of a \(what) \(NameRule.explanation), not \"\(name)\"")
        }
    }

    /// A watcher of a group.
    func watcher(_ client: MusterClient, group: String, patience: Patience? = nil) -> GroupWatcher {
        GroupWatcher(
            client: client.once, group: group, console: console, patience: patience ?? Patience(console: console),
            environment: settings.environment)
    }
}
