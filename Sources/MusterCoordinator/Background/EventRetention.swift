import Logging
import MusterCore
import MusterPostgres
import MusterStore
import ServiceLifecycle

/// Drops events that are older than events are kept. Any number of coordinators may do it at once.
struct EventRetention: Service {
    let store: Store
    /// How long events are kept.
    let age: Duration
    let metrics: CoordinatorMetrics
    let logger: Logger

    /// How many events go in one transaction; the log can't be written on for so long.
    private static let batch: Int32 = 2_000

    /// Drops until the coordinator stops, once a minute, or more often where events are kept for minutes only.
    func run() async {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await drop()
                try? await Task.sleep(for: min(.seconds(60), age / 10))
            }
        }
    }

    private func drop() async {
        do {
            while !Task.isCancelled {
                let dropped = try await store.dropOldEvents(olderThan: age, limit: Self.batch)
                metrics.add(.eventsDropped, Int(dropped))
                guard dropped == Int64(Self.batch) else { return }
            }
        } catch is CancellationError {
            return
        } catch {
            logger.warning("old events not dropped", metadata: [CoordinatorMetadata.error: "\(error)"])
        }
    }
}
