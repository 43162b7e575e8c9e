import Logging
import MusterCore
import MusterPostgres
import MusterStore
import ServiceLifecycle

/// Gives events their positions as soon as they are committed, and wakes their readers (I9).
actor EventSequencer: Service {
    private let store: Store
    private let bell: Bell
    private let metrics: CoordinatorMetrics
    private let logger: Logger
    private let (rings, door) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(store: Store, bell: Bell, metrics: CoordinatorMetrics, logger: Logger) {
        self.store = store
        self.bell = bell
        self.metrics = metrics
        self.logger = logger
    }

    /// An event was committed just now.
    nonisolated func news() {
        door.yield()
    }

    /// Sequences until the coordinator stops: at every news, and once a second for what another coordinator committed before
    /// it died.
    func run() async {
        await withGracefulShutdownHandler {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { [door] in
                    while !Task.isCancelled {
                        try? await Task.sleep(for: .seconds(1))
                        door.yield()
                    }
                }
                for await _ in rings { await sequence() }
                group.cancelAll()
            }
        } onGracefulShutdown: { [door] in
            door.finish()
        }
        // What the last requests committed is not left for the next start.
        await sequence()
        bell.ring()
    }

    private func sequence() async {
        do {
            var total: Int64 = 0
            while true {
                let count = try await store.sequenceEvents()
                total += count
                guard count > 0 else { break }
            }
            guard total > 0 else { return }
            metrics.add(.eventsSequenced, Int(total))
            bell.ring()
            try await store.hint(.events)
        } catch {
            logger.warning("sequencing failed", metadata: [CoordinatorMetadata.error: "\(error)"])
        }
    }
}
