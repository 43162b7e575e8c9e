import Logging
import MusterAPI
import ServiceLifecycle
import SystemPackage

/// The part of `get` that talks to the coordinator. When it is done, the command is done.
struct GetService: Service {
    /// The database.
    let postgres: PostgresService
    /// The coordinator's port, once it listens.
    let port: Eventual<Int>
    /// Receives the same port once the workers may begin.
    let workPort: Eventual<Int>
    /// The coordinator's token.
    let token: String
    /// The tasks that the user wants.
    let tasks: TaskList
    /// What is known of these tasks.
    let survey: TaskList.Survey
    /// The settings of the transfers.
    let transfers: TransferSettings
    /// Where the files go.
    let directory: String
    /// Whether there is room for the database.
    let room: DatabaseRoom
    /// What happens when the disk is full.
    let onFull: OnFull
    /// The workers of this process.
    let own: OwnWorkers
    /// The context of the command.
    let context: CommandContext
    /// Receives the result.
    let result: Eventual<GetSession.Result>
    /// Where failures are logged.
    let logger: Logger

    /// Runs until the group is done, or until shutdown.
    func run() async throws {
        do {
            let outcome = try await cancelWhenGracefulShutdown {
                let number = try await port.value()
                let address = ListenAddress(host: "127.0.0.1", port: number)
                let published = TokenFile.published(
                    token, at: address, environment: context.settings.environment, logger: logger)
                defer { withExtendedLifetime(published) {} }
                return try await CommandContext.withClient(servers: [address.url], tokens: .common(token)) {
                    client in
                    try await GetSession(
                        client: client,
                        patience: Patience(console: context.console, asked: .ownDatabase),
                        tasks: tasks,
                        survey: survey,
                        transfers: transfers,
                        directory: FilePath(directory),
                        room: room,
                        onFull: onFull,
                        context: context,
                        own: own,
                        beginWork: { workPort.fulfil(number) }
                    ).run()
                }
            }
            result.fulfil(outcome)
        } catch is CancellationError {
            return
        } catch {
            if let lost = error as? Idleness.Lost { throw await postgres.damage("\(lost)") ?? error }
            throw await postgres.replacement() ?? error
        }
    }
}
