import Glibc
import MusterCurl
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ResponseHeadTests {
    @Test func informationalResponsesAreSkipped() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\nX-Early: 1\r\n\r\n")
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Late: 1\r\n\r\nok")
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.end == .framed)
            #expect(record.heads.count == 1)
            #expect(record.head?.status == 200)
            #expect(record.head?.headers.contains("X-Early") == false)
            #expect(record.head?.headers["x-late"] == "1")
            #expect(record.body == Array("ok".utf8))
        }
    }

    /// A killed server or a cut line can end a head anywhere.
    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
    ])
    func headThatIsCutIsABrokenConnection(head: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send(head)
            connection.finish()
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(["connection reset", "truncated"].contains(outcome.error?.kind), "\(outcome)")
            #expect(record.heads.isEmpty)
        }
    }

    /// Other clients accept both.
    @Test func statusLineInSmallLettersAndALengthWithAPlusAreAccepted() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("http/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok")
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.head?.bodyFraming == .contentLength(2))
            #expect(record.head?.version == .http11)
            #expect(record.body == Array("ok".utf8))
        }
    }

    @Test func silenceOnAConnectionThatWasUsedBeforeHasALimitOfItsOwn() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.firstByteTimeout = .seconds(3_600)
            request.keptFirstByteTimeout = .milliseconds(200)
            #expect(try await fetch(loop, request).0.end == .framed)
            let (outcome, _) = try await fetch(loop, request)
            #expect(outcome.error?.kind == "first-byte timeout", "\(outcome)")
            #expect(outcome.statistics.connectionReused)
        }
    }

    /// An origin that keeps sending 102 responses does not keep its lane for ever (row 33).
    @Test func informationalResponsesDoNotExtendTheFirstByteTimeout() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            while connection.send("HTTP/1.1 102 Processing\r\n\r\n") { usleep(20_000) }
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.firstByteTimeout = .milliseconds(300)
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.error?.kind == "first-byte timeout", "\(outcome)")
            #expect(record.heads.isEmpty)
        }
    }

    /// libcurl 7.88 writes to memory that it has freed here, if a handle has made a transfer before.
    @Test func headThatBeginsWithAFoldedLineIsAViolation() async throws {
        try await withServer { connection, number in
            _ = connection.readHead()
            let folded = number.isMultiple(of: 2) ? "" : " folded: a\r\n"
            let filler = (0..<50).map { "X-\($0): \(String(repeating: "x", count: 100))\r\n" }.joined()
            connection.send("HTTP/1.1 200 OK\r\n\(folded)Connection: close\r\n\(filler)Content-Length: 2\r\n\r\nok")
            connection.finish()
            connection.waitForPeerToClose()
        } _: { loop, server in
            for number in 0..<20 {
                let (outcome, _) = try await fetch(loop, TransferRequest(url: server.url()))
                if number.isMultiple(of: 2) {
                    #expect(outcome.end == .framed, "\(outcome)")
                } else {
                    #expect(outcome.error?.kind == "protocol violation", "\(outcome)")
                }
            }
        }
    }

    @Test func headersKeepTheirOrderAndAreFoundInAnyCase() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.0 206 Partial\r\nA: 1\r\nb:  two \r\nEmpty:\r\na: 3\r\nFolded: x\r\n  y\r\n\r\n")
            connection.finish()
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url("/p")))
            let head = try #require(record.head)
            #expect(outcome.end == .connectionClosed)
            #expect(head.version == .http10)
            #expect(head.status == 206)
            #expect(head.headers.fields.map(\.name) == ["A", "b", "Empty", "a", "Folded"])
            #expect(head.headers["A"] == "3")
            #expect(head.headers.all("A") == ["1", "3"])
            #expect(head.headers["B"] == "two")
            #expect(head.headers["Empty"] == "")
            #expect(head.headers["folded"] == "x y")
            #expect(head.headers["absent"] == nil)
            #expect(head.effectiveURL == server.url("/p"))
            #expect(head.remoteAddress == "127.0.0.1")
            #expect(head.remotePort == Int(server.port))
            #expect(head.bodyFraming == .untilClose)
        }
    }

    @Test(arguments: [
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", BodyFraming.none),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", BodyFraming.none),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", BodyFraming.none),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", BodyFraming.contentLength(0)),
        ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BodyFraming.chunked),
    ])
    func headComesWithoutABody(method: String, response: String, framing: BodyFraming) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send(response)
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url(), method: method))
            #expect(outcome.end == .framed)
            #expect(record.heads.count == 1)
            #expect(record.head?.bodyFraming == framing)
            #expect(record.head?.isEndUncertain == false)
            #expect(record.body.isEmpty)
        }
    }

    /// libcurl has one code for all of these and for schemes that it does not know.
    @Test(arguments: [
        "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
        "HTTX/1.1 200 OK\r\n\r\n", "SSH-2.0-OpenSSH_9\r\n",
    ])
    func badStatusLineIsAViolation(answer: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send(answer)
            connection.finish()
            connection.waitForPeerToClose()
        } _: { loop, server in
            let kind = try await failureKind(loop, TransferRequest(url: server.url()))
            #expect(kind == "protocol violation")
        }
    }

    @Test(arguments: [(1, 120_000, "102400"), (8, 50_000, "307200")])
    func headThatIsTooLongSaysHowLongItMayBe(lines: Int, bytes: Int, limit: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            let line = "X-Long: \(String(repeating: "a", count: bytes))\r\n"
            connection.send("HTTP/1.1 200 OK\r\n\(String(repeating: line, count: lines))Content-Length: 0\r\n\r\n")
            connection.waitForPeerToClose()
        } _: { loop, server in
            let error = try await fetch(loop, TransferRequest(url: server.url())).outcome.error
            #expect(error?.kind == "protocol violation")
            #expect(error?.detail.message.contains("over \(limit) bytes") == true, "\(String(describing: error))")
        }
    }

    @Test func trailersAreNoHeaders() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
            connection.send("5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\nLocation: /elsewhere\r\n\r\n")
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.heads.count == 1)
            #expect(record.head?.headers.contains("X-Sum") == false)
            #expect(record.body == Array("hello world".utf8))
            #expect(record.misplaced == 0)
        }
    }

    @Test(arguments: [
        "Content-Length: 2\r\nContent-Length: 3\r\n", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 2, 3\r\n",
    ])
    func conflictingFramingIsVisibleAndCanBeRefused(fields: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\n\(fields)\r\nabc")
            connection.waitForPeerToClose()
        } _: { loop, server in
            let recorder = Recorder(onHead: { _ in .refuse })
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()), recorder)
            #expect(record.body.isEmpty)
            switch outcome {
            case .refused:
                let headers = record.head?.headers
                let seen = [headers?.all("Content-Length"), headers?.all("Transfer-Encoding")].flatMap { $0 ?? [] }
                #expect(seen.count == fields.split(separator: "\r\n").count)
            // libcurl itself may refuse a list that it cannot read.
            case .failed(.protocolViolation, _): #expect(record.heads.isEmpty)
            case .completed, .stopped, .cancelled, .failed: Issue.record("not refused: \(outcome)")
            }
        }
    }

    @Test func negativeLengthIsRefused() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc")
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.error?.kind == "protocol violation")
            #expect(record.body.isEmpty)
        }
    }

    @Test(arguments: ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"])
    func endlessHeadersAreCut(start: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            let again = start.hasSuffix("\r\n\r\n") ? start : "X-Filler: \(String(repeating: "x", count: 500))\r\n"
            var goesOn = connection.send(start)
            while goesOn { goesOn = connection.send(again) }
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.error?.kind == "protocol violation")
            // Code 0 is our own limit; libcurl's is higher.
            #expect(outcome.error?.detail.code == 0)
            #expect(record.heads.isEmpty)
        }
    }

    @Test(arguments: ["SSH-2.0-OpenSSH_9\r\n", "\r\n\r\n", "nonsense"])
    func whatIsNotHTTPIsAViolation(answer: String) async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send(answer)
            connection.finish()
            connection.waitForPeerToClose()
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.error?.kind == "protocol violation", "\(outcome)")
            #expect(record.heads.isEmpty && record.body.isEmpty)
        }
    }
}
