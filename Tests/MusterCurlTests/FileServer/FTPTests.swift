import MusterCurl
import Synchronization
import Testing

@Suite(.enabled(if: FTPServer.obstacle == nil, Comment(rawValue: FTPServer.obstacle ?? "")), .timeLimit(.minutes(1)))
struct FTPTests {
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    @Test(arguments: [false, true])
    func wholeFileComesWithSizeAndModificationTime(tls: Bool) async throws {
        let content = patternBytes(1_000_003)
        try await withFTPServer(tls: tls) { loop, server in
            try server.write(content, to: "sub/a file")
            let request = server.request("/sub/a%20file")
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.end == .framed, "\(outcome)")
            let head = try #require(record.head)
            #expect(head.status == 200)
            #expect(head.version == .notHTTP)
            #expect(head.headers["Content-Length"] == "1000003")
            #expect(head.headers["Last-Modified"] == Self.date)
            #expect(!head.headers.contains("Content-Range"))
            #expect(head.bodyFraming == .contentLength(1_000_003))
            #expect(head.effectiveURL == request.url)
            #expect(head.remoteAddress == "127.0.0.1")
            #expect(isSame(record.body, content))
            #expect(record.heads.count == 1 && record.misplaced == 0)
        }
    }

    @Test(arguments: [false, true])
    func rangesAreThoseOfTheFile(tls: Bool) async throws {
        let content = patternBytes(500_001)
        let last = Int64(content.count - 1)
        try await withFTPServer(tls: tls) { loop, server in
            try server.write(content, to: "file")
            let ranges: [(Int64, Int64?)] = [
                (0, 0), (0, 999), (1, 65536), (400_000, nil), (last, last), (0, last), (0, nil), (7, last + 1000),
            ]
            for (first, end) in ranges {
                let request = server.request("/file", range: RangeSpec(first: first, last: end))
                let (outcome, record) = try await fetch(loop, request)
                let until = min(end ?? last, last)
                #expect(outcome.end == .framed, "\(outcome)")
                #expect(record.head?.status == 206)
                #expect(record.head?.headers["Content-Range"] == "bytes \(first)-\(until)/\(content.count)")
                #expect(record.head?.headers["Last-Modified"] == Self.date)
                #expect(record.head?.bodyFraming == .contentLength(until - first + 1))
                #expect(isSame(record.body, content[Int(first)...Int(until)]))
                #expect(outcome.statistics.bytesDelivered == until - first + 1)
            }
        }
    }

    @Test(arguments: [(10, 10), (10, 11), (10, 500), (0, 0)])
    func rangeAtOrBehindTheEndIsNotSatisfiable(size: Int, first: Int64) async throws {
        try await withFTPServer { loop, server in
            try server.write(patternBytes(size), to: "file")
            let request = server.request("/file", range: RangeSpec(first: first, last: nil))
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.head?.status == 416)
            #expect(record.head?.headers["Content-Range"] == "bytes */\(size)")
            #expect(record.body.isEmpty)
        }
    }

    @Test func emptyFileIsAnEmptyFile() async throws {
        try await withFTPServer { loop, server in
            try server.write([], to: "file")
            let (outcome, record) = try await fetch(loop, server.request("/file"))
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.head?.status == 200)
            #expect(record.head?.bodyFraming == .contentLength(0))
            #expect(record.head?.headers["Last-Modified"] == Self.date)
        }
    }

    @Test func limitBelowTheRangeIsASurplus() async throws {
        let content = patternBytes(300_000)
        try await withFTPServer { loop, server in
            try server.write(content, to: "file")
            for limit in [0, 1, 99_999] as [Int64] {
                let request = server.request("/file", range: RangeSpec(first: 1000, last: 200_000))
                let recorder = Recorder(onHead: { _ in .accept(limit: limit) })
                let (outcome, record) = try await fetch(loop, request, recorder)
                #expect(outcome.end == .surplus)
                #expect(isSame(record.body, content[1000..<(1000 + Int(limit))]))
            }
        }
    }

    @Test(arguments: [("/absent", 404), ("/no/such/folder/file", 404), ("/hidden", 403)])
    func refusedFileIsAnOrdinaryStatus(path: String, status: Int) async throws {
        try await withFTPServer { loop, server in
            try server.write(patternBytes(10), to: "hidden", mode: 0o600)
            let refused = try await fetch(loop, server.request(path), Recorder(onHead: { _ in .refuse }))
            guard case .refused = refused.outcome else {
                Issue.record("\(refused.outcome)")
                return
            }
            #expect(refused.record.head?.status == status)
            let (outcome, record) = try await fetch(loop, server.request(path))
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.head?.status == status)
            #expect(record.body.isEmpty && record.misplaced == 0)
        }
    }

    @Test func deniedLoginIsStatus401AndTellsNoPassword() async throws {
        try await withFTPServer { loop, server in
            try server.write(patternBytes(10), to: "file")
            var request = server.request("/file")
            request.credentials = "ftp:wrong"
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.head?.status == 401)
            request.credentials = nil
            request.url = request.url.replacing("ftp://", with: "ftp://someone:s3cret@")
            let second = try await fetch(loop, request)
            #expect(second.record.head?.status == 401, "\(second.outcome)")
            #expect(second.record.head?.effectiveURL == server.request("/file").url)
            #expect(second.outcome.statistics.effectiveURL == server.request("/file").url)
        }
    }

    @Test func severalFilesShareAConnection() async throws {
        try await withFTPServer { loop, server in
            for number in 0..<5 { try server.write(patternBytes(1000, seed: UInt64(number)), to: "file\(number)") }
            for number in 0..<5 {
                let (outcome, record) = try await fetch(loop, server.request("/file\(number)"))
                #expect(outcome.end == .framed)
                #expect(isSame(record.body, patternBytes(1000, seed: UInt64(number))))
                #expect(outcome.statistics.connectionReused == (number > 0))
            }
            #expect(server.acceptedConnections == 1)
        }
    }

    @Test func untrustedCertificateOfAnFTPServerFailsAsTLS() async throws {
        try await withFTPServer(tls: true) { loop, server in
            try server.write(patternBytes(10), to: "file")
            var request = server.request("/file")
            request.caFile = nil
            let kind = try await failureKind(loop, request)
            #expect(kind == "TLS failed")
        }
    }

    @Test func dataThatCannotBeProtectedAreNotFetched() async throws {
        try await withFTPServer(tls: true, settings: "force_anon_data_ssl=NO\ncmds_denied=PROT") { loop, server in
            try server.write(patternBytes(10), to: "file")
            let kind = try await failureKind(loop, server.request("/file"))
            #expect(kind == "TLS failed")
        }
    }

    @Test func statedForeignAddressIsNotConnectedTo() async throws {
        let settings = "pasv_address=127.9.9.9\ncmds_denied=EPSV"
        try await withFTPServer(settings: settings) { loop, server in
            try server.write(patternBytes(1000), to: "file")
            let asked = Mutex<[String]>([])
            var request = server.request("/file")
            request.addressAllowed = { address in
                asked.withLock { $0.append(address) }
                return address == "127.0.0.1"
            }
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(isSame(record.body, patternBytes(1000)))
            #expect(asked.withLock { Set($0.filter { $0 != "::1" }) } == ["127.0.0.1"])
        }
    }

    @Test func addressOfTheDataConnectionIsCheckedToo() async throws {
        try await withFTPServer { loop, server in
            try server.write(patternBytes(1000), to: "file")
            var request = server.request("/file")
            request.url = request.url.replacing("localhost", with: "127.0.0.1")
            let asked = Mutex(0)
            // The check runs for the control connection's socket, for the login on it, and then for the data connection's socket.
            request.addressAllowed = { _ in
                asked.withLock { asked in
                    asked += 1
                    return asked <= 2
                }
            }
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.error?.kind == "refused address", "\(outcome)")
            #expect(record.heads.isEmpty)
        }
    }

    @Test(arguments: ["/", "", "/sub/", "/file;type=a", "/file;type=d", "/sub/?x=file"])
    func pathThatNamesNoFileIsNotRequested(path: String) async throws {
        try await withFTPServer { loop, server in
            let kind = try await failureKind(loop, server.request(path))
            #expect(kind == "invalid request")
            #expect(server.acceptedConnections == 0)
        }
    }

    @Test(arguments: ["HEAD", "PUT", "POST"])
    func methodsOtherThanGETAreRefused(method: String) async throws {
        try await withFTPServer { loop, server in
            var request = server.request("/file")
            request.method = method
            let kind = try await failureKind(loop, request)
            #expect(kind == "invalid request")
            #expect(server.acceptedConnections == 0)
        }
    }
}
