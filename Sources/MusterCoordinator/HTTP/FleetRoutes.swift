import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// `/v1/workers` and `/v1/origins`: what the fleet consists of and what it talks to.
struct FleetRoutes: Sendable {
    let store: Store
    let maxConnectionsPerOrigin: Int32
    /// Called after something was set going.
    let hasWork: @Sendable () async -> Void

    func add(to group: RouterGroup<some RequestContext>) {
        group.get("workers") { _, _ in
            try Answer.json(Page(items: try await store.workers().map { WorkerDocument($0) }, next: nil))
        }
        group.post("workers/:name/drain") { _, context in
            try await store.drain(worker: try context.path("name"))
            return Answer.empty
        }
        group.get("origins") { _, _ in
            let origins = try await store.origins().map { OriginDocument($0, cap: maxConnectionsPerOrigin) }
            return try Answer.json(Page(items: origins, next: nil))
        }
        group.patch("origins/:key", use: set)
    }

    /// Sets an origin, known or not: one may be limited before anything is fetched from it.
    private func set(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let key = try Self.origin(try context.path("key"))
        let patch = try await request.document(OriginPatch.self)
        var pause = patch.pausedUntil.stored
        if let duration = patch.pause { pause = .set(try await store.now() + duration) }
        let record = try await store.setOrigin(
            key, maxConnections: patch.maxConnections.stored, bytesPerSecond: patch.bytesPerSecond.stored,
            pausedUntil: pause)
        // A pause that ends, or a larger cap, lets work out.
        await hasWork()
        return try Answer.json(OriginDocument(record, cap: maxConnectionsPerOrigin))
    }

    /// The key of an origin as it is written: scheme and host, with the port or without. What stands behind that is no part of it.
    static func origin(_ text: String) throws(Problem) -> String {
        let reason: String
        do {
            let url = try SourceURL(validating: text)
            if url.path.isEmpty || url.path == "/", !text.contains(where: { $0 == "?" || $0 == "#" }) {
                return url.origin
            }
            reason = "it goes on after the port"
        } catch {
            reason = error.description
        }
        throw Problem(.invalidRequest, "not an origin such as https://example.org:443: \(reason)")
    }
}

extension OriginDocument {
    /// An origin as it is shown; `cap` is the one of origins that have none of their own.
    init(_ record: OriginRecord, cap: Int32) {
        self.init(
            key: record.key, maxConnections: record.maxConnections ?? cap,
            allowedConnections: record.allowedConnections,
            leases: record.leases, pausedUntil: record.pausedUntil, limitedAt: record.limitedAt,
            bytesPerSecond: record.bytesPerSecond, bytesPerSecondLimit: record.bytesPerSecondLimit)
    }
}

extension PatchField {
    /// The same in the words of the store.
    fileprivate var stored: MusterStore.Change<Value> {
        switch self {
        case .keep: .keep
        case .clear: .clear
        case .set(let value): .set(value)
        }
    }
}

extension Timestamp {
    /// The moment after a time has passed.
    fileprivate static func + (moment: Timestamp, time: Duration) -> Timestamp {
        Timestamp(microseconds: moment.microseconds + time.milliseconds * 1_000)
    }
}
