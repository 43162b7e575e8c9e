import FoundationEssentials
import MusterCurl
import Testing

@Suite(.enabled(if: Nginx.path != nil), .timeLimit(.minutes(1)))
struct NginxTests {
    private func write(_ bytes: [UInt8], to path: String) throws {
        try Data(bytes).write(to: URL(filePath: path))
    }

    @Test func rangesAreThoseOfTheFile() async throws {
        let content = patternBytes(5_000_001)
        try await withNginx { loop, nginx in
            try write(content, to: nginx.root + "/file")
            let url = nginx.url("/file")
            let last = Int64(content.count - 1)
            let ranges: [(Int64, Int64?)] = [
                (0, 0), (0, 999), (1, 65536), (4_000_000, nil), (last, last), (0, last), (0, nil),
            ]
            for (first, end) in ranges {
                var request = TransferRequest(url: url)
                request.range = RangeSpec(first: first, last: end)
                let (outcome, record) = try await fetch(loop, request)
                let expected = content[Int(first)...Int(end ?? last)]
                #expect(outcome.end == .framed)
                #expect(record.head?.status == 206)
                #expect(record.head?.headers["Content-Range"] == "bytes \(first)-\(end ?? last)/\(content.count)")
                #expect(record.head?.bodyFraming == .contentLength(Int64(expected.count)))
                #expect(isSame(record.body, expected))
                #expect(outcome.statistics.bytesDelivered == Int64(expected.count))
            }
            var beyond = TransferRequest(url: url)
            beyond.range = RangeSpec(first: last + 1, last: nil)
            let past = try await fetch(loop, beyond).record
            #expect(past.head?.status == 416)
            var backwards = TransferRequest(url: url)
            backwards.range = RangeSpec(first: 5, last: 4)
            let firstKind = try await failureKind(loop, backwards)
            #expect(firstKind == "invalid request")
        }
    }

    @Test(arguments: [true, false])
    func streamedUploadOfFiftyMebibytesArrivesWhole(isLengthKnown: Bool) async throws {
        let content = patternBytes(50 * 1024 * 1024, seed: 7)
        let chunks = AsyncStream<[UInt8]> { continuation in
            for start in stride(from: 0, to: content.count, by: 100_000) {
                continuation.yield(Array(content[start..<min(start + 100_000, content.count)]))
            }
            continuation.finish()
        }
        try await withNginx { loop, nginx in
            let url = nginx.url("/put/upload")
            let length = isLengthKnown ? Int64(content.count) : nil
            let body = HTTPBody.stream(HTTPBodyStream(chunks), length: length)
            let response = try await CurlClient(loop: loop).send(HTTPRequest(method: "PUT", url: url, body: body))
            #expect(response.status == 201)
            let stored = try Data(contentsOf: URL(filePath: nginx.root + "/put/upload"))
            #expect(isSame(stored, content))
        }
    }

    @Test(.enabled(if: Nginx.openssl != nil))
    func certificatesAreCheckedAgainstTheGivenAuthority() async throws {
        let content = patternBytes(3_000_000)
        try await withNginx(tls: true) { loop, nginx in
            try write(content, to: nginx.root + "/file")
            let url = nginx.url("/file")
            let certificate = nginx.certificate
            var request = TransferRequest(url: url)
            let firstKind = try await failureKind(loop, request)
            #expect(firstKind == "TLS failed")
            request.caFile = certificate
            let overHTTP2 = try await fetch(loop, request)
            #expect(overHTTP2.outcome.end == .framed)
            #expect(overHTTP2.record.head?.version == .http2)
            #expect(isSame(overHTTP2.record.body, content))
            request.httpVersion = .http1
            let overHTTP1 = try await fetch(loop, request)
            #expect(overHTTP1.record.head?.version == .http11)
            #expect(isSame(overHTTP1.record.body, content))
            // The name in the certificate has to be the host's.
            request.url = url.replacing("localhost", with: "127.0.0.1")
            let secondKind = try await failureKind(loop, request)
            #expect(secondKind == "TLS failed")
            // A request without a CA must not use the connection of a request with a CA.
            request.url = url
            request.caFile = nil
            let thirdKind = try await failureKind(loop, request)
            #expect(thirdKind == "TLS failed")
        }
    }

    @Test(.enabled(if: Nginx.openssl != nil))
    func pausedStreamOfASharedConnectionLosesNothing() async throws {
        let content = patternBytes(2_000_000)
        try await withNginx(tls: true, CurlLoopConfiguration(maxConnectionsPerHost: 1)) { loop, nginx in
            try write(content, to: nginx.root + "/file")
            var request = TransferRequest(url: nginx.url("/file"))
            request.caFile = nginx.certificate
            let paused = Recorder(onBody: { $0 == 0 ? .pause : .proceed })
            let id = try loop.start(request, handler: paused)
            await paused.bodyBegan.wait()
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.end == .framed)
            #expect(isSame(record.body, content))
            #expect(paused.record.pieces == 1)
            loop.resume(id)
            #expect(await paused.outcome().end == .framed)
            #expect(isSame(paused.record.body, content))
        }
    }
}
