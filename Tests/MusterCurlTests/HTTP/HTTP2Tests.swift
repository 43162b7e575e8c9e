import FoundationEssentials
import Glibc
import MusterCurl
import Testing

@Suite(.timeLimit(.minutes(1)))
struct HTTP2Tests {
    /// A frame of RFC 9113 §4.1.
    private static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0, 0, stream] + payload
    }

    private static let settings = frame(4, stream: 0, [])
    /// `:status: 200` by its number in the static table.
    private static let head = frame(1, flags: 4, stream: 1, [0x88])
    private static let piece = frame(0, stream: 1, Array("some".utf8))

    private static func resetStream(_ code: UInt8) -> [UInt8] { frame(3, stream: 1, [0, 0, 0, code]) }

    private static func goAway(_ code: UInt8, last: UInt8) -> [UInt8] {
        frame(7, stream: 0, [0, 0, 0, last, 0, 0, 0, code])
    }

    /// Sends the frames after the request's head, then `last`, and then stays silent or closes.
    private static func answering(
        _ frames: [UInt8],
        then last: [UInt8] = [],
        closes: Bool = false
    ) -> @Sendable (RawConnection, Int) -> Void {
        { connection, _ in
            _ = connection.read(24)
            connection.send(settings)
            awaitFrame(1, connection)
            connection.send(frames)
            if !last.isEmpty {
                // The answer to the PING shows that the client has processed everything before it.
                connection.send(frame(6, stream: 0, [UInt8](repeating: 0, count: 8)))
                awaitFrame(6, connection)
                connection.send(last)
            }
            if closes { connection.finish() }
            connection.waitForPeerToClose()
        }
    }

    /// Reads up to a frame of that type.
    private static func awaitFrame(_ type: UInt8, _ connection: RawConnection) {
        while true {
            let header = connection.read(9)
            guard header.count == 9 else { return }
            _ = connection.read(Int(header[1]) << 8 | Int(header[2]))
            if header[3] == type { return }
        }
    }

    private func fetch(
        _ script: @escaping @Sendable (RawConnection, Int) -> Void
    ) async throws -> (outcome: TransferOutcome, record: Recorder.Record) {
        try await withServer(script) { loop, server in
            var request = TransferRequest(url: server.url())
            request.httpVersion = .priorKnowledge
            request.firstByteTimeout = .seconds(5)
            return try await MusterCurlTests.fetch(loop, request)
        }
    }

    /// libcurl may take such a reset for a proper end, so the head must mark the end as uncertain.
    @Test func resetWithoutAnErrorLeavesTheEndUncertain() async throws {
        let (outcome, record) = try await fetch(Self.answering(Self.head + Self.piece, then: Self.resetStream(0)))
        #expect(outcome.end == .framed || outcome.error?.kind == "stream reset", "\(outcome)")
        #expect(record.head?.bodyFraming == .chunked)
        #expect(record.head?.isEndUncertain == true)
    }

    /// The codes of RFC 9113 §7: PROTOCOL_ERROR, INTERNAL_ERROR, CANCEL, ENHANCE_YOUR_CALM.
    @Test(arguments: [1, 2, 8, 11] as [UInt8])
    func resetOfTheStreamIsToldApart(code: UInt8) async throws {
        let early = try await fetch(Self.answering(Self.resetStream(code)))
        #expect(early.outcome.error?.kind == "stream reset", "\(early.outcome)")
        #expect(early.record.heads.isEmpty)
        let late = try await fetch(Self.answering(Self.head + Self.piece, then: Self.resetStream(code)))
        #expect(late.outcome.error?.kind == "stream reset", "\(late.outcome)")
        #expect(late.record.head?.version == .http2)
        #expect(late.record.body == Array("some".utf8))
        #expect(late.outcome.statistics.remoteAddress == "127.0.0.1")
    }

    /// REFUSED_STREAM: libcurl retries on five more connections.
    @Test func streamThatIsRefusedOnEachConnectionIsToldApart() async throws {
        let (outcome, record) = try await fetch(Self.answering(Self.resetStream(7)))
        #expect(outcome.error?.kind == "stream reset", "\(outcome)")
        #expect(record.heads.isEmpty)
    }

    /// HTTP_1_1_REQUIRED: libcurl repeats the request by HTTP/1.1 on its own, and delivers the second body after the first.
    @Test func resetThatDemandsHTTP1InTheMiddleDeliversNoSecondBody() async throws {
        let answer = Self.answering(Self.head + Self.piece, then: Self.resetStream(13))
        let (outcome, record) = try await fetch { connection, number in
            if number == 0 { return answer(connection, number) }
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsomething")
            connection.waitForPeerToClose()
        }
        #expect(outcome.error?.kind == "stream reset", "\(outcome)")
        #expect(record.heads.count == 1)
        #expect(record.body == Array("some".utf8))
    }

    @Test(arguments: [0, 1, 2, 11] as [UInt8])
    func goAwayIsToldApart(code: UInt8) async throws {
        let early = try await fetch(Self.answering(Self.goAway(code, last: 0), closes: true))
        #expect(early.outcome.error?.kind == "stream reset", "\(early.outcome)")
        let late = try await fetch(Self.answering(Self.head + Self.piece + Self.goAway(code, last: 1), closes: true))
        #expect(late.outcome.error?.kind == "stream reset", "\(late.outcome)")
        #expect(late.record.body == Array("some".utf8))
    }

    @Test func brokenConnectionOfHTTP2NeverLooksComplete() async throws {
        let (outcome, record) = try await fetch(Self.answering(Self.head + Self.piece, closes: true))
        #expect(["stream reset", "connection reset", "truncated"].contains(outcome.error?.kind), "\(outcome)")
        #expect(record.body == Array("some".utf8))
    }

    /// A balancer whose nodes speak different versions: two requests never share a connection of HTTP/1.1, so that no body has bytes of another one.
    @Test(.enabled(if: Nginx.path != nil && Nginx.openssl != nil))
    func bodiesDoNotMixWhereConnectionsSpeakDifferentVersions() async throws {
        let slowly = "location /slow { limit_rate 500k; }"
        let nodes = [try Nginx(tls: true, speaksHTTP2: false, locations: slowly), try Nginx(tls: true)]
        defer { for node in nodes { node.stop() } }
        let (slow, quick) = (patternBytes(1_000_000), patternBytes(300_000, seed: 2))
        for node in nodes {
            try node.write(slow, to: "slow")
            try node.write(quick, to: "quick")
        }
        let authorities = nodes[0].directory + "/both.pem"
        let certificates = try nodes.map { try Data(contentsOf: URL(filePath: $0.certificate)) }
        try (certificates[0] + certificates[1]).write(to: URL(filePath: authorities))
        let ports = nodes.map(\.port)
        try await withServer({ connection, number in connection.relay(toPort: ports[min(number, 1)]) }) {
            loop, server in
            func request(_ name: String) -> TransferRequest {
                var request = TransferRequest(url: "https://localhost:\(server.port)/\(name)")
                request.httpVersion = .http2OverTLS
                request.caFile = authorities
                return request
            }
            let first = Recorder()
            try loop.start(request("slow"), handler: first)
            await first.bodyBegan.wait()
            // From the second of them on, libcurl takes every connection to the origin for one of HTTP/2.
            for _ in 0..<8 {
                let (outcome, record) = try await MusterCurlTests.fetch(loop, request("quick"))
                #expect(outcome.end == .framed, "\(outcome)")
                #expect(record.head?.version == .http2 && isSame(record.body, quick))
            }
            let outcome = await first.outcome()
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(first.record.head?.version == .http11 && isSame(first.record.body, slow))
        }
    }

    @Test func peerThatSpeaksOnlyHTTP1FailsPriorKnowledge() async throws {
        let (outcome, record) = try await fetch { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            connection.finish()
            connection.waitForPeerToClose()
        }
        #expect(outcome.error?.kind == "stream reset", "\(outcome)")
        #expect(record.heads.isEmpty)
    }

    @Test(.enabled(if: Nginx.path != nil))
    func priorKnowledgeSpeaksHTTP2InClearText() async throws {
        try await withNginx(protocols: "http2") { loop, nginx in
            var request = TransferRequest(url: nginx.url("/small"))
            request.httpVersion = .priorKnowledge
            let (outcome, record) = try await MusterCurlTests.fetch(loop, request)
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.head?.version == .http2)
            #expect(record.body == Array("small body\n".utf8))
        }
    }

    @Test(.enabled(if: Nginx.path != nil && Nginx.openssl != nil))
    func priorKnowledgeSpeaksHTTP2OverTLS() async throws {
        try await withNginx(tls: true) { loop, nginx in
            var request = TransferRequest(url: nginx.url("/small"))
            request.caFile = nginx.certificate
            request.httpVersion = .priorKnowledge
            let (outcome, record) = try await MusterCurlTests.fetch(loop, request)
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.head?.version == .http2)
        }
    }

    /// libcurl 7.88 does not tell the server that a stream is given up. The server would go on sending it, and count it in its limits.
    @Test(.enabled(if: Nginx.path != nil && Nginx.openssl != nil), arguments: [true, false])
    func streamThatIsGivenUpEndsAtTheServer(isCancelled: Bool) async throws {
        let limit = "limit_conn_zone $server_port zone=one:64k;"
        let location = "location /one/ { limit_conn one 1; limit_rate 64k; }"
        try await withNginx(tls: true, settings: limit, locations: location) { loop, nginx in
            mkdir(nginx.root + "/one", 0o700)
            try nginx.write([UInt8](repeating: 0, count: 4 << 20), to: "one/file")
            var request = TransferRequest(url: nginx.url("/one/file"))
            request.caFile = nginx.certificate
            let recorder = Recorder(onHead: { _ in .accept(limit: isCancelled ? nil : 1) })
            let id = try loop.start(request, handler: recorder)
            await recorder.bodyBegan.wait()
            if isCancelled { loop.cancel(id) }
            _ = await recorder.outcome()
            #expect(recorder.record.head?.version == .http2)
            let other = try await withLoop { loop in
                try await MusterCurlTests.fetch(loop, request, Recorder(onHead: { _ in .accept(limit: 1) }))
            }
            #expect(other.record.head?.status == 200)
        }
    }
}
