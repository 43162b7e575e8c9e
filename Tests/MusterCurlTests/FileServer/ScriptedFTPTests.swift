import MusterCurl
import Synchronization
import Testing

/// Misbehaviour of FTP servers.
@Suite(.timeLimit(.minutes(1)))
struct ScriptedFTPTests {
    private static let content = patternBytes(1000)

    private func fetch(
        _ server: ScriptedFTP,
        range: RangeSpec? = nil,
        _ recorder: Recorder = Recorder()
    ) async throws -> (outcome: TransferOutcome, record: Recorder.Record) {
        defer { server.stop() }
        var request = TransferRequest(url: server.url, range: range)
        request.allowedSchemes = ["ftp"]
        request.firstByteTimeout = .seconds(5)
        return try await withLoop { try await MusterCurlTests.fetch($0, request, recorder) }
    }

    @Test(arguments: ["226 done", "426 cut", "451 alas"])
    func bodyShorterThanTheSizeIsTruncated(end: String) async throws {
        let server = try ScriptedFTP(content: Self.content, replies: ["SIZE": "213 1001"], end: end)
        let (outcome, record) = try await fetch(server)
        #expect(outcome.error?.kind == "truncated", "\(outcome)")
        #expect(record.head?.bodyFraming == .contentLength(1001))
        #expect(isSame(record.body, Self.content))
    }

    @Test func wholeFileNeedsNoFinalReply() async throws {
        let (outcome, record) = try await fetch(try ScriptedFTP(content: Self.content, end: nil))
        #expect(outcome.end == .framed, "\(outcome)")
        #expect(isSame(record.body, Self.content))
    }

    @Test func emptyBodyInsteadOfTheFileIsTruncated() async throws {
        let (outcome, record) = try await fetch(try ScriptedFTP(content: [], replies: ["SIZE": "213 1000"]))
        #expect(outcome.error?.kind == "truncated", "\(outcome)")
        // The head is delivered even without a byte of the body, as for a body that breaks off, so that each try reports the same file.
        #expect(record.head?.headers["Content-Length"] == "1000")
    }

    /// The request starts at the last byte. The server accepts REST, and then sends 1, 0 or 1000 bytes.
    @Test(arguments: [(1, 1), (0, 0), (1000, nil)] as [(Int, Int64?)])
    func transferThatReadsToTheEndIsNotCutAtTheSize(sent: Int, delivered: Int64?) async throws {
        let commands = Mutex<[String]>([])
        let server = try ScriptedFTP(
            content: Array(Self.content.prefix(sent)), replies: ["SIZE": "213 1000"]
        ) { command in commands.withLock { $0.append(command) } }
        defer { server.stop() }
        var request = TransferRequest(url: server.url, range: RangeSpec(first: 999, last: nil))
        request.allowedSchemes = ["ftp"]
        request.readsToEnd = true
        let recorder = Recorder(onHead: { _ in .accept(limit: 2) })
        let (outcome, record) = try await withLoop { try await MusterCurlTests.fetch($0, request, recorder) }
        #expect(record.head?.status == 206)
        #expect(outcome.end == (delivered == nil ? .surplus : .connectionClosed), "\(outcome)")
        if let delivered { #expect(outcome.statistics.bytesDelivered == delivered) }
        #expect(commands.withLock { $0.filter { $0 != "QUIT" }.suffix(2) } == ["REST 999", "RETR file"])
    }

    @Test func serverWithoutRESTIsStatus200WhenReadingToTheEnd() async throws {
        let server = try ScriptedFTP(content: Self.content, replies: ["REST": "502 what?"])
        defer { server.stop() }
        var request = TransferRequest(url: server.url, range: RangeSpec(first: 999, last: nil))
        request.allowedSchemes = ["ftp"]
        request.readsToEnd = true
        let recorder = Recorder(onHead: { _ in .refuse })
        let (_, record) = try await withLoop { try await MusterCurlTests.fetch($0, request, recorder) }
        #expect(record.head?.status == 200)
        #expect(record.body.isEmpty)
    }

    @Test(arguments: [("504 no such type", "protocol violation"), ("421 bye", nil)] as [(String, String?)])
    func refusedBinaryTypeIsAViolationUnlessTheServerIsBusy(reply: String, kind: String?) async throws {
        let (outcome, _) = try await fetch(try ScriptedFTP(content: Self.content, replies: ["TYPE": reply]))
        #expect(outcome.error?.kind == kind, "\(outcome)")
    }

    @Test func surplusBehindTheSizeIsCut() async throws {
        let (outcome, record) = try await fetch(try ScriptedFTP(content: Self.content, replies: ["SIZE": "213 999"]))
        #expect(outcome.statistics.bytesDelivered == 999)
        #expect(isSame(record.body, Self.content.dropLast()))
    }

    /// Servers that count in 32 bits state such sizes; libcurl drops the sign and cuts the whole file there.
    @Test(arguments: ["-1", "-1294967296"]) func negativeSizeIsAProtocolViolation(size: String) async throws {
        let (outcome, record) = try await fetch(
            try ScriptedFTP(content: Self.content, replies: ["SIZE": "213 \(size)"]))
        #expect(outcome.error?.kind == "protocol violation", "\(outcome)")
        #expect(record.body.isEmpty && record.heads.isEmpty)
    }

    @Test func wholeFileOfUnknownSizeEndsWithItsConnection() async throws {
        let server = try ScriptedFTP(content: Self.content, replies: ["SIZE": "502 what?", "MDTM": "502 what?"])
        let (outcome, record) = try await fetch(server)
        #expect(outcome.end == .connectionClosed, "\(outcome)")
        #expect(record.head?.status == 200)
        #expect(record.head?.headers == [])
        #expect(record.head?.bodyFraming == .untilClose)
        #expect(isSame(record.body, Self.content))
    }

    /// The number in the reply to RETR may be the size of the whole file or of the rest; only the server knows which.
    @Test(arguments: ["150 here it comes", "150 here it comes (1000 bytes)", "150 here it comes (993 bytes)"])
    func partOfAFileOfUnknownSizeIsNeverDelivered(reply: String) async throws {
        for isAccepted in [false, true] {
            let replies = ["SIZE": "502 what?", "RETR": reply]
            let recorder = Recorder(onHead: { _ in isAccepted ? .accept(limit: nil) : .refuse })
            let server = try ScriptedFTP(content: Self.content, replies: replies)
            let (outcome, record) = try await fetch(server, range: RangeSpec(first: 7, last: nil), recorder)
            #expect(record.head?.status == 200)
            #expect(record.head?.headers.contains("Content-Range") == false)
            #expect(record.body.isEmpty)
            #expect(outcome.end == nil)
        }
    }

    @Test func serverWithoutRESTIsLikeOneThatIgnoresRange() async throws {
        let server = try ScriptedFTP(content: Self.content, replies: ["REST": "502 what?"])
        let recorder = Recorder(onHead: { _ in .refuse })
        let (outcome, record) = try await fetch(server, range: RangeSpec(first: 7, last: nil), recorder)
        guard case .refused = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(record.head?.status == 200)
        #expect(record.head?.headers["Content-Length"] == "1000")
    }

    @Test(arguments: [("", "421 too many"), ("PASS", "421 too many"), ("RETR", "450 later"), ("RETR", "421 bye")])
    func busyServerIsStatus503(command: String, reply: String) async throws {
        let server = try ScriptedFTP(
            content: Self.content,
            greeting: command.isEmpty ? reply : "220 here",
            replies: command.isEmpty ? [:] : [command: reply]
        )
        let (outcome, record) = try await fetch(server)
        #expect(outcome.end == .framed, "\(outcome)")
        #expect(record.head?.status == 503)
    }

    @Test func silenceInsteadOfAReplyIsAFirstByteTimeout() async throws {
        let server = try ScriptedFTP(content: Self.content, replies: ["RETR": ""])
        defer { server.stop() }
        var request = TransferRequest(url: server.url)
        request.allowedSchemes = ["ftp"]
        request.firstByteTimeout = .milliseconds(200)
        let kind = try await withLoop { try await failureKind($0, request) }
        #expect(kind == "first-byte timeout")
    }

    @Test func connectionThatIsOutOfStepIsNotUsedAgain() async throws {
        let server = try ScriptedFTP(
            content: Self.content, replies: ["EPSV": "200 no\r\n200 and no", "PASV": "502 what?"])
        defer { server.stop() }
        var request = TransferRequest(url: server.url)
        request.allowedSchemes = ["ftp"]
        try await withLoop { loop in
            for _ in 0..<2 {
                let outcome = try await MusterCurlTests.fetch(loop, request).outcome
                #expect(outcome.error != nil)
                #expect(!outcome.statistics.connectionReused)
            }
        }
    }

    @Test func pathCannotSayAnotherCommand() async throws {
        let commands = Mutex<[String]>([])
        let server = try ScriptedFTP(content: Self.content) { command in commands.withLock { $0.append(command) } }
        defer { server.stop() }
        var request = TransferRequest(url: server.url + "%0d%0aDELE%20x")
        request.allowedSchemes = ["ftp"]
        let kind = try await withLoop { try await failureKind($0, request) }
        #expect(kind == "malformed URL")
        #expect(commands.withLock { !$0.contains { $0.hasPrefix("DELE") } })
    }
}
