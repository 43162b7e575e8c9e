import Logging
import MusterCoordinator
import ServiceLifecycle

/// A coordinator whose database this process starts: it waits for the database first.
struct CoordinatorService: Service {
    /// The configuration, except for the database.
    let configuration: CoordinatorConfiguration
    /// The database's connection string, once it is ready.
    let database: Eventual<String>
    /// Receives the port once requests are accepted.
    let port: Eventual<Int>
    /// Where the coordinator logs.
    let logger: Logger

    /// Runs the coordinator until shutdown.
    func run() async throws {
        var configuration = configuration
        configuration.ownsDatabase = true
        do {
            configuration.database = try await cancelWhenGracefulShutdown { [database] in try await database.value() }
        } catch is CancellationError {
            return
        }
        let sender = try WebhookSender(addressGuard: configuration.addressGuard)
        let coordinator = try Coordinator(configuration: configuration, logger: logger, post: sender.post) {
            [port] number in
            port.fulfil(number)
        }
        let address = ListenAddress(host: configuration.listenHost, port: configuration.listenPort)
        try await CommandFailure.listening(at: address) { try await coordinator.run() }
    }
}
