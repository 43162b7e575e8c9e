import MusterTestSupport
import NIOCore
import Testing

@testable import MusterCoordinator

/// What HTTP itself asks of a server, over real sockets (RFC 9110, RFC 9112).
struct HTTPMessageAPITests {
    private static let group = #"{"name": "g"}"#

    /// The head of a request for a new group, whose body has some length.
    private static func head(
        _ fields: String, version: String = "1.1", length: Int = group.utf8.count
    ) -> String {
        """
        POST /v1/groups HTTP/\(version)\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Content-Length: \(length)\r\n\(fields)\r\n
        """
    }

    @Test(arguments: ["", "Connection: keep-alive\r\n"])
    func connectionOfHTTP10EndsWithItsAnswer(fields: String) async throws {
        try await RunningCoordinator.with(configure: { $0.connections.idle = .minutes(10) }) { coordinator in
            let answer = await (try BareConnection(url: coordinator.url))
                .exchange("GET /healthz HTTP/1.0\r\n\(fields)\r\n")
            #expect(answer.isClosed)
            #expect(answer.text.hasPrefix("HTTP/1.1 200 "))
            #expect(answer.text.lowercased().contains("\r\nconnection: close\r\n"))
            #expect(answer.text.hasSuffix("\r\n\r\nok\n"))
        }
    }

    @Test func connectionEndsWhereThePeerAsksForItInAnyCase() async throws {
        try await RunningCoordinator.with(configure: { $0.connections.idle = .minutes(10) }) { coordinator in
            let answer = await (try BareConnection(url: coordinator.url))
                .exchange("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Close\r\n\r\n")
            #expect(answer.isClosed)
            #expect(answer.text.lowercased().contains("\r\nconnection: close\r\n"))
        }
    }

    @Test func streamToAClientOfHTTP10HasNoChunksAndEndsWithTheConnection() async throws {
        let left = Observed<BareConnection?>(nil)
        let begun = Observed("")
        try await RunningCoordinator.with { coordinator in
            let reader = try BareConnection(url: coordinator.url)
            let answer = await reader.answer(
                to: "GET /v1/events HTTP/1.0\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
            begun.update { $0 = answer.text }
            left.update { $0 = reader }
        }
        let reader = try #require(left.value)
        let rest = await reader.exchange()
        #expect(rest.isClosed)
        let text = begun.value + rest.text
        #expect(text.hasPrefix("HTTP/1.0 200 "))
        #expect(!text.lowercased().contains("transfer-encoding"))
        #expect(text.lowercased().contains("\r\nconnection: close\r\n"))
        #expect(text.contains("\r\n\r\n: the log follows\n\n"))
    }

    @Test func bodyThatWaitsForAContinueIsAskedFor() async throws {
        try await RunningCoordinator.with { coordinator in
            let line = #"{"urls": ["http://127.0.0.1:9/a"]}"# + "\n"
            let lines = """
                POST /v1/groups/g/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n\
                Content-Length: \(line.utf8.count)\r\nExpect: 100-continue\r\n\r\n
                """
            for (head, body, status) in [
                (Self.head("Expect: 100-Continue\r\n"), Self.group, 201),
                // A request with a name is read before it is carried out.
                (Self.head("Idempotency-Key: k\r\nExpect: 100-continue\r\n"), Self.group, 409),
                // Lines are read one by one.
                (lines, line, 200),
            ] {
                let connection = try BareConnection(url: coordinator.url)
                #expect(await connection.answer(to: head).text == "HTTP/1.1 100 Continue\r\n\r\n")
                #expect(await connection.answer(to: body).text.hasPrefix("HTTP/1.1 \(status) "))
            }
        }
    }

    @Test func answerThatNeedsNoBodyTakesThePlaceOfTheContinue() async throws {
        let admin = "admin-token-0123456789"
        try await RunningCoordinator.with(
            configure: { configuration in
                configuration.adminToken = admin
                configuration.workerToken = "worker-token-0123456789"
            }, token: admin
        ) { coordinator in
            for (fields, length, status) in [
                ("", 10, 401), ("Authorization: Bearer \(admin)\r\n", 60 << 20, 413),
            ] {
                let answer = try await BareConnection.answer(
                    to: Self.head("\(fields)Expect: 100-continue\r\n", length: length), at: coordinator.url)
                #expect(answer.text.hasPrefix("HTTP/1.1 \(status) "), "\(answer.text)")
            }
        }
    }

    @Test func requestThatHasNoBodyOrComesInHTTP10GetsNoContinue() async throws {
        try await RunningCoordinator.with { coordinator in
            let empty = try await BareConnection.answer(
                to: "GET /v1/groups HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n", at: coordinator.url)
            #expect(empty.text.hasPrefix("HTTP/1.1 200 "))
            let old = try await BareConnection.answer(
                to: Self.head("Expect: 100-continue\r\n", version: "1.0") + Self.group, at: coordinator.url)
            #expect(old.text.hasPrefix("HTTP/1.1 201 "))
        }
    }

    @Test(arguments: ["200-ok", "100-continue, x", "100-continue;a=b"])
    func otherExpectationIsRefused(value: String) async throws {
        try await RunningCoordinator.with { coordinator in
            for path in ["/healthz", "/v1/groups"] {
                let answer = await (try BareConnection(url: coordinator.url)).exchange(
                    """
                    GET \(path) HTTP/1.1\r\nHost: localhost\r\nExpect: \(value)\r\nConnection: close\r\n\r\n
                    """)
                #expect(answer.text.hasPrefix("HTTP/1.1 417 "), "\(path): \(answer.text)")
                #expect(answer.text.contains(#""code":"expectationFailed""#))
            }
        }
    }

    @Test(arguments: ["/healthz", "/readyz", "/metrics", "/v1/groups", "/nothing"])
    func requestWithoutHostOrWithTwoIsNotValid(path: String) async throws {
        try await RunningCoordinator.with { coordinator in
            for rest in [
                "1.1\r\n", "1.1\r\nHost:\r\n", "1.1\r\nHost: localhost\r\nHost: localhost\r\n",
                "1.0\r\nHost: localhost\r\nHost: localhost\r\n",
            ] {
                let answer = try await BareConnection.answer(
                    to: "GET \(path) HTTP/\(rest)\r\n", at: coordinator.url)
                #expect(answer.text.hasPrefix("HTTP/1.1 400 "), "\(rest): \(answer.text)")
            }
        }
    }

    @Test func requestOfHTTP10NeedsNoHostWhereAnyIsTaken() async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await BareConnection.answer(to: "GET /readyz HTTP/1.0\r\n\r\n", at: coordinator.url)
            #expect(answer.text.hasPrefix("HTTP/1.1 200 "))
        }
    }

    @Test func readerGetsTheFormThatItPrefers() async throws {
        try await RunningCoordinator.with { coordinator in
            for (accept, type) in [
                ("text/event-stream", "text/event-stream"), ("text/event-stream;q=0", "application/json"),
                ("application/json, text/event-stream;q=0.1", "application/json"),
            ] {
                let answer = try await BareConnection.answer(
                    to: "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: \(accept)\r\n\r\n", at: coordinator.url)
                #expect(answer.text.lowercased().contains("\r\ncontent-type: \(type)\r\n"), "\(accept)")
            }
        }
    }

    @Test func emptyLastEventIDIsNone() async throws {
        try await RunningCoordinator.with { coordinator in
            let answer = try await BareConnection.answer(
                to: "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nLast-Event-ID:\r\n\r\n",
                at: coordinator.url)
            #expect(answer.text.hasPrefix("HTTP/1.1 200 "))
        }
    }
}
