import Dispatch
import Testing

@testable import MusterCurl

/// Bytes after an answer on a connection that is used again (range contract, row 28).
@Suite(.timeLimit(.minutes(1)))
struct SurplusTests {
    private static func answer(_ body: String) -> String {
        "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// Bytes that come after the first answer has been read. libcurl takes them for the next answer, or for the beginning of its head.
    @Test(arguments: [answer("fake"), "HTTP/1.1 204 No Content\r\n\r\n", "x"])
    func requestUsesANewConnectionAfterSurplusBytes(surplus: String) async throws {
        let read = DispatchSemaphore(value: 0)
        let (sent, continuation) = AsyncStream<Void>.makeStream()
        try await withServer { connection, number in
            _ = connection.readHead()
            guard number == 0 else {
                connection.send(Self.answer("second"))
                return connection.waitForPeerToClose()
            }
            connection.send(Self.answer("first"))
            read.wait()
            connection.send(surplus)
            continuation.yield()
            connection.waitForPeerToClose()
        } _: { loop, server in
            let first = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(first.record.body == Array("first".utf8))
            #expect(!first.outcome.statistics.followsSurplus)
            read.signal()
            for await _ in sent { break }
            let second = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(second.record.body == Array("second".utf8))
            #expect(second.record.outcomes.count == 1)
            #expect(second.outcome.statistics.followsSurplus)
            #expect(!second.outcome.statistics.connectionReused)
            #expect(server.acceptedConnections == 2)
        }
    }

    @Test func connectionWithoutSurplusBytesIsUsedAgain() async throws {
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty { connection.send(Self.answer("file")) }
        } _: { loop, server in
            for number in 0..<5 {
                let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
                #expect(record.body == Array("file".utf8))
                #expect(outcome.statistics.connectionReused == (number > 0))
                #expect(!outcome.statistics.followsSurplus)
            }
            #expect(server.acceptedConnections == 1)
        }
    }
}
