import Logging
import MusterCore
import MusterSystem
import ServiceLifecycle
import Subprocess
import SystemPackage

/// Worker processes of `up`: started once the coordinator listens, restarted when they die, drained at shutdown. A worker that was told to
/// leave (`muster drain`) stays away.
struct WorkerProcesses: Service {
    /// What happens to a worker process, for the operator.
    enum News: Sendable {
        /// A process runs.
        case started(name: String, processID: Int32)
        /// It ended, and is started again after a pause.
        case ended(name: String, status: String)
        /// It was told to leave, and has.
        case left(name: String)
    }

    /// The number of workers.
    let count: Int
    /// The coordinator's port, once it accepts requests.
    let port: Eventual<Int>
    /// This program.
    let program: FilePath
    /// The arguments of a worker with a name, for a coordinator at a port.
    let arguments: @Sendable (_ name: String, _ port: Int) -> [String]
    /// The token of workers, passed in their environment: every user could read an argument.
    let token: String?
    /// How long a worker has to drain before it is killed.
    let drainLimit: Duration
    /// Called for a worker whose process has ended by itself, before it is started again.
    let lose: @Sendable (_ name: String) async -> Void
    /// Receives the news.
    let report: @Sendable (News) -> Void
    /// Where failures are logged.
    let logger: Logger

    private static let backoff = Backoff(first: .milliseconds(500), longest: .seconds(30), jitter: 0.5)
    /// A worker that lived longer than this starts a new count of failures when it dies.
    private static let stable: Duration = .seconds(60)

    /// The name of a worker of `up`.
    static func name(_ index: Int) -> String { "up-worker-\(index)" }

    /// Runs the workers until shutdown.
    func run() async throws {
        let number: Int
        do {
            number = try await cancelWhenGracefulShutdown { [port] in try await port.value() }
        } catch is CancellationError {
            return
        }
        await withTaskGroup(of: Void.self) { tasks in
            for index in 0..<count { tasks.addTask { await keep(Self.name(index + 1), port: number) } }
        }
        try? await gracefulShutdown()
    }

    /// How the workers' environment differs from that of this process. They have no use for the administrators' token.
    static func variables(token: String?) -> [Environment.Key: String?] {
        ["MUSTER_WORKER_TOKEN": token, "MUSTER_TOKEN": nil]
    }

    /// Keeps one worker alive.
    private func keep(_ name: String, port: Int) async {
        var failures = 0
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            let started = ContinuousClock.now
            let status: String
            do {
                let ended = try await live(name, port: port)
                // A worker succeeds only when it was told to end.
                if ended.isSuccess, !Task.isShuttingDownGracefully { return report(.left(name: name)) }
                status = "\(ended)"
            } catch {
                status = "can't be started: \(error)"
            }
            guard !Task.isShuttingDownGracefully, !Task.isCancelled else { return }
            failures = ContinuousClock.now - started > Self.stable ? 1 : failures + 1
            report(.ended(name: name, status: status))
            await lose(name)
            let delay = Self.backoff.delay(failures: failures)
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: delay) }
        }
    }

    /// One life of a worker, from its start to its end.
    private func live(_ name: String, port: Int) async throws -> TerminationStatus {
        var options = PlatformOptions()
        // Its own process group: Ctrl-C is for this process, which then drains the workers in order.
        options.processGroupID = 0
        let drainLimit = drainLimit
        try OpenDescriptors.checkRoomForProgram()
        let result = try await Subprocess.run(
            .path(program),
            arguments: Arguments(executablePathOverride: "muster", remainingValues: arguments(name, port)),
            environment: .inherit.updating(Self.variables(token: token)),
            platformOptions: options,
            // A pipe that is never written to: its end tells the worker that this process is gone.
            input: .inputWriter,
            output: .sequence,
            error: .currentStandardError
        ) { execution in
            report(.started(name: name, processID: execution.processIdentifier.value))
            await withTaskGroup(of: Void.self) { tasks in
                tasks.addTask {
                    // The end of its standard output is the end of the worker.
                    do {
                        for try await _ in execution.standardOutput {}
                    } catch {
                        logger.debug("worker.output.failed", metadata: ["worker": "\(name)", "error": "\(error)"])
                    }
                }
                tasks.addTask {
                    guard (try? await gracefulShutdown()) != nil else { return }
                    // A worker that has just ended by itself can't be signalled, and needs no signal.
                    try? execution.send(signal: .terminate)
                    guard (try? await Task.sleep(for: drainLimit)) != nil else { return }
                    logger.warning("worker.killed", metadata: ["worker": "\(name)"])
                    try? execution.send(signal: .kill)
                }
                await tasks.next()
                tasks.cancelAll()
            }
        }
        return result.terminationStatus
    }
}
