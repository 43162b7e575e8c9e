import FoundationEssentials
import MusterAPI
import Testing

/// A request that arrives a second time after later ones, as from a proxy that had kept it (I10, F7).
@Suite("Late requests")
struct LateRequestAPITests {
    private struct Request: Sendable {
        var method = "POST"
        var path: String
        var body = "{}"
    }

    /// A request, the requests after it, and what a read has to show after the first one has arrived again.
    private static let cases: [(Request, [Request], Request, (Int, String))] = {
        let group = #"{"name": "g", "tasks": [{"urls": ["http://127.0.0.1:9/a"], "key": "a"}]}"#
        let make = Request(path: "/v1/groups", body: group)
        let (look, remove) = (
            Request(method: "GET", path: "/v1/groups/g"), Request(method: "DELETE", path: "/v1/groups/g?files=delete")
        )
        func verb(_ name: String) -> Request { Request(path: "/v1/groups/g/\(name)") }
        func rate(_ value: String) -> Request {
            Request(method: "PATCH", path: "/v1/groups/g", body: #"{"limits": {"bytesPerSecond": \#(value)}}"#)
        }
        let subscribe = Request(path: "/v1/subscriptions", body: #"{"name": "s", "url": "http://127.0.0.1:9/"}"#)
        let unsubscribe = Request(method: "DELETE", path: "/v1/subscriptions/s")
        return [
            (remove, [make], look, (200, #""state":"open""#)), (make, [remove], look, (404, "groupNotFound")),
            (verb("pause"), [verb("resume")], look, (200, #""queued":1"#)),
            (verb("cancel"), [remove, make], look, (200, #""queued":1"#)),
            (verb("seal"), [verb("reopen")], look, (200, #""sealed":false"#)),
            (rate("1024"), [rate("null")], look, (200, #""limits":{}"#)),
            (
                subscribe, [unsubscribe], Request(method: "GET", path: "/v1/subscriptions/s"),
                (404, "subscriptionNotFound")
            ),
        ]
    }()

    @Test(arguments: cases.indices)
    func lateRequestChangesNothingAndIsToldWhatWasAnswered(number: Int) async throws {
        let (first, then, look, (status, text)) = Self.cases[number]
        try await RunningCoordinator.with { coordinator in
            var keys = 0
            func ask(_ request: Request, key: String? = nil) async throws -> (status: Int, body: String) {
                keys += 1
                let answer = try await coordinator.raw(
                    request.method, request.path, body: request.method == "GET" ? nil : request.body,
                    key: key ?? "k\(keys)")
                return (answer.status, String(decoding: answer.body, as: UTF8.self))
            }
            if number != 1 { _ = try await ask(Request(path: "/v1/groups", body: Self.cases[0].1[0].body)) }
            let answer = try await ask(first, key: "first")
            #expect((200..<300).contains(answer.status), "\(answer)")
            for request in then {
                let next = try await ask(request)
                #expect((200..<300).contains(next.status), "\(next)")
            }
            try await coordinator.withAnother { other in
                let late = try await other.raw(first.method, first.path, body: first.body, key: "first")
                #expect(late.status == answer.status && String(decoding: late.body, as: UTF8.self) == answer.body)
            }
            let found = try await ask(look)
            #expect(found.status == status && found.body.contains(text), "\(found)")
        }
    }

    /// `muster add` to an existing group first asks for that group to be made, and is refused. The refusal is repeated even when the group is gone.
    @Test func refusedRequestIsNotCarriedOutLater() async throws {
        try await RunningCoordinator.with { coordinator in
            let make = Self.cases[0].1[0]
            for (key, status) in [("one", 201), ("two", 409)] {
                #expect(try await coordinator.raw("POST", make.path, body: make.body, key: key).status == status)
            }
            try await coordinator.client.removeGroup("g")
            try await coordinator.withAnother { other in
                let late = try await other.raw("POST", make.path, body: make.body, key: "two")
                #expect(late.status == 409 && late.problem?.code == .groupExists, "\(late)")
            }
            await #expect(throws: Problem.self) { try await coordinator.client.group("g") }
        }
    }

    @Test func keyOfAnotherRequestIsRefused() async throws {
        try await RunningCoordinator.with { coordinator in
            let tasks = (1...2).map { TaskRequest(urls: ["http://127.0.0.1:9/\($0)"]) }
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g"), idempotencyKey: "one")
            _ = try await coordinator.client.addTasks([tasks[0]], to: "g", idempotencyKey: "two")
            for key in ["one", "two"] {
                await #expect {
                    try await coordinator.client.addTasks(tasks, to: "g", idempotencyKey: key)
                } throws: {
                    ($0 as? Problem)?.code == .conflict
                }
            }
            #expect(try await coordinator.client.group("g").tasks.total == 1)
        }
    }
}
