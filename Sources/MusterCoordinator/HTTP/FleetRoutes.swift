import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// `/v1/workers` and `/v1/origins`: what the fleet consists of and what it talks to.
struct FleetRoutes: Sendable {
    let store: Store
    let maxConnectionsPerOrigin: Int32

    func add(to group: RouterGroup<some RequestContext>) {
        group.get("workers") { _, _ in
            try Answer.json(Page(items: try await store.workers().map { WorkerDocument($0) }, next: nil))
        }
        group.post("workers/:name/drain") { _, context in
            try await store.drain(worker: try context.path("name"))
            return Answer.empty
        }
        group.get("origins") { _, _ in
            let origins = try await store.origins().map { origin in
                OriginDocument(
                    key: origin.key, maxConnections: origin.maxConnections ?? maxConnectionsPerOrigin,
                    leases: origin.leases, pausedUntil: origin.pausedUntil)
            }
            return try Answer.json(Page(items: origins, next: nil))
        }
    }
}
