import MusterCurl
import Testing

/// An end of TCP without close_notify (RFC 8446 §6.1) may be forged, so it must not make a body look whole.
@Suite(.enabled(if: Nginx.path != nil && Nginx.openssl != nil), .timeLimit(.minutes(1)))
struct TLSCloseTests {
    /// Fetches through an nginx with TLS what a raw server sends, and kills nginx once the first bytes of the body have come.
    private func fetch(_ response: String) async throws -> (outcome: TransferOutcome, record: Recorder.Record) {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send(response)
            connection.waitForPeerToClose()
        } _: { loop, origin in
            let locations = """
                location /raw {
                    proxy_pass \(origin.url("/"));
                    proxy_buffering off;
                    chunked_transfer_encoding off;
                }
                """
            let nginx = try Nginx(tls: true, locations: locations)
            defer { nginx.stop() }
            var request = TransferRequest(url: nginx.url("/raw"))
            request.caFile = nginx.certificate
            request.httpVersion = .http1
            let recorder = Recorder()
            try loop.start(request, handler: recorder)
            await recorder.bodyBegan.wait()
            nginx.crash()
            return (await recorder.outcome(), recorder.record)
        }
    }

    @Test func bodyWithoutALengthDoesNotLookComplete() async throws {
        let (outcome, record) = try await fetch("HTTP/1.1 200 OK\r\n\r\nsome")
        #expect(record.head?.bodyFraming == .untilClose)
        #expect(record.body == Array("some".utf8))
        // libcurl does not tell such a close from a proper one, so both are reported as a close that may have cut the body.
        #expect(outcome.end == .connectionClosed || outcome.error != nil, "\(outcome)")
    }

    @Test func bodyShorterThanItsLengthFails() async throws {
        let (outcome, record) = try await fetch("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsome")
        #expect(["connection reset", "truncated"].contains(outcome.error?.kind), "\(outcome)")
        #expect(record.body == Array("some".utf8))
    }

    @Test func bodyAsLongAsItsLengthIsWhole() async throws {
        let (outcome, record) = try await fetch("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsome")
        #expect(outcome.end == .framed, "\(outcome)")
        #expect(record.body == Array("some".utf8))
    }
}
