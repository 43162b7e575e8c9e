import MusterCurl
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct CurlClientTests {
    private struct Broken: Error {}

    @Test func responseComesWhole() async throws {
        try await withServer { connection, _ in
            let head = connection.readHead()
            let body = connection.read(4)
            connection.send(
                "HTTP/1.1 409 Conflict\r\nContent-Length: 4\r\nX-Agent: \(head.contains("User-Agent: m/1\r\n"))\r\n\r\n"
            )
            connection.send(body)
            connection.waitForPeerToClose()
        } _: { loop, server in
            let client = CurlClient(loop: loop, userAgent: "m/1")
            let response = try await client.send(
                HTTPRequest(method: "POST", url: server.url(), body: .bytes(Array("ping".utf8)))
            )
            #expect(response.status == 409)
            #expect(response.headers["X-Agent"] == "true")
            #expect(response.body == Array("ping".utf8))
        }
    }

    @Test(arguments: ["Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n64\r\n"])
    func largeResponseIsRefused(framing: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\n\(framing)\(String(repeating: "x", count: 100))")
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = HTTPRequest(url: server.url())
            request.maxResponseBytes = 99
            let error = await #expect(throws: CurlClientError.self) {
                try await CurlClient(loop: loop).send(request)
            }
            guard case .responseTooLarge(limit: 99) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test func cancelledTaskCancelsTheTransfer() async throws {
        let asked = Signal()
        let left = Signal()
        try await withServer { connection, _ in
            _ = connection.readHead()
            asked.fire()
            connection.waitForPeerToClose()
            left.fire()
        } _: { loop, server in
            let url = server.url()
            let task = Task { try await CurlClient(loop: loop).send(HTTPRequest(url: url)) }
            await asked.wait()
            task.cancel()
            await left.wait()
            guard case .failure(let error) = await task.result, case CurlClientError.cancelled = error else {
                Issue.record("not cancelled")
                return
            }
        }
    }

    @Test func cancelledTaskEndsItsUpload() async throws {
        let asked = Signal()
        try await withServer { connection, _ in
            _ = connection.readHead()
            _ = connection.read(1)
            asked.fire()
            connection.waitForPeerToClose()
        } _: { loop, server in
            let url = server.url()
            let endless = AsyncStream<[UInt8]>(unfolding: { patternBytes(10_000) })
            let task = Task {
                let body = HTTPBody.stream(HTTPBodyStream(endless), length: nil)
                return try await CurlClient(loop: loop).send(HTTPRequest(method: "POST", url: url, body: body))
            }
            await asked.wait()
            task.cancel()
            guard case .failure(let error) = await task.result, case CurlClientError.cancelled = error else {
                Issue.record("not cancelled")
                return
            }
        }
    }

    /// The answer comes before or after the source has paused.
    @Test(arguments: [false, true]) func earlyAnswerEndsTheUpload(whenPaused: Bool) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            // Once the bytes of the source are here, it has paused.
            if whenPaused { _ = connection.read(8) }
            connection.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            connection.waitForPeerToClose()
        } _: { loop, server in
            // The source yields once and never ends: only the answer can end the request.
            let (silent, feed) = AsyncStream<[UInt8]>.makeStream()
            feed.yield([1, 2, 3])
            let body = HTTPBody.stream(HTTPBodyStream(silent), length: nil)
            let response = try await CurlClient(loop: loop).send(
                HTTPRequest(method: "POST", url: server.url(), body: body)
            )
            #expect(response.status == 413)
        }
    }

    @Test func failureOfTheBodySourceIsReported() async throws {
        try await withServer { connection, _ in
            connection.waitForPeerToClose()
        } _: { loop, server in
            let broken = AsyncThrowingStream<[UInt8], any Error> { continuation in
                continuation.yield([1, 2, 3])
                continuation.finish(throwing: Broken())
            }
            let body = HTTPBody.stream(HTTPBodyStream(broken), length: nil)
            let error = await #expect(throws: CurlClientError.self) {
                try await CurlClient(loop: loop).send(HTTPRequest(method: "POST", url: server.url(), body: body))
            }
            guard case .bodyFailed(let reason) = error, reason is Broken else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test func shutdownFailsWaitingRequests() async throws {
        let asked = Signal()
        let server = try RawServer { connection, _ in
            _ = connection.readHead()
            asked.fire()
            connection.waitForPeerToClose()
        }
        defer { server.stop() }
        let loop = try CurlLoop()
        let url = server.url()
        let task = Task { try await CurlClient(loop: loop).send(HTTPRequest(url: url)) }
        await asked.wait()
        await loop.shutdown()
        guard case .failure(let error) = await task.result, case CurlClientError.loopClosed = error else {
            Issue.record("not closed")
            return
        }
        await #expect(throws: CurlClientError.self) { try await CurlClient(loop: loop).send(HTTPRequest(url: url)) }
    }
}
