import Logging
import MusterAPI
import MusterCore
import MusterTestSupport
import MusterWorker
import ServiceLifecycle

@testable import MusterCommandLine
@testable import MusterCoordinator

/// A coordinator in this process, on a database of its own, spoken to over real HTTP.
struct RunningCoordinator {
    let client: MusterClient
    let send: APISend
    let url: String
    /// Its database, as a libpq connection string.
    let database: String

    /// The database that all others are copied from: migrated once.
    private static let template = Task {
        let database = try await TestPostgres.shared().makeDatabase()
        _ = try await SchemaMigration.migrate(database: database.conninfo)
        return database.name
    }

    /// Runs `body` against a coordinator, which is stopped gracefully afterwards.
    static func with(
        configure: @Sendable (inout CoordinatorConfiguration) -> Void = { _ in }, token: String? = nil,
        _ body: @Sendable (RunningCoordinator) async throws -> Void
    ) async throws {
        try await TestGate.shared.pass {
            let database = try await TestPostgres.shared().makeDatabase(template: try await template.value)
            try await run(on: database.conninfo, configure: configure, token: token, body)
        }
    }

    /// Runs `body` with a second coordinator on the database of this one.
    ///
    /// - Parameter way: parameters of the connection that take the place of those of this coordinator.
    func withAnother(through way: String = "", _ body: @Sendable (RunningCoordinator) async throws -> Void) async throws
    {
        try await Self.run(on: "\(database) \(way)", configure: { _ in }, token: nil, body)
    }

    private static func run(
        on database: String, configure: @Sendable (inout CoordinatorConfiguration) -> Void, token: String?,
        _ body: @Sendable (RunningCoordinator) async throws -> Void
    ) async throws {
        var configuration = CoordinatorConfiguration(database: database)
        configuration.listenPort = 0
        // Sessions must not expire because the machine is busy; a test of expiry sets a shorter time.
        configuration.sessionTimeToLive = .seconds(60)
        configuration.longPoll = .seconds(5)
        configure(&configuration)
        let port = Observed<Int?>(nil)
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let sender = try WebhookSender(addressGuard: configuration.addressGuard)
        let coordinator = try Coordinator(configuration: configuration, logger: logger, post: sender.post) { number in
            port.update { $0 = number }
        }
        let group = ServiceGroup(configuration: .init(services: [.init(service: coordinator)], logger: logger))
        let transport = try CurlTransport()
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let number = try await port.wait(for: "the coordinator's port", until: { $0 != nil }) ?? 0
            let url = "http://127.0.0.1:\(number)"
            let client = MusterClient(servers: [url], token: token, send: transport.send)
            do {
                try await body(
                    RunningCoordinator(client: client, send: transport.send, url: url, database: database))
            } catch {
                await group.triggerGracefulShutdown()
                throw error
            }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
        await transport.shutdown()
    }

    /// Sends one raw request, for what the typed client would never send.
    func raw(
        _ method: String, _ path: String, body: String? = nil, type: String = "application/json", token: String? = nil,
        key: String? = nil
    ) async throws -> APIResponse {
        var headers: [(name: String, value: String)] = key.map { [("Idempotency-Key", $0)] } ?? []
        if body != nil { headers.append(("Content-Type", type)) }
        if let token { headers.append(("Authorization", "Bearer \(token)")) }
        return try await send(
            APIRequest(
                method: method, url: url + path, headers: headers, body: body.map { .bytes(Array($0.utf8)) } ?? .none,
                timeout: .seconds(20)))
    }
}
