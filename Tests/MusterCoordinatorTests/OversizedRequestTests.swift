import MusterAPI
import MusterCore
import Testing

@testable import MusterCoordinator

/// Requests that are too large for the coordinator or for 64 bits are client errors (400, 413).
@Suite("What is too large is refused, not a failure")
struct OversizedRequestTests {
    @Test func aBodyThatIsTooLargeIs413() async throws {
        try await RunningCoordinator.with { coordinator in
            let length = 60 << 20
            let head =
                "POST /v1/groups HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: \(length)\r\n\r\n"
            let text = head + String(repeating: " ", count: length)
            let answer = try await BareConnection.answer(to: text, at: coordinator.url)
            #expect(answer.text.hasPrefix("HTTP/1.1 413"))
            #expect(answer.text.contains("tooLarge"))
        }
    }

    @Test func aStreamThatIsTooLargeIs413() async throws {
        try await RunningCoordinator.with { coordinator in
            let body = String(repeating: " ", count: 9 << 20)
            let answer = try await BareConnection.answer(
                to: """
                    POST /v1/groups HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Transfer-Encoding: chunked\r\n\r\n\(String(body.utf8.count, radix: 16))\r\n\(body)\r\n0\r\n\r\n
                    """, at: coordinator.url)
            #expect(answer.text.hasPrefix("HTTP/1.1 413"))
        }
    }

    @Test(arguments: ["ffffffffffffffffff", "xyz", "-5"])
    func aChunkThatCanNotBeIs400(_ size: String) async throws {
        try await RunningCoordinator.with { coordinator in
            for path in ["/v1/groups", "/v1/groups/g/tasks"] {
                _ = try? await coordinator.client.createGroup(GroupRequest(name: "g"))
                let answer = try await BareConnection.answer(
                    to: """
                        POST \(path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n\
                        Transfer-Encoding: chunked\r\n\r\n\(size)\r\n{}\r\n0\r\n\r\n
                        """.replacing("x-ndjson", with: path.hasSuffix("tasks") ? "x-ndjson" : "json"),
                    at: coordinator.url)
                #expect(answer.text.hasPrefix("HTTP/1.1 400"), "\(path): \(answer.text.prefix(80))")
            }
        }
    }

    @Test func sizesThatDoNotFitTogetherAre400() async throws {
        try await RunningCoordinator.with { coordinator in
            let tasks = (0..<8_192).map {
                TaskRequest(urls: ["http://127.0.0.1:9/\($0)"], size: Limits.fileSize.bytes)
            }
            let refusal = await #expect(throws: Problem.self) {
                _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: tasks))
            }
            #expect(refusal?.code == .invalidRequest)
            #expect(refusal?.status == 400)
            #expect(try await coordinator.client.groups().items.isEmpty)
            // The same in two parts: the first part fits and stays, the second is refused.
            _ = try await coordinator.client.createGroup(GroupRequest(name: "h", tasks: Array(tasks.prefix(4_096))))
            let second = await #expect(throws: Problem.self) {
                _ = try await coordinator.client.addTasks(Array(tasks.suffix(4_096)), to: "h")
            }
            #expect(second?.status == 400)
            #expect(try await coordinator.client.group("h").tasks.total == 4_096)
        }
    }

    @Test(arguments: [
        "/v1/events?after=9223372036854775807", "/v1/events?after=9223372036854775807&wait=1s",
        "/v1/events?after=9223372036854775806&limit=1000&group=g", "/v1/groups/g/tasks?after=9223372036854775807",
        "/v1/deliveries?after=9223372036854775807", "/v1/workers?after=9223372036854775807",
        "/v1/events?after=9223372036854775808", "/v1/deliveries?after=-1", "/v1/events?wait=9223372036854775807s",
        "/v1/events?wait=99999999999999999999d", "/v1/groups/g/tasks?limit=9223372036854775807",
    ])
    func theLastNumbersOf64BitsAreNoFailure(_ path: String) async throws {
        try await RunningCoordinator.with(configure: { $0.longPoll = .milliseconds(100) }) { coordinator in
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g"))
            let answer = try await coordinator.raw("GET", path)
            #expect([200, 400, 404, 409].contains(answer.status), "\(answer.status)")
        }
    }

    @Test func theLastPositionAndTheLastNumbersOfDocumentsAreNoFailure() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g"))
            let far = "9223372036854775807"
            for (method, path, body) in [
                ("POST", "/v1/consumers/c/ack", #"{"position": \#(far)}"#),
                ("POST", "/v1/consumers/c/ack", #"{"position": 9223372036854775808}"#),
                ("PATCH", "/v1/groups/g", #"{"limits": {"bytesPerSecond": \#(far)}}"#),
                ("PATCH", "/v1/groups/g", #"{"limits": {"maxConnections": \#(far)}}"#),
                ("PATCH", "/v1/groups/g", #"{"priority": \#(far)}"#),
                ("PATCH", "/v1/groups/g", #"{"deadline": \#(far)}"#),
                ("POST", "/v1/groups/g/tasks", #"[{"urls": ["http://127.0.0.1:9/x"], "size": \#(far)}]"#),
                (
                    "POST", "/v1/groups/g/tasks",
                    #"[{"urls": ["http://127.0.0.1:9/x"], "fetch": {"deadlineSeconds": \#(far)}}]"#
                ),
                (
                    "POST", "/v1/groups/g/tasks",
                    #"[{"urls": ["http://127.0.0.1:9/x"], "fetch": {"lowSpeedSeconds": \#(far)}}]"#
                ),
                ("POST", "/v1/deliveries/\(far)/replay", nil), ("POST", "/v1/sessions/\(far)/sync", "{}"),
            ] as [(String, String, String?)] {
                let answer = try await coordinator.raw(method, path, body: body)
                #expect(answer.status < 500, "\(method) \(path) \(body ?? ""): \(answer.status)")
            }
            _ = try await coordinator.client.groups()
        }
    }
}
