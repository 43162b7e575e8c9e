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
    /// What the coordinator's own process knows.
    let own: OwnProcess

    func add(to group: RouterGroup<some RequestContext>) {
        group.post("groups", use: create)
        group.get("groups", use: list)
        group.get(
            "groups/:name",
            use: { _, context in
                try await answer(try await store.group(try context.path("name")))
            })
        group.patch("groups/:name", use: change)
        group.delete("groups/:name", use: remove)
        group.get("groups/:name/explanation") { _, context in
            let (record, situation) = try await store.explanation(of: try context.path("name"))
            return try Answer.json(GroupExplanation(facts: GroupFacts(record, situation, own: own)).document)
        }
        group.post("groups/:name/seal") { request, context in
            let name = try context.path("name")
            guard try await request.document(VerbRequest.self).keys == nil else {
                throw Problem(.invalidRequest, "a group is sealed as a whole", pointer: "/keys")
            }
            return try await answer(try await store.seal(name))
        }
        group.post("groups/:name/reopen") { request, context in
            let name = try context.path("name")
            guard try await request.document(VerbRequest.self).keys == nil else {
                throw Problem(.invalidRequest, "a group is reopened as a whole", pointer: "/keys")
            }
            return try await answer(try await store.reopen(name))
        }
        group.post("groups/:name/pause") { try await apply(.pause, $0, $1) }
        group.post("groups/:name/resume") { try await apply(.resume, $0, $1) }
        group.post("groups/:name/cancel") { try await apply(.cancel, $0, $1) }
        group.post("groups/:name/retry") { try await apply(.retry, $0, $1) }
        group.post("groups/:name/remove", use: removeTasks)
    }

    private func answer(_ group: GroupRecord, status: HTTPResponse.Status = .ok) async throws -> Response {
        try Answer.json(try await GroupProgress(store: store, own: own).document(group), status: status)
    }

    private func create(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let wish = try await request.document(GroupRequest.self)
        try wish.check()
        let creation = try GroupCreation(wish)
        let upload = try await intake.stage(wish.tasks ?? [], pointer: "/tasks", policy: wish.policy)
        let group = try await intake.finish(upload) { try await store.createGroup(creation, upload: upload) }
        return try await answer(group, status: .created)
    }

    /// Changes the fields that the patch names, whatever the state of the group.
    private func change(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let name = try context.path("name")
        let patch = try await request.document(GroupPatch.self)
        try patch.check(of: name)
        let group = try await store.change(name, try GroupChange(patch))
        return try await answer(group)
    }

    private func list(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let limit = try request.pageLimit()
        let groups = try await store.groups(
            state: try request.query("state", as: GroupState.self), after: try request.query("after"), limit: limit)
        let items = try await GroupProgress(store: store, own: own).documents(groups)
        return try Answer.json(Page(items: items, next: groups.count == Int(limit) ? groups.last?.name : nil))
    }

    private func remove(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let files = try request.query("files", as: RemovedFiles.self) ?? .keep
        let name = try context.path("name")
        let fate = files == .delete ? try await beginDeleting(name) : nil
        try await store.remove(name, keys: nil, deletingFiles: files == .delete)
        var removal = try await RemovalDocument(name, store)
        removal.fate = fate.map { .init($0) }
        return try Answer.json(removal)
    }

    /// Counts what will happen to the files, and begins the removal. The count comes first: afterwards it is unknown to which
    /// tasks and groups a file belonged.
    private func beginDeleting(_ group: String, keys: [String]? = nil) async throws -> RemovalFate? {
        let fate = try await store.removalFate(of: group, keys: keys)
        try await store.beginRemoval(of: group)
        return fate
    }

    /// Removes the tasks with these keys, all or none. Only `DELETE` removes a whole group.
    private func removeTasks(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let name = try context.path("name")
        let files = try request.query("files", as: RemovedFiles.self) ?? .keep
        guard let keys = try await request.document(VerbRequest.self).keys else {
            throw Problem(.invalidRequest, "say which tasks are meant", pointer: "/keys")
        }
        let fate = files == .delete ? try await beginDeleting(name, keys: keys) : nil
        let removed = try await store.remove(name, keys: keys, deletingFiles: files == .delete)
        var group = try await store.group(name)
        group.changedTasks = removed
        var document = try await GroupProgress(store: store, own: own).document(group)
        document.fate = fate.map { .init($0) }
        return try Answer.json(document)
    }

    private func apply(
        _ verb: TaskVerb, _ request: Request, _ context: some RequestContext
    ) async throws -> Response {
        let name = try context.path("name")
        let keys = try await request.document(VerbRequest.self).keys
        let group = try await store.apply(verb, to: name, keys: keys)
        return try await answer(group)
    }
}
