import MusterCurl
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct BodyTests {
    /// Answers every request of a connection with the same bytes.
    private static func answering(_ response: String) -> @Sendable (RawConnection, Int) -> Void {
        { connection, _ in
            while !connection.readHead().isEmpty { connection.send(response) }
        }
    }

    @Test(arguments: [
        "Content-Length: 10\r\n\r\nshort", "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
        "Transfer-Encoding: chunked\r\n\r\nA\r\nshort",
    ])
    func bodyShorterThanItsFramingIsTruncated(rest: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\n\(rest)")
            connection.finish()
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.error?.kind == "truncated", "\(outcome)")
            #expect(record.body == Array("short".utf8))
            #expect(outcome.statistics.bytesDelivered == 5)
        }
    }

    @Test(arguments: ["zz\r\nhello", "5\r\nhello\r\n0\r\nHTTP/1.1 200 OK\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\nhello"])
    func malformedChunkIsAViolation(body: String) async throws {
        try await withServer(Self.answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(body)")) {
            loop,
            server in
            let (outcome, _) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.error?.kind == "protocol violation", "\(outcome)")
        }
    }

    /// A transfer coding belongs to the message, not to the file (RFC 9112 §7; range contract, row 13).
    @Test func codedTransferIsDecodedAndACodedContentIsNot() async throws {
        let coded: [UInt8] =
            [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1, 18, 0, 0xed, 0xff] + Array("the file, as it is".utf8)
            + [0x61, 0x6f, 0xad, 0x2e, 18, 0, 0, 0]
        let cases = [
            ("Transfer-Encoding: gzip, chunked", Array("the file, as it is".utf8)),
            ("Content-Encoding: gzip\r\nTransfer-Encoding: chunked", coded),
        ]
        for (fields, body) in cases {
            try await withServer { connection, _ in
                _ = connection.readHead()
                connection.send(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\n\(fields)\r\n\r\n\(String(coded.count, radix: 16))\r\n")
                connection.send(coded)
                connection.send("\r\n0\r\n\r\n")
                connection.waitForPeerToClose()
            } _: { loop, server in
                let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
                #expect(outcome.end == .framed, "\(outcome)")
                #expect(record.body == body)
            }
        }
        try await withServer(
            Self.answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: x, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
        ) { loop, server in
            let (outcome, _) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.error?.kind == "protocol violation", "\(outcome)")
        }
    }

    /// With this coding libcurl alone would ignore the length and wait for the connection to end.
    @Test(arguments: [("5", "there"), ("0", "")]) func bodyWithIdentityCodingEndsAtItsLength(
        length: String, body: String
    ) async throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Identity\r\nContent-Length: \(length)\r\n\r\n"
        try await withServer(Self.answering(head + body)) { loop, server in
            for _ in 1...2 {
                let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
                #expect(outcome.end == .framed, "\(outcome)")
                #expect(record.body == Array(body.utf8))
            }
            let (outcome, record) = try await fetch(
                loop, TransferRequest(url: server.url()), Recorder(onHead: { _ in .accept(limit: 2) }))
            #expect(outcome.end == (body.isEmpty ? .framed : .surplus) && record.body == Array(body.utf8.prefix(2)))
        }
    }

    @Test func bodyWithoutFramingEndsWithItsConnection() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\n\r\nall there is")
            connection.finish()
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.end == .connectionClosed)
            #expect(record.head?.bodyFraming == .untilClose)
            #expect(record.head?.isEndUncertain == true)
            #expect(record.body == Array("all there is".utf8))
        }
    }

    @Test func resetInTheBodyIsAReset() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
            // The request's body is sent only when the response's first bytes have arrived: then comes the reset.
            _ = connection.read(1)
            connection.reset()
        } _: { loop, server in
            let recorder = Recorder()
            let source = GatedSource()
            var request = TransferRequest(url: server.url(), method: "POST")
            request.body = .stream(source, length: 1)
            let id = try loop.start(request, handler: recorder)
            await recorder.bodyBegan.wait()
            source.open(Array("x".utf8))
            loop.resume(id)
            let outcome = await recorder.outcome()
            #expect(outcome.error?.kind == "connection reset", "\(outcome)")
            #expect(recorder.record.body == Array("some".utf8))
        }
    }

    @Test(arguments: [
        "Content-Length: 12\r\n\r\nhello, world",
        "Transfer-Encoding: chunked\r\n\r\n7\r\nhello, \r\n5\r\nworld\r\n0\r\n\r\n",
    ])
    func surplusIsCutAtTheLimitAndTheConnectionDropped(rest: String) async throws {
        try await withServer(Self.answering("HTTP/1.1 200 OK\r\n\(rest)")) { loop, server in
            for limit in [0, 1, 5, 11] {
                let recorder = Recorder(onHead: { _ in .accept(limit: Int64(limit)) })
                let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()), recorder)
                #expect(outcome.end == .surplus)
                #expect(record.body.elementsEqual("hello, world".utf8.prefix(limit)))
                #expect(outcome.statistics.bytesDelivered == Int64(limit))
            }
            #expect(server.acceptedConnections == 4)
        }
    }

    @Test func bodyAsLongAsTheLimitIsWholeAndKeepsTheConnection() async throws {
        let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        try await withServer(Self.answering(response)) { loop, server in
            for isFirst in [true, false] {
                let recorder = Recorder(onHead: { _ in .accept(limit: 5) })
                let (outcome, _) = try await fetch(loop, TransferRequest(url: server.url()), recorder)
                #expect(outcome.end == .framed)
                #expect(outcome.statistics.connectionReused == !isFirst)
            }
        }
    }

    @Test func bytesAfterTheResponseAreNotTheNextResponse() async throws {
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        try await withServer(Self.answering(response)) { loop, server in
            for _ in 0..<3 {
                let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
                #expect(outcome.end == .framed)
                #expect(record.body == Array("ok".utf8))
            }
            #expect(server.acceptedConnections == 3)
        }
    }

    @Test func refusedBodyIsNotDeliveredAndASmallOneKeepsTheConnection() async throws {
        try await withServer(Self.answering("HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\nsorry")) { loop, server in
            for _ in 0..<3 {
                let (outcome, record) = try await fetch(
                    loop,
                    TransferRequest(url: server.url()),
                    Recorder(onHead: { _ in .refuse })
                )
                guard case .refused = outcome else {
                    Issue.record("\(outcome)")
                    return
                }
                #expect(record.body.isEmpty)
                #expect(record.heads.count == 1)
            }
            #expect(server.acceptedConnections == 1)
        }
    }

    @Test(arguments: [
        "Transfer-Encoding: chunked\r\n\r\n", "Content-Length: 100000000\r\n\r\n", "\r\n", "Content-Length: 9\r\n\r\n",
    ])
    func refusedEndlessBodyIsNotAwaited(rest: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\n\(rest)")
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            // The head has come. A small refused body that doesn't come is awaited for 1 s, not for this timeout.
            request.firstByteTimeout = .seconds(3_600)
            let (outcome, record) = try await fetch(loop, request, Recorder(onHead: { _ in .refuse }))
            guard case .refused = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(record.body.isEmpty)
        }
    }

    @Test func stopEndsTheBody() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            var goesOn = connection.send("HTTP/1.1 200 OK\r\n\r\n")
            while goesOn { goesOn = connection.send(patternBytes(4096)) }
        } _: { loop, server in
            let recorder = Recorder(onBody: { $0 == 2 ? .stop : .proceed })
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()), recorder)
            guard case .stopped = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(record.pieces == 3)
            #expect(outcome.statistics.bytesDelivered == Int64(record.body.count))
        }
    }

    @Test func pausedBodyWaitsAndNothingIsLostOrDoubled() async throws {
        let content = patternBytes(1_000_000)
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n")
            connection.send(content)
            connection.waitForPeerToClose()
        } _: { loop, server in
            // The handler pauses after every piece; each pause must be answered by exactly one resume to go on.
            let (pauses, pause) = AsyncStream<Int>.makeStream()
            let recorder = Recorder(onBody: { piece in
                pause.yield(piece)
                return .pause
            })
            var request = TransferRequest(url: server.url())
            request.lowSpeed = LowSpeedLimit(bytesPerSecond: 1_000_000_000, over: .seconds(20))
            let id = try loop.start(request, handler: recorder)
            let ended = Task {
                let outcome = await recorder.outcome()
                pause.finish()
                return outcome
            }
            for await piece in pauses {
                #expect(recorder.record.pieces == piece + 1)
                loop.resume(id)
            }
            #expect(await ended.value.end == .framed)
            let record = recorder.record
            #expect(isSame(record.body, content))
            #expect(record.pieces >= content.count / 16384)
            #expect(record.misplaced == 0)
        }
    }

    @Test func pausedTransferTakesNothingWhileOthersGoOn() async throws {
        let content = patternBytes(3_000_000)
        try await withServer { connection, _ in
            while true {
                let head = connection.readHead()
                if head.isEmpty || head.hasPrefix("GET /silent ") { return connection.waitForPeerToClose() }
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n")
                connection.send(content)
            }
        } _: { loop, server in
            let paused = Recorder(onBody: { $0 == 0 ? .pause : .proceed })
            var request = TransferRequest(url: server.url())
            // A paused transfer must not count as too slow.
            request.lowSpeed = LowSpeedLimit(bytesPerSecond: 100, over: .milliseconds(500))
            let id = try loop.start(request, handler: paused)
            await paused.bodyBegan.wait()
            for _ in 0..<3 {
                let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
                #expect(outcome.end == .framed)
                #expect(isSame(record.body, content))
            }
            // This transfer's timeout is longer than the paused transfer's span, so its failure shows that the span has passed.
            var silent = TransferRequest(url: server.url("/silent"))
            silent.firstByteTimeout = .milliseconds(1200)
            let kind = try await failureKind(loop, silent)
            #expect(kind == "first-byte timeout")
            #expect(paused.record.pieces == 1)
            loop.resume(id)
            #expect(await paused.outcome().end == .framed)
            #expect(isSame(paused.record.body, content))
        }
    }

    @Test func nothingIsCalledAfterACancelInTheBody() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            var goesOn = connection.send("HTTP/1.1 200 OK\r\n\r\n")
            while goesOn { goesOn = connection.send(patternBytes(65536)) }
        } _: { loop, server in
            for isPaused in [false, true] {
                let recorder = Recorder(onBody: { _ in isPaused ? .pause : .proceed })
                let id = try loop.start(TransferRequest(url: server.url()), handler: recorder)
                await recorder.bodyBegan.wait()
                loop.cancel(id)
                guard case .cancelled = await recorder.outcome() else {
                    Issue.record("not cancelled")
                    return
                }
                let bytes = recorder.record.body.count
                loop.cancel(id)
                loop.resume(id)
                // Any outstanding call would come before the end of another whole transfer on the same thread.
                let other = Recorder(onBody: { _ in .stop })
                _ = try await fetch(loop, TransferRequest(url: server.url()), other)
                #expect(recorder.record.body.count == bytes)
                #expect(recorder.record.outcomes.count == 1)
                #expect(recorder.record.misplaced == 0)
            }
        }
    }
}
