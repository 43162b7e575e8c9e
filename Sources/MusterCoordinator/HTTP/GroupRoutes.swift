import FoundationEssentials
import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// `/v1/groups` and what can be asked of a group.
struct GroupRoutes: Sendable {
    let store: Store
    let intake: TaskIntake
    /// Called after something was added or set going.
    let hasWork: @Sendable () async -> Void
    /// Called after a group may have been closed.
    let hasEvents: @Sendable () async -> Void

    func add(to group: RouterGroup<some RequestContext>) {
        group.post("groups", use: create)
        group.get("groups", use: list)
        group.get(
            "groups/:name",
            use: { _, context in
                try Answer.json(GroupDocument(try await store.group(try context.path("name"))))
            })
        group.delete("groups/:name", use: remove)
        group.post("groups/:name/seal") { request, context in
            let name = try context.path("name")
            guard try await request.document(VerbRequest.self).keys == nil else {
                throw Problem(.invalidRequest, "a group is sealed as a whole", pointer: "/keys")
            }
            let sealed = try await store.seal(name)
            await hasEvents()
            return try Answer.json(GroupDocument(sealed))
        }
        group.post("groups/:name/pause") { try await apply(.pause, $0, $1) }
        group.post("groups/:name/resume") { try await apply(.resume, $0, $1) }
        group.post("groups/:name/cancel") { try await apply(.cancel, $0, $1) }
        group.post("groups/:name/retry") { try await apply(.retry, $0, $1) }
    }

    private func create(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let key = request.headers[.init("Idempotency-Key")!]
        guard key.map({ $0.utf8.count <= Limits.nameCharacters && !$0.isEmpty }) ?? true else {
            throw Problem(.invalidRequest, "an Idempotency-Key has 1 to \(Limits.nameCharacters) bytes")
        }
        let wish = try await request.document(GroupRequest.self)
        try wish.check()
        let creation = GroupCreation(
            name: wish.name, sink: wish.sink ?? defaultSinkName, priority: wish.priority ?? 0, weight: wish.weight ?? 1,
            maxConnections: wish.limits?.maxConnections, metadata: try StoredJSON.text(wish.metadata),
            isSealed: wish.sealed ?? false, creationKey: key, options: try StoredJSON.text(wish.fetch),
            policy: try StoredJSON.text(wish.policy), resolver: try StoredJSON.text(wish.resolver))
        let upload = try await intake.stage(wish.tasks ?? [], pointer: "/tasks", policy: wish.policy)
        let group = try await intake.finish(upload) { try await store.createGroup(creation, upload: upload) }
        await hasWork()
        if creation.isSealed { await hasEvents() }
        return try Answer.json(GroupDocument(group), status: .created)
    }

    private func list(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let limit = try request.pageLimit()
        let groups = try await store.groups(
            state: try request.query("state", as: GroupState.self), after: try request.query("after"), limit: limit)
        return try Answer.json(
            Page(items: groups.map { GroupDocument($0) }, next: groups.count == Int(limit) ? groups.last?.name : nil))
    }

    private func remove(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let files = try request.query("files", as: RemovedFiles.self) ?? .keep
        try await store.remove(try context.path("name"), keys: nil, deletingFiles: files == .delete)
        // Leftovers on disk are work for somebody.
        await hasWork()
        await hasEvents()
        return Answer.empty
    }

    private func apply(
        _ verb: TaskVerb, _ request: Request, _ context: some RequestContext
    ) async throws -> Response {
        let name = try context.path("name")
        let keys = try await request.document(VerbRequest.self).keys
        let group = try await store.apply(verb, to: name, keys: keys)
        await hasWork()
        await hasEvents()
        return try Answer.json(GroupDocument(group))
    }
}
