import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// The transfer options of groups and tasks, as they are given and as they are read back.
@Suite("Options over HTTP")
struct OptionsAPITests {
    private static let digest = String(repeating: "a", count: 64)

    @Test func policyAndResolverAreReadBackAndNoSecretIs() async throws {
        try await RunningCoordinator.with { coordinator in
            let body = """
                {"name": "g", "policy": {"ifExists": "rename", "names": "suggested"},
                 "fetch": {"headers": {"Authorization": "s3cr3t-1"}, "proxy": "http://u:s3cr3t-2@proxy:1", "cookies": {"c": "s3cr3t-3"}},
                 "resolver": {"url": "https://r.example/fresh?key=s3cr3t-4&s3cr3t-5", "headers": {"X": "s3cr3t-6"}},
                 "tasks": [{"urls": ["http://127.0.0.1:1/a"], "headers": {"A": "s3cr3t-7"},
                            "fetch": {"credentials": {"user": "u", "password": "s3cr3t-8"}}}]}
                """
            let made = try await coordinator.raw("POST", "/v1/groups", body: body)
            #expect(made.status == 201)
            let group = try await coordinator.client.group("g")
            #expect(group.policy?.ifExists == .rename && group.policy?.names == .suggested)
            #expect(group.resolver?.url == "https://r.example/fresh?key=•••&•••")
            #expect(group.fetchOptions == ["cookies", "headers", "proxy"])
            for path in [
                "/v1/groups", "/v1/groups/g", "/v1/groups/g/tasks", "/v1/groups/g/tasks/a",
                "/v1/groups/g/tasks/a/explanation", "/v1/events", "/v1/origins",
            ] {
                let answer = try await coordinator.raw("GET", path)
                #expect(answer.status == 200)
                #expect(!String(decoding: answer.body + made.body, as: UTF8.self).contains("s3cr3t"), "\(path)")
            }
        }
    }

    @Test func aChangeOfHowSourcesAreAskedReachesTheNextLeases() async throws {
        try await RunningCoordinator.with(configure: { $0.sessionTimeToLive = .seconds(60) }) { coordinator in
            let client = coordinator.client
            var old = FetchOptions()
            old.headers = ["Authorization": Secret("old"), "X-Other": Secret("1")]
            let task = TaskRequest(urls: ["http://127.0.0.1:1/a"], size: 10)
            _ = try await client.createGroup(GroupRequest(name: "g", tasks: [task], fetch: old))
            var new = FetchOptions()
            new.headers = ["Authorization": Secret("s3cr3t")]
            let patch = GroupPatch(fetch: .set(new), metadata: .set(.object(["by": .string("me")])))
            let changed = try await client.change(group: "g", patch)
            #expect(changed.fetchOptions == ["headers"] && changed.metadata == .object(["by": .string("me")]))
            let session = try await client.openSession(
                SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test"))
            let served = try await client.sync(
                session.id, SyncRequest(sequence: 1, settled: 0, room: 4, waitMilliseconds: 5_000))
            #expect(served.leases.first?.options == new, "nothing of the old options is left")

            let shown = try await coordinator.raw("GET", "/v1/groups/g")
            #expect(!String(decoding: shown.body, as: UTF8.self).contains("s3cr3t"))
            #expect(try await client.change(group: "g", GroupPatch(fetch: .clear)).fetchOptions == nil)
        }
    }

    @Test(arguments: [
        (#"{"name":"g","fetch":{"headers":{"Host":"x"}}}"#, "/fetch/headers/Host", "set by Muster itself"),
        (#"{"name":"g","fetch":{"headers":{"A":"1","a":"2"}}}"#, "/fetch/headers/a", "twice"),
        (#"{"name":"g","fetch":{"caFile":"ca.pem"}}"#, "/fetch/caFile", "absolute"),
        (#"{"name":"g","fetch":{"colour":1}}"#, "/fetch/colour", "unknown field"),
        (#"{"name":"g","policy":{"ifExists":"overwrite"}}"#, "/policy/ifExists", "overwrite"),
        (#"{"name":"g","resolver":{"url":"ftp://r/"}}"#, "/resolver/url", "http"),
        (#"{"name":"g","resolver":{"url":"http://r/","headers":{"A":"1","a":"2"}}}"#, "/resolver/headers/a", "twice"),
        (#"{"name":"g","tasks":[{"urls":["http://h/a"],"headers":{"A":"1","a":"2"}}]}"#, "/tasks/0/headers/a", "twice"),
        (
            #"{"name":"g","tasks":[{"urls":["http://h/a"],"headers":{"A":"1"},"fetch":{"headers":{"a":"2"}}}]}"#,
            "/tasks/0/fetch/headers/a", "twice"
        ),
        (#"{"name":"g","tasks":[{"urls":["http://h/a"],"contentType":"zip"}]}"#, "/tasks/0/contentType", "media type"),
        (#"{"name":"g","tasks":[{"urls":["http://h/a"],"deadline":"soon"}]}"#, "/tasks/0/deadline", "duration"),
        (
            #"{"name":"g","tasks":[{"urls":["http://h/a"],"fetch":{"connectTimeoutSeconds":0}}]}"#,
            "/tasks/0/fetch/connectTimeoutSeconds", "1...3600"
        ),
        (
            #"{"name":"g","policy":{"validators":"sizeAndDigest"},"tasks":[{"urls":["http://h/a"]}]}"#,
            "/tasks/0/digests", "sizeAndDigest"
        ),
    ])
    func mistakesAreRefusedWithTheirPlaceBeforeAnythingIsStored(
        _ body: String, _ pointer: String, _ reason: String
    ) async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await coordinator.raw("POST", "/v1/groups", body: body)
            let text = String(decoding: answer.body, as: UTF8.self)
            #expect(answer.status == 400)
            #expect(text.contains("\"pointer\":\"\(pointer)\""), "\(text)")
            #expect(text.contains(reason), "\(text)")
            #expect(try await coordinator.client.groups().items.isEmpty)
        }
    }

    @Test func aLineOfAStreamIsNamedWithItsPointer() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.raw(
                "POST", "/v1/groups", body: #"{"name":"g","policy":{"validators":"sizeAndDigest"}}"#)
            let good = #"{"urls":["http://h/1"],"digests":{"sha256":"\#(Self.digest)"}}"#
            for (bad, pointer) in [
                (#"{"urls":["http://h/2"]}"#, "/digests"),
                (#"{"urls":["http://h/2"],"fetch":{"netrc":"n"}}"#, "/fetch/netrc"),
                (#"{"urls":["http://h/2"],"headers":{"A":"1","a":"2"}}"#, "/headers/a"),
            ] {
                let answer = try await coordinator.raw(
                    "POST", "/v1/groups/g/tasks", body: "\(good)\n\(bad)\n", type: "application/x-ndjson")
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(answer.status == 400, "\(text)")
                #expect(text.contains("\"line\":2") && text.contains("\"pointer\":\"\(pointer)\""), "\(text)")
            }
            #expect(try await coordinator.client.group("g").tasks.total == 0)
            let answer = try await coordinator.raw(
                "POST", "/v1/groups/g/tasks", body: good, type: "application/x-ndjson")
            #expect(answer.status == 200)
        }
    }

    @Test func aTaskThatIsNotDoneByItsDeadlineFails() async throws {
        try await RunningCoordinator.with { coordinator in
            var task = TaskRequest(urls: ["http://127.0.0.1:1/a"])
            task.deadline = "100ms"
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: [task]))
            var types: [String] = []
            var position: Int64 = 0
            while !types.contains("dev.muster.group.failed.v1"), types.count < 10 {
                let page = try await coordinator.client.events(after: position, group: "g", wait: .seconds(5))
                types += page.items.map(\.type)
                position = page.next
            }
            #expect(types == ["dev.muster.task.failed.v1", "dev.muster.group.failed.v1"])
            #expect(try await coordinator.client.task("a", of: "g").failure?.kind == .deadline)
            let explanation = try await coordinator.client.explanation(of: "a", in: "g")
            #expect(explanation.summary.contains("deadline") && explanation.next?.contains("muster retry g a") == true)
        }
    }
}
