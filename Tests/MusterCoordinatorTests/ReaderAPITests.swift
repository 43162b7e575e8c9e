import MusterAPI
import MusterPostgres
import MusterTestSupport
import Testing

@testable import MusterCoordinator

/// Requests that only read have a share of a coordinator; the rest is for the fleet (I19).
@Suite("Readers keep no worker waiting")
struct ReaderAPITests {
    private static let listing = "GET /v1/consumers HTTP/1.1\r\nHost: localhost\r\n\r\n"

    /// Blocks `count` readers, runs `body`, then lets the readers go on. Returns their answers.
    private static func held(
        _ count: Int, by coordinator: RunningCoordinator, while body: @Sendable () async throws -> Void
    ) async throws -> [String] {
        let pool = PostgresPool(PostgresConfiguration(coordinator.database), limits: .init(maximumConnections: 1))
        return try await withThrowingTaskGroup(of: String.self) { readers in
            do {
                try await pool.withConnection { connection in
                    _ = try await connection.query("BEGIN")
                    _ = try await connection.query("LOCK TABLE consumers IN ACCESS EXCLUSIVE MODE")
                    for _ in 0..<count {
                        readers.addTask {
                            await (try BareConnection(url: coordinator.url)).answer(to: listing).text
                        }
                    }
                    try await waitForRequests(count, coordinator)
                    try await body()
                    _ = try await connection.query("ROLLBACK")
                }
            } catch {
                await pool.shutdown()
                throw error
            }
            await pool.shutdown()
            return try await readers.reduce(into: []) { $0.append($1) }
        }
    }

    /// Returns once that many requests have come.
    private static func waitForRequests(_ count: Int, _ coordinator: RunningCoordinator) async throws {
        try await eventually(
            "\(count) requests",
            isTrue: {
                let text = String(decoding: try await coordinator.raw("GET", "/metrics").body, as: UTF8.self)
                let number = text.firstMatch(of: #/muster_http_requests_total (\d+)\n/#).flatMap { Int($0.1) }
                return (number ?? 0) >= count
            })
    }

    @Test func aWorkerIsServedWhileAnyNumberOfReadersIsHeldUp() async throws {
        try await RunningCoordinator.with(configure: {
            $0.readers = ReaderLimits(connections: $0.databaseConnections)
            $0.readers?.patience = .seconds(60)
        }) { coordinator in
            let answers = try await Self.held(20, by: coordinator) {
                let task = TaskRequest(urls: ["http://127.0.0.1:1/a"], path: "a", size: 10)
                _ = try await coordinator.client.createGroup(GroupRequest(name: "g", sealed: true, tasks: [task]))
                let session = try await coordinator.client.openSession(
                    SessionRequest(name: "w", sinks: ["default"], slots: 4, version: "test"))
                let answer = try await coordinator.client.sync(
                    session.id, SyncRequest(sequence: 1, settled: 0, room: 1))
                #expect(answer.leases.count == 1)
                #expect(try await coordinator.raw("GET", "/readyz").status == 200)
            }
            // None of them is lost.
            #expect(answers.count == 20 && answers.allSatisfy { $0.hasPrefix("HTTP/1.1 200") })
        }
    }

    @Test func aReaderThatWaitsTooLongForItsTurnIsToldToComeAgain() async throws {
        try await RunningCoordinator.with(configure: {
            $0.readers = ReaderLimits(connections: 4)
            $0.readers?.patience = .milliseconds(1)
        }) { coordinator in
            let answers = try await Self.held(1, by: coordinator) {
                for path in ["/v1/groups", "/v1/groups/g", "/v1/events?after=0", "/v1/consumers/c/events"] {
                    let request = "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    let answer = await (try BareConnection(url: coordinator.url)).answer(to: request)
                    #expect(answer.text.hasPrefix("HTTP/1.1 503"))
                    #expect(answer.text.lowercased().contains("retry-after: 1\r\n"))
                    #expect(answer.text.contains(#""code":"busy""#))
                }
                // A request that changes something is not held up with the readers.
                _ = try await coordinator.client.createGroup(GroupRequest(name: "g"))
            }
            #expect(answers.allSatisfy { $0.hasPrefix("HTTP/1.1 200") })
            #expect(try await coordinator.client.group("g").name == "g")
        }
    }
}
