import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

@Suite("Groups over HTTP")
struct GroupAPITests {
    private static func tasks(_ count: Int) -> [TaskRequest] {
        (1...count).map { TaskRequest(urls: ["http://127.0.0.1:1/\($0)"], size: 10) }
    }

    @Test func aGroupIsReadBackAsItWasMade() async throws {
        try await RunningCoordinator.with { coordinator in
            let made = try await coordinator.client.createGroup(
                GroupRequest(
                    name: "g", priority: 3, limits: GroupLimits(maxConnections: 7),
                    metadata: .object(["a": .integer(1)]),
                    tasks: Self.tasks(3)))
            #expect(made.state == .open)
            #expect(made.tasks.total == 3 && made.tasks.queued == 3)
            #expect(made.bytes == .init(done: 0, total: 30, unknownTasks: 0))
            #expect(made.metadata == .object(["a": .integer(1)]))
            #expect(made.limits.maxConnections == 7 && made.priority == 3 && made.sink == "default")
            #expect(made.notes.contains { $0.contains("no live worker reaches the sink \"default\"") })
            let listed = try await coordinator.client.groups()
            #expect(listed.items.map(\.name) == ["g"])
            let task = try await coordinator.client.task("2", of: "g")
            #expect(task.path == "2" && task.state == .queued && task.bytes == .init(done: 0, total: 10))
        }
    }

    @Test func aRepetitionWithTheSameIdempotencyKeyHasOneEffect() async throws {
        try await RunningCoordinator.with { coordinator in
            let request = GroupRequest(name: "g", tasks: Self.tasks(2))
            let first = try await coordinator.client.createGroup(request, idempotencyKey: "once")
            let second = try await coordinator.client.createGroup(request, idempotencyKey: "once")
            #expect(first == second)
            await #expect { try await coordinator.client.createGroup(request) } throws: {
                ($0 as? Problem)?.code == .groupExists
            }
        }
    }

    @Test func anEmptySealedGroupCompletesOnce() async throws {
        try await RunningCoordinator.with { coordinator in
            let group = try await coordinator.client.createGroup(GroupRequest(name: "empty", sealed: true))
            #expect(group.state == .succeeded && group.finishedAt != nil)
            _ = try await coordinator.client.apply(.seal, to: "empty")
            let events = try await coordinator.client.events(after: 0, group: "empty", wait: .seconds(5))
            #expect(events.items.map(\.type) == ["dev.muster.group.succeeded.v1"])
            #expect(events.items[0].subject == "groups/empty" && events.items[0].id.hasSuffix("-1-succeeded"))
        }
    }

    @Test func oneBadLineOfManyAddsNothingAndIsNamed() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g"))
            var lines = (1...5_000).map { "{\"urls\":[\"http://127.0.0.1:1/\($0)\"]}" }
            lines[4_321] = "{\"urls\":[\"gopher://127.0.0.1/x\"]}"
            let answer = try await coordinator.raw(
                "POST", "/v1/groups/g/tasks", body: lines.joined(separator: "\n"), type: "application/x-ndjson")
            #expect(answer.status == 400)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(text.contains("\"line\":4322") && text.contains("/urls/0"))
            #expect(try await coordinator.client.group("g").tasks.total == 0)
        }
    }

    @Test(arguments: [
        (#"{"name":"g","colour":1}"#, "/colour", "unknown field"),
        (#"{"name":"../x"}"#, "/name", "A-Z a-z"),
        (
            #"{"name":"g","tasks":[{"urls":["http://h/a"]},{"urls":["http://h/b"],"path":"../b"}]}"#, "/tasks/1/path",
            ".."
        ),
        (
            #"{"name":"g","tasks":[{"urls":["http://h/a"]},{"urls":["http://i/a"],"key":"b"}]}"#, "/path",
            "http://h/a and http://i/a"
        ),
        (#"{"name":"g","limits":{"maxConnections":0}}"#, "/limits/maxConnections", "within"),
        (#"{"name":"#, "", "JSON"),
    ])
    func badInputIsRefusedAsAWholeAndNamesThePlace(_ body: String, _ pointer: String, _ reason: String) async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await coordinator.raw("POST", "/v1/groups", body: body)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(answer.status == 400)
            #expect(text.contains("\"pointer\":\"\(pointer)\""), "\(text)")
            #expect(text.contains(reason), "\(text)")
            #expect(try await coordinator.client.groups().items.isEmpty, "nothing is half-added")
        }
    }

    @Test func keysThatExistChangeNothingAndNewOnesNeedAnOpenGroup() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: Self.tasks(2)))
            let again = try await coordinator.client.addTasks(Self.tasks(2), to: "g")
            #expect(again == AddedDocument(added: 0, existing: 2))
            await #expect { try await coordinator.client.addTasks(Self.tasks(3), to: "g") } throws: {
                ($0 as? Problem)?.code == .groupSealed
            }
        }
    }

    @Test func aPathOfAnUnfinishedTaskIsRefusedWithWhatToDo() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: Self.tasks(1)))
            let refusal = await #expect(throws: Problem.self) {
                try await coordinator.client.createGroup(GroupRequest(name: "h", sealed: true, tasks: Self.tasks(1)))
            }
            #expect(refusal?.code == .destinationTaken)
            let detail = refusal?.detail ?? ""
            #expect(
                detail.contains("(muster wait g) and add this once more, which takes the file that is there"),
                "\(detail)")
        }
    }

    @Test func headersAreNeverReadBack() async throws {
        try await RunningCoordinator.with { coordinator in
            let task = TaskRequest(urls: ["http://127.0.0.1:1/a"], headers: ["Authorization": "Bearer s3cr3t"])
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", tasks: [task]))
            for path in ["/v1/groups/g", "/v1/groups/g/tasks", "/v1/groups/g/tasks/a", "/v1/events", "/metrics"] {
                let answer = try await coordinator.raw("GET", path)
                #expect(answer.status == 200)
                #expect(!String(decoding: answer.body, as: UTF8.self).contains("s3cr3t"))
            }
        }
    }

    @Test func aKeyWithASlashIsOnePartOfThePath() async throws {
        try await RunningCoordinator.with { coordinator in
            let task = TaskRequest(urls: ["http://127.0.0.1:1/x"], key: "a/b c.tar", path: "a/b.tar")
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", tasks: [task]))
            #expect(try await coordinator.client.task("a/b c.tar", of: "g").path == "a/b.tar")
            try await coordinator.client.removeTask("a/b c.tar", of: "g")
            #expect(try await coordinator.client.group("g").tasks.total == 0)
        }
    }

    @Test func verbsTellHowManyTasksTheyChangedAndRemovalsAreAllOrNothing() async throws {
        try await RunningCoordinator.with { coordinator in
            let client = coordinator.client
            let tasks = ["a", "b", "c"].map { TaskRequest(urls: ["http://127.0.0.1:1/\($0)"]) }
            #expect(try await client.createGroup(GroupRequest(name: "g", tasks: tasks)).changedTasks == nil)
            #expect(try await client.apply(.pause, to: "g").changedTasks == 3)
            #expect(try await client.apply(.pause, to: "g", keys: ["a", "b"]).changedTasks == 0)
            #expect(try await client.apply(.cancel, to: "g", keys: ["a"]).changedTasks == 1)
            await #expect { try await client.removeTasks(["a", "none", "b"], of: "g") } throws: {
                ($0 as? Problem)?.code == .taskNotFound
            }
            #expect(try await client.tasks(of: "g").items.count == 3)
            let rest = try await client.removeTasks(["a", "b"], of: "g", files: .delete)
            #expect(rest.changedTasks == 2 && rest.tasks.total == 1)
            #expect(rest.fate == .init(toDelete: 0, kept: 0, keptBy: nil), "nothing of it was there")
            #expect(try await client.removeTasks(["c"], of: "g").fate == nil, "files were to be kept")
            let whole = try await coordinator.raw("POST", "/v1/groups/g/remove")
            #expect(whole.status == 400)
        }
    }

    @Test func unknownPlacesAreProblemsWithAStableCode() async throws {
        try await RunningCoordinator.with { coordinator in
            for (method, path, code) in [
                ("GET", "/v1/groups/none", "groupNotFound"), ("GET", "/v1/nothing", "notFound"),
                ("POST", "/v1/workers/none/drain", "workerNotFound"), ("DELETE", "/v1/groups/none", "groupNotFound"),
            ] {
                let answer = try await coordinator.raw(method, path)
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(answer.status == 404 && text.contains("\"code\":\"\(code)\""), "\(method) \(path): \(text)")
            }
        }
    }

    @Test func tokensGuardTheAPI() async throws {
        let tokens: @Sendable (inout CoordinatorConfiguration) -> Void = {
            $0.adminToken = "an-admin-token-0123"
            $0.workerToken = "a-worker-token-0123"
        }
        try await RunningCoordinator.with(configure: tokens, token: "an-admin-token-0123") { coordinator in
            #expect(try await coordinator.client.groups().items.isEmpty)
            #expect(try await coordinator.raw("GET", "/v1/groups").status == 401)
            #expect(try await coordinator.raw("GET", "/v1/groups", token: "a-worker-token-0123").status == 403)
            #expect(try await coordinator.raw("GET", "/metrics").status == 401)
            #expect(try await coordinator.raw("GET", "/healthz").status == 200)
            #expect(try await coordinator.raw("GET", "/readyz").status == 200)
            let opened = try await coordinator.raw(
                "POST", "/v1/sessions",
                body: #"{"name":"w","sinks":["default"],"slots":4,"version":"0","labels":{}}"#,
                token: "a-worker-token-0123")
            #expect(opened.status == 201)
        }
    }
}
