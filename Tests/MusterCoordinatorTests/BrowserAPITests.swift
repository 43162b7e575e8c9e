import MusterAPI
import Testing

@testable import MusterCoordinator

/// A web page in the user's browser can reach services on loopback: by a cross-origin request, or by a host name of its own that resolves
/// to loopback (DNS rebinding).
@Suite("Foreign web pages are refused")
struct BrowserAPITests {
    private static let group = #"{"name": "g", "sealed": false}"#

    private func ask(
        _ coordinator: RunningCoordinator, _ headers: [(name: String, value: String)], _ method: String = "POST",
        _ path: String = "/v1/groups", body: String? = group
    ) async throws -> (status: Int, code: String?) {
        let answer = try await coordinator.send(
            APIRequest(
                method: method, url: coordinator.url + path, headers: headers,
                body: body.map { .bytes(Array($0.utf8)) } ?? .none, timeout: .seconds(20)))
        let text = String(decoding: answer.body, as: UTF8.self)
        let code = text.split(separator: #""code":""#).dropFirst().first
        return (answer.status, code.map { String($0.prefix { $0 != "\"" }) })
    }

    private static let json = (name: "Content-Type", value: "application/json")

    @Test(arguments: [
        "attacker.example", "attacker.example:7300", "127.0.0.1.attacker.example", "localhost.attacker.example",
        "192.0.2.7", "0.0.0.0",
        "localhost@attacker.example", "[::1].attacker.example", "muster.invalid", "1270.0.0.1", "::1",
    ])
    func aHostThatIsNotThisMachineIsRefused(_ host: String) async throws {
        try await RunningCoordinator.with { coordinator in
            for (method, path, body) in [
                ("POST", "/v1/groups", Self.group), ("GET", "/v1/groups", nil), ("GET", "/metrics", nil),
            ] as [(String, String, String?)] {
                let answer = try await ask(coordinator, [Self.json, ("Host", host)], method, path, body: body)
                #expect(answer.status == 421 && answer.code == "foreignHost", "\(method) \(path) of \(host)")
            }
            #expect(try await coordinator.client.groups().items.isEmpty)
        }
    }

    @Test(arguments: ["localhost", "LocalHost:9", "127.0.0.1", "127.8.8.8:7300", "[::1]:7300", "localhost."])
    func aLoopbackNameIsThisMachine(_ host: String) async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await ask(coordinator, [Self.json, ("Host", host)])
            #expect(answer.status == 201)
        }
    }

    @Test func aRequestWithoutHostIsRefused() async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await BareConnection(url: coordinator.url)
                .answer(to: "GET /v1/groups HTTP/1.0\r\n\r\n")
            #expect(answer.text.hasPrefix("HTTP/1.1 421"))
            // Two Host lines: a proxy in between may have used either of them.
            let second = try await BareConnection(url: coordinator.url)
                .answer(to: "GET /v1/groups HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n\r\n")
            #expect(second.text.hasPrefix("HTTP/1.1 400"))
        }
    }

    @Test(arguments: [
        "http://attacker.example", "null", "http://localhost:1", "https://127.0.0.1:1", "file://", "localhost",
    ])
    func aPageOfAnotherOriginIsRefused(_ origin: String) async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await ask(coordinator, [Self.json, ("Origin", origin)])
            #expect(answer.status == 403 && answer.code == "foreignOrigin", "\(origin)")
            let cancel = try await ask(coordinator, [("Origin", origin)], "POST", "/v1/groups/g/cancel", body: nil)
            #expect(cancel.status == 403 && cancel.code == "foreignOrigin", "\(origin)")
            #expect(try await coordinator.client.groups().items.isEmpty)
        }
    }

    @Test func aPageOfTheCoordinatorItselfPasses() async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await ask(coordinator, [Self.json, ("Origin", coordinator.url)])
            #expect(answer.status == 201)
        }
    }

    @Test(arguments: [
        "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", "",
    ])
    func aBodyThatIsNotJSONIsRefused(_ type: String) async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await ask(coordinator, [("Content-Type", type)])
            #expect(answer.status == 415 && answer.code == "unsupportedMediaType", "\(type)")
            #expect(try await coordinator.client.groups().items.isEmpty)
            // The same without a Content-Length.
            let bare = try await BareConnection(url: coordinator.url).answer(
                to: """
                    POST /v1/groups HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
                    Content-Type: text/plain\r\n\r\n\
                    \(String(Self.group.utf8.count, radix: 16))\r\n\(Self.group)\r\n0\r\n\r\n
                    """)
            #expect(bare.text.hasPrefix("HTTP/1.1 415"))
        }
    }

    @Test func manyLinesAreNoSingleDocument() async throws {
        try await RunningCoordinator.with { coordinator in
            let lines = (name: "Content-Type", value: "application/x-ndjson")
            let single = try await ask(coordinator, [lines])
            #expect(single.status == 415)
            let document = try await ask(coordinator, [("Content-Type", "Application/JSON; charset=utf-8")])
            #expect(document.status == 201)
            let added = try await ask(coordinator, [lines], "POST", "/v1/groups/g/tasks", body: "")
            #expect(added.status == 200)
            let sealed = try await ask(coordinator, [], "POST", "/v1/groups/g/seal", body: nil)
            #expect(sealed.status == 200)
        }
    }

    @Test func healthIsToldToBalancersThatKnowNoName() async throws {
        try await RunningCoordinator.with { coordinator in
            for path in ["/healthz", "/readyz"] {
                let answer = try await ask(coordinator, [("Host", "10.0.0.7")], "GET", path, body: nil)
                #expect(answer.status == 200)
            }
        }
    }
}
