import Logging
import MusterCore
import MusterPostgres
import MusterStore
import ServiceLifecycle

/// Gives events their positions as soon as they are committed, and wakes their readers (I9).
struct EventSequencer: Service {
    let store: Store
    /// Rung when events were committed.
    let door: Doorbell
    /// Rung for the readers when the log has grown.
    let bell: Bell
    let metrics: CoordinatorMetrics
    let logger: Logger

    /// Sequences at every ring until the coordinator stops, and once more for the events of the last requests.
    func run() async {
        await withGracefulShutdownHandler {
            for await _ in door.rings { await attempt() }
        } onGracefulShutdown: { [door] in
            door.finish()
        }
        // Events that the last requests committed must not wait for the next start.
        await attempt()
        bell.ring()
    }

    /// Gives out positions until every committed event has one. A round calls this once a second, to find the events that
    /// another coordinator committed before it died.
    func sequence() async throws {
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
    }

    private func attempt() async {
        do {
            try await sequence()
        } catch {
            // The `events` round tries again within a second, and logs its failures as warnings.
            logger.debug("sequencing failed", metadata: [CoordinatorMetadata.error: "\(error)"])
        }
    }
}
