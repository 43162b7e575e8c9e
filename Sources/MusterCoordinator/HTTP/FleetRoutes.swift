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
        group.get("workers", use: workers)
        group.post("workers/:name/drain") { _, context in
            try await store.drain(worker: try context.path("name"))
            return Answer.empty
        }
        group.get("origins", use: origins)
        group.patch("origins/:key", use: set)
    }

    private func workers(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let limit = try request.pageLimit()
        let after = try request.query("after").map(Self.place)
        let sessions = try await store.workers(after: after, limit: limit)
        let last = sessions.count == Int(limit) ? sessions.last : nil
        return try Answer.json(
            Page(items: try sessions.map { try WorkerDocument($0) }, next: last.map { "\($0.worker):\($0.session)" }))
    }

    private func origins(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let limit = try request.pageLimit()
        let origins = try await store.origins(after: try request.query("after"), limit: limit)
        let next = origins.count == Int(limit) ? origins.last?.key : nil
        return try Answer.json(
            Page(items: origins.map { OriginDocument($0, cap: maxConnectionsPerOrigin) }, next: next))
    }

    /// Where a page of workers ended: a name and a session. Names have no colon; a name alone is before all of its sessions.
    private static func place(_ text: String) -> (worker: String, session: SessionID) {
        guard let colon = text.lastIndex(of: ":"), let session = Int64(text[text.index(after: colon)...]) else {
            return (text, SessionID(0))
        }
        return (String(text[..<colon]), SessionID(session))
    }

    /// Sets an origin, known or not: an origin may be limited before anything is fetched from it.
    private func set(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let key = try Self.origin(try context.path("key"))
        let patch = try await request.document(OriginPatch.self)
        var pause = patch.pausedUntil
        if let duration = patch.pause { pause = .set(try await store.now() + duration) }
        let record = try await store.setOrigin(
            key, maxConnections: patch.maxConnections, bytesPerSecond: patch.bytesPerSecond,
            pausedUntil: pause)
        return try Answer.json(OriginDocument(record, cap: maxConnectionsPerOrigin))
    }

    /// Reads the key of an origin: scheme and host, with the port or without. Anything after that but a `/` is refused.
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

extension Timestamp {
    /// The moment after a time has passed.
    fileprivate static func + (moment: Timestamp, time: Duration) -> Timestamp {
        Timestamp(microseconds: moment.microseconds + time.milliseconds * 1_000)
    }
}
