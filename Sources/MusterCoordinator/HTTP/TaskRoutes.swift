import FoundationEssentials
import HTTPTypes
import Hummingbird
import MusterAPI
import MusterCore
import MusterStore

/// `/v1/groups/{name}/tasks`.
struct TaskRoutes: Sendable {
    let store: Store
    let intake: TaskIntake
    /// What the coordinator's own process knows.
    let own: OwnProcess

    private var progress: GroupProgress { GroupProgress(store: store, own: own) }

    func add(to group: RouterGroup<some RequestContext>) {
        group.post("groups/:name/tasks", use: add)
        group.get("groups/:name/tasks", use: list)
        group.get("groups/:name/tasks/:key") { _, context in
            let name = try context.path("name")
            let task = try await store.task(try context.path("key"), of: name)
            return try Answer.json(try await progress.documents([task], of: name)[0])
        }
        group.get("groups/:name/tasks/:key/explanation") { _, context in
            let group = try await store.group(try context.path("name"))
            let (task, situation) = try await store.explanation(of: try context.path("key"), in: group.name)
            var facts = try TaskFacts(task, situation, of: group, own: own)
            facts.task.etaSeconds = try await progress.documents([task], of: group.name)[0].etaSeconds
            return try Answer.json(Explanation(facts: facts).document)
        }
        group.delete("groups/:name/tasks/:key") { request, context in
            let files = try request.query("files", as: RemovedFiles.self) ?? .keep
            try await store.remove(
                try context.path("name"), keys: [try context.path("key")], deletingFiles: files == .delete)
            return Answer.empty
        }
    }

    /// Adds the tasks of a JSON array, or of NDJSON of any length, which is never held whole.
    private func add(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let name = try context.path("name")
        let reopening = try request.flag("reopen")
        // A missing group is reported before a long stream is read.
        let policy = try TransferPolicy(storedFor: try await store.group(name))
        let upload =
            switch try request.bodyForm {
            case .lines: try await intake.stage(lines: request.body, policy: policy)
            case .document, nil:
                try await intake.stage(try await request.document([TaskRequest].self), pointer: "", policy: policy)
            }
        let addition = try await intake.finish(upload) {
            guard let upload else { return Addition(added: 0, existing: 0) }
            return try await store.addTasks(upload, to: name, reopening: reopening)
        }
        return try Answer.json(AddedDocument(added: addition.added, existing: addition.existing))
    }

    private func list(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let name = try context.path("name")
        let limit = try request.pageLimit()
        let state = try request.query("state", as: TaskState.self)
        let after = TaskID(try request.query("after", in: 0...Int64.max, default: 0))
        if try request.flag("trouble") {
            let isAll = state == nil && after.rawValue == 0
            let tasks = try await store.tasksInTrouble(of: name, limit: isAll ? limit : Int32(Limits.pageSize))
                .filter { $0.id > after && (state == nil || $0.state == state) }
                .prefix(Int(limit))
            return try Answer.json(Page(items: try await progress.documents(Array(tasks), of: name), next: nil))
        }
        let tasks = try await store.tasks(of: name, state: state, after: after, limit: limit)
        return try Answer.json(
            Page(
                items: try await progress.documents(tasks, of: name),
                next: tasks.count == Int(limit) ? tasks.last.map { $0.id.description } : nil))
    }
}
