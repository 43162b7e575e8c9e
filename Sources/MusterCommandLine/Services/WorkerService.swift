import Logging
import MusterWorker
import ServiceLifecycle

/// A worker in this process, for a coordinator in this process: it waits for the coordinator first.
struct WorkerService: Service {
    /// The coordinator's port, once it listens.
    let port: Eventual<Int>
    /// Informed when the worker is to end, and when it has ended.
    let own: OwnWorkers
    /// The worker for a coordinator at a URL.
    let configuration: @Sendable (_ server: String) -> WorkerConfiguration
    /// Where the worker logs.
    let logger: Logger

    /// Runs the worker until shutdown.
    func run() async throws {
        let number: Int
        do {
            number = try await cancelWhenGracefulShutdown { [port] in try await port.value() }
        } catch is CancellationError {
            return
        }
        let worker = try Worker(configuration: configuration("http://127.0.0.1:\(number)"), logger: logger)
        try await withGracefulShutdownHandler {
            try await worker.run()
        } onGracefulShutdown: {
            own.areEnding()
        }
        // A worker that was told to leave does not come back; the others and the coordinator go on without it.
        guard own.leave() else {
            try? await gracefulShutdown()
            return
        }
        throw CommandFailure.other(
            "the workers of this command were told to leave (muster drain); what has come is kept: go on with the same command"
        )
    }
}
