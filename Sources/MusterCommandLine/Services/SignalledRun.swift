import Glibc
import Logging
import MusterCoordinator
import ServiceLifecycle
import Synchronization
import UnixSignals

/// Runs services until they are done or a signal asks them to stop.
///
/// The first SIGINT or SIGTERM stops them gracefully, the last one first. They are cancelled when their time for that is over; a second
/// signal (`StopSignals`) cuts it to two seconds. Services that still run then end with the process.
struct SignalledRun {
    /// How the run ended.
    enum End: Sendable, Hashable {
        /// The services were done.
        case finished
        /// A signal stopped them.
        case signalled(UnixSignal)
    }

    /// The services, started in this order and stopped in the reverse order.
    let services: [any Service]
    /// How long they have to stop gracefully.
    let grace: Duration
    /// Called before the process ends while a service still runs.
    var onOverdue: @Sendable () -> Void = {}
    /// Where the lifecycle is logged.
    let logger: Logger

    /// How long they have after a second signal: a worker gives back its leases as soon as a coordinator answers; otherwise other workers
    /// would wait for its session to expire.
    private static let hurriedGrace: Duration = .seconds(2)
    /// How long they have to end once they were cancelled.
    private static let cancellationGrace: Duration = .seconds(2)

    private enum Outcome: Sendable {
        /// The services have ended.
        case services(Result<Void, any Error>)
        /// A watching task is done.
        case watcher
    }

    /// Runs the services until they end.
    ///
    /// - Throws: the first error of a service, after the others were stopped.
    func run() async throws -> End {
        // The end of any service, whether well or not, stops the others gracefully: only then are a worker's leases given back and the
        // database shut down. When the database itself is lost, leases can't be given back.
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services.map {
                    ServiceGroupConfiguration.ServiceConfiguration(
                        service: NamedService($0),
                        successTerminationBehavior: .gracefullyShutdownGroup,
                        failureTerminationBehavior: $0 is PostgresService ? .cancelGroup : .gracefullyShutdownGroup
                    )
                },
                logger: logger
            )
        )
        let received = Eventual<UnixSignal>()
        let hurry = Eventual<Bool>()
        let hurried = Eventual<UnixSignal>()
        let signals = await StopSignals()
        let result = await withTaskGroup(of: Outcome.self, returning: Result<Void, any Error>.self) { tasks in
            tasks.addTask { .services(await Self.run(group, until: hurry)) }
            tasks.addTask {
                await signals.watch { wish in
                    switch wish {
                    case .end(let signal):
                        received.fulfil(signal)
                        await group.triggerGracefulShutdown()
                    case .hurry(let signal): hurried.fulfil(signal)
                    }
                }
                return .watcher
            }
            for (signal, time) in [(received, grace), (hurried, Self.hurriedGrace)] {
                tasks.addTask {
                    await hurryGroup(time, after: signal, hurry)
                    return .watcher
                }
            }
            tasks.addTask {
                await endProcess(after: received)
                return .watcher
            }
            var result: Result<Void, any Error> = .success(())
            for await case .services(let ended) in tasks {
                result = ended
                tasks.cancelAll()
            }
            return result
        }
        if let signal = received.current { return .signalled(signal) }
        try result.get()
        return .finished
    }

    /// Runs the group, and cancels it when there is no time left.
    private static func run(_ group: ServiceGroup, until hurry: Eventual<Bool>) async -> Result<Void, any Error> {
        await withTaskGroup(of: Result<Void, any Error>?.self) { tasks in
            tasks.addTask {
                do {
                    try await group.run()
                    return .success(())
                } catch {
                    return .failure(error)
                }
            }
            tasks.addTask {
                // The group is cancelled in either case; if it has ended, that changes nothing.
                _ = try? await hurry.value()
                return nil
            }
            var result: Result<Void, any Error> = .success(())
            for await ended in tasks {
                if let ended { result = ended }
                tasks.cancelAll()
            }
            return result
        }
    }

    /// Cancels the group when its time after a signal is over.
    private func hurryGroup(_ time: Duration, after signal: Eventual<UnixSignal>, _ hurry: Eventual<Bool>) async {
        guard (try? await signal.value()) != nil, (try? await Task.sleep(for: time)) != nil else { return }
        logger.warning("stop.hurried")
        hurry.fulfil(true)
    }

    /// The last resort against a service that does not end. Every process that this one has started notices its end.
    private func endProcess(after received: Eventual<UnixSignal>) async {
        guard let signal = try? await received.value() else { return }
        guard (try? await Task.sleep(for: grace + Self.cancellationGrace)) != nil else { return }
        logger.error("stop.overdue")
        onOverdue()
        _exit(128 + signal.rawValue)
    }
}
