public import MusterCore

/// A verb on a group or on some of its tasks.
public enum GroupVerb: String, Sendable, CaseIterable {
    /// No more tasks will be added.
    case seal
    /// Stop fetching and keep the bytes.
    case pause
    /// Continue after a pause.
    case resume
    /// End the group or tasks, and drop what is unfinished.
    case cancel
    /// Queue failed tasks again, with the bytes that they have.
    case retry
}

/// What happens to the files of a removed group.
public enum RemovedFiles: String, Sendable, CaseIterable {
    /// Finished files stay.
    case keep
    /// Finished files are deleted.
    case delete
}

extension MusterClient {
    private static func path(_ group: String) -> String { "/v1/groups/" + PercentEncoding.encodeSegment(group) }

    /// HTTP clients resolve empty and dotted parts of a path: a request for such a key would become one for its group. No task has such a
    /// key.
    private static func path(_ group: String, task key: String) throws(Problem) -> String {
        guard !key.isEmpty, key != ".", key != ".." else {
            throw Problem(.taskNotFound, "there is no task \"\(key)\" in the group")
        }
        return path(group) + "/tasks/" + PercentEncoding.encodeSegment(key)
    }

    /// `POST /v1/groups`. The idempotency key makes a repetition harmless (I10).
    public func createGroup(_ group: GroupRequest, idempotencyKey: String? = nil) async throws -> GroupDocument {
        try await call(
            "POST", "/v1/groups", body: Self.json(group),
            headers: Self.headers(key: idempotencyKey), as: GroupDocument.self)
    }

    /// `GET /v1/groups/{name}`.
    public func group(_ name: String) async throws -> GroupDocument {
        try await call("GET", Self.path(name), as: GroupDocument.self)
    }

    /// A page of `GET /v1/groups`.
    public func groups(
        state: GroupState? = nil, after: String? = nil, limit: Int? = nil
    ) async throws -> Page<GroupDocument> {
        try await call(
            "GET", "/v1/groups",
            query: [("state", state?.rawValue), ("after", after), ("limit", limit.map(String.init))],
            as: Page<GroupDocument>.self)
    }

    /// How long a verb on a whole group may take: it changes up to millions of tasks, a few thousand at a time.
    private static let verbTimeout = Duration.seconds(600)

    /// `DELETE /v1/groups/{name}`: removes the group, and its finished files if asked. Returns what is left to do. A repetition after a
    /// lost answer counts as done if it finds no group.
    @discardableResult
    public func removeGroup(_ name: String, files: RemovedFiles = .keep) async throws -> RemovalDocument {
        let reply = try await exchange(
            "DELETE", Self.path(name), query: [("files", files.rawValue)], timeout: Self.verbTimeout, removes: true)
        return reply.body == nil ? try await removal(of: name) : try reply.document(RemovalDocument.self)
    }

    /// `GET /v1/removals/{name}`: the files of a removed group that are still to be deleted.
    public func removal(of group: String) async throws -> RemovalDocument {
        try await call("GET", "/v1/removals/\(PercentEncoding.encodeSegment(group))", as: RemovalDocument.self)
    }

    /// `GET /v1/removals`: all removals with files that are still to be deleted.
    public func removals(after: String? = nil, limit: Int? = nil) async throws -> Page<RemovalDocument> {
        try await call(
            "GET", "/v1/removals", query: [("after", after), ("limit", limit.map(String.init))],
            as: Page<RemovalDocument>.self)
    }

    /// `POST /v1/groups/{name}/remove`: removes some tasks, all or none. After a repetition the number of removed tasks is unknown.
    public func removeTasks(
        _ keys: [String], of group: String, files: RemovedFiles = .keep
    ) async throws -> GroupDocument {
        let reply = try await exchange(
            "POST", Self.path(group) + "/remove", query: [("files", files.rawValue)],
            body: Self.json(VerbRequest(keys: keys)), removes: true)
        return reply.body == nil ? try await self.group(group) : try Self.group(of: reply)
    }

    /// `DELETE /v1/groups/{name}/tasks/{key}`: removes one task.
    public func removeTask(_ key: String, of group: String, files: RemovedFiles = .keep) async throws {
        try await exchange(
            "DELETE", try Self.path(group, task: key), query: [("files", files.rawValue)], removes: true)
    }

    /// `PATCH /v1/groups/{name}`: changes what the patch names.
    public func change(group name: String, _ patch: GroupPatch) async throws -> GroupDocument {
        try await call("PATCH", Self.path(name), body: Self.json(patch), as: GroupDocument.self)
    }

    /// `POST /v1/groups/{name}/reopen`: a finished group begins its next generation, a sealed one takes tasks again.
    public func reopen(group name: String) async throws -> GroupDocument {
        try await call("POST", Self.path(name) + "/reopen", body: .bytes(Array("{}".utf8)), as: GroupDocument.self)
    }

    /// `GET /v1/groups/{name}/explanation`: what the group waits for, and when it will be done.
    public func groupExplanation(of name: String) async throws -> GroupExplanationDocument {
        try await call("GET", Self.path(name) + "/explanation", as: GroupExplanationDocument.self)
    }

    /// `POST /v1/groups/{name}/tasks` as a JSON array.
    ///
    /// - Parameters:
    ///   - reopen: whether a finished or sealed group is opened for the tasks, if one of them is new.
    ///   - idempotencyKey: makes a repetition return what the first request did (I10).
    public func addTasks(
        _ tasks: [TaskRequest], to group: String, reopen: Bool = false, idempotencyKey: String? = nil
    ) async throws -> AddedDocument {
        try await call(
            "POST", Self.path(group) + "/tasks", query: [("reopen", reopen ? "true" : nil)], body: Self.json(tasks),
            headers: Self.headers(key: idempotencyKey), as: AddedDocument.self)
    }

    /// `POST /v1/groups/{name}/tasks` as NDJSON of any length, which is made anew each time that it is sent.
    public func addTasks(
        streaming lines: @escaping @Sendable () -> AsyncThrowingStream<[UInt8], any Error>, to group: String,
        reopen: Bool = false,
        idempotencyKey: String? = nil
    ) async throws -> AddedDocument {
        try await call(
            "POST", Self.path(group) + "/tasks", query: [("reopen", reopen ? "true" : nil)], body: .stream(lines),
            headers: Self.headers(key: idempotencyKey), timeout: nil, as: AddedDocument.self)
    }

    /// A page of `GET /v1/groups/{name}/tasks`.
    public func tasks(
        of group: String, state: TaskState? = nil, after: String? = nil, limit: Int? = nil
    ) async throws -> Page<TaskDocument> {
        try await call(
            "GET", Self.path(group) + "/tasks",
            query: [("state", state?.rawValue), ("after", after), ("limit", limit.map(String.init))],
            as: Page<TaskDocument>.self)
    }

    /// `GET /v1/groups/{name}/tasks?trouble=true`: the tasks that continue after a failure, the latest failure first.
    public func tasksInTrouble(of group: String, limit: Int? = nil) async throws -> [TaskDocument] {
        try await call(
            "GET", Self.path(group) + "/tasks", query: [("trouble", "true"), ("limit", limit.map(String.init))],
            as: Page<TaskDocument>.self
        ).items
    }

    /// `GET /v1/groups/{name}/tasks/{key}`.
    public func task(_ key: String, of group: String) async throws -> TaskDocument {
        try await call("GET", try Self.path(group, task: key), as: TaskDocument.self)
    }

    /// `GET /v1/groups/{name}/tasks/{key}/explanation`: why the task is not done, or how it ended.
    public func explanation(of key: String, in group: String) async throws -> ExplanationDocument {
        try await call("GET", try Self.path(group, task: key) + "/explanation", as: ExplanationDocument.self)
    }

    /// A group after a verb. The count of a repetition does not cover all tasks that were changed, so it is dropped.
    private static func group(of reply: Reply) throws -> GroupDocument {
        var group = try reply.document(GroupDocument.self)
        if reply.isRepeated { group.changedTasks = nil }
        return group
    }

    /// `POST /v1/groups/{name}/{verb}`. After a repetition the number of changed tasks is unknown.
    public func apply(_ verb: GroupVerb, to group: String, keys: [String]? = nil) async throws -> GroupDocument {
        try Self.group(
            of: try await exchange(
                "POST", Self.path(group) + "/" + verb.rawValue, body: Self.json(VerbRequest(keys: keys)),
                timeout: Self.verbTimeout))
    }

    /// `GET /v1/events`; waits up to `wait` for something to happen.
    ///
    /// - Parameters:
    ///   - after: the last position that is known; without it the answer begins with the oldest event that is kept.
    ///   - log: the log that the position belongs to, if that is known.
    /// - Throws: `Problem` with the code `eventsGone` if events after the position are no longer kept, `otherLog` if the position is of another log.
    public func events(
        after: Int64?, of log: String? = nil, limit: Int? = nil, group: String? = nil, wait: Duration? = nil
    ) async throws -> EventsDocument {
        try await call(
            "GET", "/v1/events",
            query: [
                ("after", after.map { String($0) }), ("log", log), ("limit", limit.map(String.init)), ("group", group),
                ("wait", wait.map { "\($0.milliseconds)ms" }),
            ],
            timeout: Self.answerTime + (wait ?? .zero), as: EventsDocument.self)
    }

    /// A page of `GET /v1/workers`.
    public func workers(after: String? = nil, limit: Int? = nil) async throws -> Page<WorkerDocument> {
        try await call(
            "GET", "/v1/workers", query: [("after", after), ("limit", limit.map(String.init))],
            as: Page<WorkerDocument>.self)
    }

    /// `POST /v1/workers/{name}/drain`.
    public func drain(worker name: String) async throws {
        try await exchange("POST", "/v1/workers/" + PercentEncoding.encodeSegment(name) + "/drain")
    }

    /// A page of `GET /v1/origins`.
    public func origins(after: String? = nil, limit: Int? = nil) async throws -> Page<OriginDocument> {
        try await call(
            "GET", "/v1/origins", query: [("after", after), ("limit", limit.map(String.init))],
            as: Page<OriginDocument>.self)
    }

    /// `PATCH /v1/origins/{key}`: sets the fleet's limits for an origin, known or not.
    public func setOrigin(_ key: String, _ patch: OriginPatch) async throws -> OriginDocument {
        try await call(
            "PATCH", "/v1/origins/" + PercentEncoding.encodeSegment(key), body: Self.json(patch),
            as: OriginDocument.self)
    }
}
