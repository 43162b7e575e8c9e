import MusterAPI
import Testing

/// The methods of the API's paths (RFC 9110 §9.3.2, §15.5.6).
struct MethodAPITests {
    private static func answer(
        _ method: String, _ path: String, _ coordinator: RunningCoordinator
    ) async throws
        -> String
    {
        try await BareConnection.answer(
            to: "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n", at: coordinator.url
        ).text.lowercased()
    }

    @Test func methodThatAPathLacksIsAnsweredWithThoseThatItHas() async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g"))
            for method in ["PUT", "TRACE", "OPTIONS", "QUERY"] {
                let answer = try await Self.answer(method, "/v1/groups/g", coordinator)
                #expect(answer.hasPrefix("http/1.1 405"), "\(method): \(answer)")
                #expect(answer.contains("\r\nallow: delete, get, head, patch\r\n"), "\(method): \(answer)")
            }
            #expect(try await Self.answer("GET", "/v1/nothing", coordinator).hasPrefix("http/1.1 404"))
        }
    }

    @Test(arguments: ["/healthz", "/v1/groups", "/v1/groups/g"])
    func headIsAnsweredWhereGetIs(path: String) async throws {
        try await RunningCoordinator.with { coordinator in
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g"))
            #expect(try await Self.answer("HEAD", path, coordinator).hasPrefix("http/1.1 200"))
        }
    }
}
