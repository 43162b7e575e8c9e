import CLibcurl
import Glibc
import Synchronization
import Testing

@testable import MusterCurl

@Suite(.timeLimit(.minutes(1)))
struct LimitTests {
    @Test(arguments: ["", "HTTP/1.1 200 OK\r\nX-A: 1\r\n", "HTTP/1.1 100 Continue\r\n\r\n"])
    func silenceBeforeTheHeadIsAFirstByteTimeout(start: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send(start)
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.firstByteTimeout = .milliseconds(100)
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.error?.kind == "first-byte timeout", "\(outcome)")
            #expect(record.heads.isEmpty)
        }
    }

    /// When the handler tolerates the silence, the timeout starts anew.
    @Test func silenceThatTheHandlerToleratesIsNoFirstByteTimeout() async throws {
        final class Patient: TransferHandler {
            let recorder = Recorder()
            private let times = Atomic(0)

            func head(_ head: ResponseHead) -> HeadVerdict { recorder.head(head) }
            func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict { recorder.body(bytes) }
            func isTooSlow() -> Bool { times.add(1, ordering: .relaxed).newValue == 3 }
            func finished(_ outcome: TransferOutcome) { recorder.finished(outcome) }
        }
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.firstByteTimeout = .milliseconds(100)
            let patient = Patient()
            _ = try loop.start(request, handler: patient)
            let outcome = await patient.recorder.outcome()
            #expect(outcome.error?.kind == "first-byte timeout", "\(outcome)")
            #expect(outcome.error?.description.contains("within 300 ms") == true, "\(outcome)")
        }
    }

    @Test func drippingBodyIsTooSlow() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\ndrip")
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.lowSpeed = LowSpeedLimit(bytesPerSecond: 1000, over: .milliseconds(100))
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.error?.kind == "too slow", "\(outcome)")
            #expect(record.body == Array("drip".utf8))
        }
    }

    @Test func stoppedBodyIsTooSlowOneSpanLater() {
        let limit = LowSpeedLimit(bytesPerSecond: 1_000, over: .seconds(6))
        var window = SpeedWindow()
        window.begin(limit, at: 0, bytes: 0)
        var seconds: UInt64 = 0
        let isBelow = { (bytes: Int64) -> Bool in
            seconds += 1
            #expect(window.due == seconds * 1_000_000_000)
            return window.isBelow(limit, at: window.due, bytes: bytes)
        }
        // All bytes come in the first second, then none: the body is too slow after the six seconds that follow.
        let ends = (0..<9).map { _ in isBelow(1_000_000) }
        #expect(ends == [false, false, false, false, false, false, true, true, true])
    }

    @Test func bodyThatComesInPiecesIsJudgedByItsMeanSpeed() {
        let limit = LowSpeedLimit(bytesPerSecond: 1_000, over: .seconds(6))
        for (piece, isTooSlow) in [(6_000, false), (5_000, true)] as [(Int64, Bool)] {
            var window = SpeedWindow()
            window.begin(limit, at: 0, bytes: 0)
            let ends = (1...30).map { second in
                window.isBelow(limit, at: window.due, bytes: piece * (Int64(second) / 6))
            }
            #expect(ends.contains(true) == isTooSlow, "\(piece)")
        }
    }

    @Test func limitOfTheVerdictReplacesThatOfTheRequest() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\ndrip")
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.lowSpeed = LowSpeedLimit(bytesPerSecond: 1, over: .seconds(3_600))
            let short = LowSpeedLimit(bytesPerSecond: 1_000, over: .milliseconds(100))
            let recorder = Recorder(onHead: { _ in .accept(limit: nil, lowSpeed: short) })
            try loop.start(request, handler: recorder)
            #expect(await recorder.outcome().error?.kind == "too slow")
        }
    }

    /// libcurl reports both as a failure to connect, but without descriptors the peer was never asked.
    @Test func lackOfDescriptorsIsNotThePeersRefusal() throws {
        for (number, kind) in [(EMFILE, "no socket"), (EAFNOSUPPORT, "not connected")] as [(Int32, String)] {
            let shared = try #require(SharedSessions())
            let transfer = Transfer(
                id: TransferID(lane: .http, value: 1),
                request: TransferRequest(url: "http://127.0.0.1:9/"),
                handler: Recorder(),
                easy: try #require(EasyHandle(shared)),
                timers: TimerBoard(),
                pacing: PacingQueue(),
                inbox: LoopInbox(try #require(MultiHandle()), .http),
                sockets: OpenSockets()
            )
            #expect(transfer.mayConnect(to: "127.0.0.1"))
            transfer.socketFailed(number)
            #expect(transfer.close(.curl(CURLE_COULDNT_CONNECT)).error?.kind == kind)
        }
    }

    @Test func deadlineEndsAnyTransfer() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nbegun")
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.deadline = .milliseconds(150)
            let (outcome, _) = try await fetch(loop, request)
            #expect(outcome.error?.kind == "deadline passed", "\(outcome)")
        }
    }

    @Test func hangingHandshakeIsAConnectTimeout() async throws {
        try await withServer { connection, _ in
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: "https://127.0.0.1:\(server.port)/")
            request.connectTimeout = .milliseconds(200)
            let (outcome, _) = try await fetch(loop, request)
            #expect(outcome.error?.kind == "connect timeout", "\(outcome)")
        }
    }

    @Test func answerThatIsNoTLSFailsAsTLS() async throws {
        try await withServer { connection, _ in
            connection.send("HTTP/1.1 400 This is not TLS\r\n\r\n")
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, _) = try await fetch(loop, TransferRequest(url: "https://127.0.0.1:\(server.port)/"))
            #expect(outcome.error?.kind == "TLS failed", "\(outcome)")
        }
    }

    @Test func refusedConnectionIsReportedAsSuch() async throws {
        let server = try RawServer { _, _ in }
        let url = server.url()
        server.stop()
        try await withLoop { loop in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: url))
            #expect(outcome.error?.kind == "not connected", "\(outcome)")
            #expect(outcome.error?.detail.code == 7)
            #expect(outcome.error?.detail.message.hasSuffix(": Connection refused") == true, "\(outcome)")
            #expect(outcome.statistics.remoteAddress == "127.0.0.1")
            #expect(record.heads.isEmpty)
        }
    }

    @Test func unknownHostIsReportedAsSuch() async throws {
        try await withLoop { loop in
            let (outcome, _) = try await fetch(loop, TransferRequest(url: "http://no-such-host.invalid/"))
            #expect(outcome.error?.kind == "name not resolved", "\(outcome)")
        }
    }

    @Test func emptyAnswerIsAReset() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.finish()
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, _) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.error?.kind == "connection reset", "\(outcome)")
        }
    }

    @Test(arguments: [
        ("not a url", "malformed URL"), ("http://", "malformed URL"), ("http://a b/", "malformed URL"),
        ("http://h\u{0}x/", "malformed URL"), ("http://h/\r\nX: y", "malformed URL"),
        ("ftp://127.0.0.1/", "unsupported scheme"), ("file:///etc/passwd", "unsupported scheme"),
        ("nope://127.0.0.1/", "unsupported scheme"),
    ])
    func badURLsAreToldApart(url: String, kind: String) async throws {
        try await withLoop { loop in
            let (outcome, _) = try await fetch(loop, TransferRequest(url: url))
            #expect(outcome.error?.kind == kind, "\(outcome)")
        }
    }

    @Test(arguments: [
        HeaderField("X", "a\r\nInjected: 1"), HeaderField("X\r\nY", "a"), HeaderField("", "a"),
        HeaderField("X", "a\u{0}"),
    ])
    func headersThatWouldBreakTheRequestAreNotSent(field: HeaderField) async throws {
        try await withServer { connection, _ in
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, _) = try await fetch(loop, TransferRequest(url: server.url(), headers: HeaderList([field])))
            #expect(outcome.error?.kind == "invalid request", "\(outcome)")
            #expect(server.acceptedConnections == 0)
        }
    }
}
