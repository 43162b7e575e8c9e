import MusterAPI
import NIOCore
import Testing

@testable import MusterCoordinator

/// Connections that keep a coordinator waiting, over real sockets (F23).
@Suite("A connection that says nothing makes room")
struct ConnectionAPITests {
    private static let list = "GET /v1/groups HTTP/1.1\r\nHost: localhost\r\n\r\n"

    @Test func aNewConnectionTakesThePlaceOfTheOneThatWasSilentLongest() async throws {
        try await RunningCoordinator.with(configure: { $0.connections.count = 8 }) { coordinator in
            let silent = try (0..<40).map { _ in try BareConnection(url: coordinator.url) }
            for _ in 0..<3 {
                let answer = await (try BareConnection(url: coordinator.url)).answer(to: Self.list)
                #expect(answer.text.hasPrefix("HTTP/1.1 200"))
            }
            #expect(await silent[0].exchange().isClosed)
        }
    }

    @Test func connectionThatWaitsForAnAnswerKeepsItsPlace() async throws {
        try await RunningCoordinator.with(configure: { $0.connections.count = 4 }) { coordinator in
            let reader = try BareConnection(url: coordinator.url)
            async let answer = reader.answer(
                to: "GET /v1/events?wait=3s HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for _ in 0..<20 {
                let other = await (try BareConnection(url: coordinator.url)).answer(to: Self.list)
                #expect(other.text.hasPrefix("HTTP/1.1 200"))
            }
            #expect(await answer.text.hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test(arguments: [
        "", "GET /v1/groups HTTP/1.1\r\nHost: loc",
        "POST /v1/groups HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{",
        "POST /v1/groups/g/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{",
        // Refused at once; the coordinator doesn't wait forever for the rest of the body.
        "POST /v1/groups HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n{",
        "NOT HTTP AT ALL\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ])
    func aPeerThatDoesNotGoOnIsLeft(_ talk: String) async throws {
        try await RunningCoordinator.with(configure: { configuration in
            configuration.connections.firstHead = .milliseconds(200)
            configuration.connections.bodyWindow = .milliseconds(200)
            configuration.connections.farewell = .milliseconds(200)
            configuration.connections.idle = .milliseconds(200)
        }) { coordinator in
            _ = try await coordinator.client.createGroup(GroupRequest(name: "g"))
            let connection = try BareConnection(url: coordinator.url)
            #expect(await connection.exchange(talk).isClosed)
        }
    }

    @Test func requestsInTurnGoOverTheSameConnection() async throws {
        try await RunningCoordinator.with { coordinator in
            let connection = try BareConnection(url: coordinator.url)
            for _ in 0..<3 {
                #expect(await connection.answer(to: Self.list).text.hasPrefix("HTTP/1.1 200"))
            }
        }
    }
}
