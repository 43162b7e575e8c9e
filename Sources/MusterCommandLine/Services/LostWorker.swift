import Logging
import MusterAPI
import MusterCore

/// Tells the coordinator of `up` that a worker's process is gone, so that other workers go on with its work before its session expires.
struct LostWorker: Sendable {
    /// The coordinator's port, once it listens.
    let port: Eventual<Int>
    /// Where it listens.
    let host: String
    /// The token for the coordinator.
    let token: String?
    /// Where failures to tell it are logged; the session then has to expire.
    let logger: Logger

    /// How long that may take; afterwards the worker is started again under the same name.
    private static let limit: Duration = .seconds(30)
    /// The pause before the coordinator is told again after a failure.
    private static let pause: Duration = .milliseconds(200)

    /// Ends the sessions of a worker that has no process any more.
    func end(_ name: String) async {
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                while !Task.isCancelled {
                    do {
                        return try await tell(of: name)
                    } catch {
                        logger.debug("worker.loss.untold", metadata: ["worker": "\(name)", "error": "\(error)"])
                    }
                    try? await Task.sleep(for: Self.pause)
                }
            }
            tasks.addTask { try? await Task.sleep(for: Self.limit) }
            await tasks.next()
            tasks.cancelAll()
        }
    }

    private func tell(of name: String) async throws {
        let address = ListenAddress(host: host, port: try await port.value())
        try await CommandContext.withClient(servers: [address.url], tokens: .common(token)) { client in
            let workers = try await Page.all { try await client.workers(after: $0, limit: Limits.pageSize) }
            for worker in workers where worker.name == name {
                try await client.loseSession(worker.session)
            }
        }
    }
}
