import MusterCurl
import Synchronization
import Testing

/// A body that pauses until the test gives it bytes.
final class GatedSource: UploadSource {
    private let contents = Mutex<(bytes: [UInt8], isOpen: Bool, asked: Int)>(([], false, 0))
    let asked = Signal()

    func open(_ bytes: [UInt8]) {
        contents.withLock { $0 = (bytes, true, $0.asked) }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> UploadRead {
        defer { asked.fire() }
        return contents.withLock { contents in
            contents.asked += 1
            guard contents.isOpen else { return .pause }
            guard !contents.bytes.isEmpty else { return .end }
            let count = min(buffer.count, contents.bytes.count)
            buffer.copyBytes(from: contents.bytes[..<count])
            contents.bytes.removeFirst(count)
            return .bytes(count)
        }
    }
}

@Suite(.timeLimit(.minutes(1)))
struct UploadTests {
    @Test func bytesAreSentWithTheirLengthAndNoExtraHeaders() async throws {
        let seen = Mutex<[String]>([])
        try await withServer { connection, _ in
            while true {
                let head = connection.readHead()
                if head.isEmpty { return }
                let body = String(decoding: connection.read(head.contains("Content-Length: 5") ? 5 : 0), as: UTF8.self)
                seen.withLock { $0.append(head + body) }
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
        } _: { loop, server in
            for method in ["POST", "PUT", "PATCH"] {
                let request = TransferRequest(
                    url: server.url(),
                    method: method,
                    headers: ["X-Empty": ""],
                    body: .bytes(Array("hello".utf8))
                )
                let firstEnd = try await bodyEnd(loop, request)
                #expect(firstEnd == .framed)
            }
            for method in ["POST", "DELETE"] {
                let secondEnd = try await bodyEnd(loop, TransferRequest(url: server.url(), method: method))
                #expect(secondEnd == .framed)
            }
            let requests = seen.withLock { $0 }
            #expect(requests.map { String($0.prefix { $0 != " " }) } == ["POST", "PUT", "PATCH", "POST", "DELETE"])
            #expect(requests[..<3].allSatisfy { $0.hasSuffix("\r\n\r\nhello") && $0.contains("X-Empty:\r\n") })
            #expect(requests.allSatisfy { !$0.contains("Expect") && !$0.contains("Content-Type") })
            #expect(requests.allSatisfy { !$0.contains("Transfer-Encoding") && !$0.contains("User-Agent") })
            #expect(requests[3].contains("Content-Length: 0"))
        }
    }

    @Test func sourceWithoutLengthIsSentInChunksAndMayPause() async throws {
        let received = Mutex<[UInt8]>([])
        try await withServer { connection, _ in
            while true {
                let head = connection.readHead()
                if head.isEmpty { return }
                let body = connection.readChunkedBody()
                received.withLock { $0 = body }
                let isChunked = head.contains("Transfer-Encoding: chunked") && !head.contains("Content-Length")
                connection.send("HTTP/1.1 \(isChunked ? 200 : 400) X\r\nContent-Length: 0\r\n\r\n")
            }
        } _: { loop, server in
            let content = patternBytes(300_000)
            for method in ["POST", "PUT"] {
                let source = GatedSource()
                let recorder = Recorder()
                var request = TransferRequest(url: server.url(), method: method, body: .stream(source, length: nil))
                // The first-byte timeout does not run while the source has no bytes.
                request.firstByteTimeout = .seconds(20)
                let id = try loop.start(request, handler: recorder)
                await source.asked.wait()
                source.open(content)
                loop.resume(id)
                #expect(await recorder.outcome().end == .framed)
                #expect(recorder.record.head?.status == 200)
                #expect(isSame(received.withLock { $0 }, content))
            }
        }
    }

    @Test func bytesAreSentAgainAfterARedirectButASourceIsNot() async throws {
        try await withServer { connection, _ in
            while true {
                let head = connection.readHead()
                if head.isEmpty { return }
                let body = connection.read(5)
                let isEnd = head.hasPrefix("POST /end ") && body == Array("hello".utf8)
                connection.send(
                    isEnd
                        ? "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
                        : "HTTP/1.1 307 Go\r\nLocation: /end\r\nContent-Length: 0\r\n\r\n"
                )
            }
        } _: { loop, server in
            let hello = Array("hello".utf8)
            let again = TransferRequest(url: server.url("/1"), method: "POST", body: .bytes(hello))
            let (outcome, record) = try await fetch(loop, again)
            #expect(outcome.end == .framed)
            #expect(record.head?.status == 200)
            let source = GatedSource()
            source.open(hello)
            let once = TransferRequest(url: server.url("/1"), method: "POST", body: .stream(source, length: 5))
            let firstKind = try await failureKind(loop, once)
            #expect(firstKind == "send failed")
        }
    }
}
