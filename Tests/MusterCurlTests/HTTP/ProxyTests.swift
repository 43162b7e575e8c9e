import FoundationEssentials
import MusterCurl
import Testing

@Suite(.timeLimit(.minutes(1)))
struct ProxyTests {
    private static let credentials = "me:s3cret%40"
    private static let decoded = "me:s3cret@"

    /// A request through the proxy. Only the proxy can know a host such as `origin.invalid`, so that nothing resolves it on this side.
    private func request(_ url: String, _ proxy: RelayProxy, _ scheme: String) -> TransferRequest {
        var request = TransferRequest(url: url)
        request.proxy = .url(proxy.url(scheme: scheme, credentials: Self.credentials))
        return request
    }

    @Test func httpGoesThroughSOCKSWithTheNameUnresolved() async throws {
        let proxy = try RelayProxy(credentials: Self.decoded)
        defer { proxy.stop() }
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty { connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }
        } _: { loop, server in
            let url = "http://origin.invalid:\(server.port)/"
            let (outcome, record) = try await fetch(loop, request(url, proxy, "socks5h"))
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.body == Array("ok".utf8))
            #expect(proxy.targets == ["origin.invalid:\(server.port)"])
        }
    }

    @Test func httpIsForwardedByAnHTTPProxy() async throws {
        try await withServer { connection, _ in
            let head = connection.readHead()
            let isRight =
                head.hasPrefix("GET http://origin.invalid/path HTTP/1.1\r\n")
                && head.contains("Proxy-Authorization: Basic bWU6czNjcmV0QA==\r\n")
            connection.send("HTTP/1.1 \(isRight ? 200 : 400) X\r\nContent-Length: 2\r\n\r\nok")
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: "http://origin.invalid/path")
            request.proxy = .url("http://\(Self.credentials)@127.0.0.1:\(server.port)")
            let (outcome, record) = try await fetch(loop, request)
            #expect(record.head?.status == 200)
            #expect(outcome.statistics.remoteAddress == "127.0.0.1")
            #expect(outcome.statistics.effectiveURL == "http://origin.invalid/path")
        }
    }

    /// No process listens at the ports. The first proxy has no address, the second refuses connections, the third URL is unusable.
    @Test(arguments: ["http://proxy.invalid:9", "http://127.0.0.1:9", "http://me:hush#hush@127.0.0.1:9"])
    func unreachableProxyIsReportedAsAProxyFailure(proxy: String) async throws {
        try await withLoop { loop in
            var request = TransferRequest(url: "http://127.0.0.1:10/")
            request.proxy = .url(proxy)
            let (outcome, _) = try await fetch(loop, request)
            guard case .failed(.proxy(let detail), _) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(!detail.message.contains("hush"))
            request.proxy = .direct
            let (direct, _) = try await fetch(loop, request)
            guard case .failed(.connect, _) = direct else {
                Issue.record("\(direct)")
                return
            }
        }
    }

    @Test(.enabled(if: Nginx.path != nil && Nginx.openssl != nil), arguments: ["http", "socks5h"])
    func httpsIsTunnelled(scheme: String) async throws {
        let proxy = try RelayProxy(credentials: Self.decoded)
        defer { proxy.stop() }
        try await withNginx(tls: true) { loop, nginx in
            var request = request(nginx.url("/small"), proxy, scheme)
            request.caFile = nginx.certificate
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.heads.count == 1)
            #expect(record.head?.headers.contains("X-Proxy") == false)
            #expect(record.body == Array("small body\n".utf8))
            #expect(proxy.targets == ["localhost:\(nginx.port)"])
        }
    }

    @Test(.enabled(if: FTPServer.obstacle == nil), arguments: ["http", "socks5h"])
    func bothConnectionsOfFTPAreTunnelled(scheme: String) async throws {
        let proxy = try RelayProxy(credentials: Self.decoded)
        defer { proxy.stop() }
        try await withFTPServer { loop, server in
            try server.write(patternBytes(1000), to: "file")
            var request = server.request("/file")
            request.proxy = .url(proxy.url(scheme: scheme, credentials: Self.credentials))
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(record.head?.status == 200)
            #expect(isSame(record.body, patternBytes(1000)))
            #expect(proxy.targets.count == 2)
        }
    }

    @Test(.enabled(if: SSHServer.obstacle == nil), arguments: ["http", "socks5h"])
    func sftpIsTunnelled(scheme: String) async throws {
        let proxy = try RelayProxy(credentials: Self.decoded)
        defer { proxy.stop() }
        try await withSSHServer { loop, server in
            try server.write(patternBytes(1000), to: "file")
            var request = server.request("file")
            request.proxy = .url(proxy.url(scheme: scheme, credentials: Self.credentials))
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.end == .framed, "\(outcome)")
            #expect(isSame(record.body, patternBytes(1000)))
            #expect(proxy.targets == ["localhost:\(server.port)"])
        }
    }

    @Test func refusalByTheProxyFailsAndTellsNoCredentials() async throws {
        let proxy = try RelayProxy(credentials: "other:word")
        defer { proxy.stop() }
        try await withLoop { loop in
            let (outcome, record) = try await fetch(loop, request("https://origin.invalid/", proxy, "socks5h"))
            #expect(outcome.error?.kind == "proxy failed", "\(outcome)")
            #expect(!"\(outcome)".contains("s3cret"))
            #expect(record.heads.isEmpty)
        }
    }

    @Test(arguments: ["https", "ftp"])
    func tunnelThatWantsCredentialsIsRefusedLikeAnyOtherRequest(scheme: String) async throws {
        let proxy = try RelayProxy(credentials: "other:word")
        defer { proxy.stop() }
        try await withLoop { loop in
            for isAccepted in [false, true] {
                var request = request("\(scheme)://origin.invalid/file", proxy, "http")
                request.allowedSchemes = [scheme]
                let recorder = Recorder(onHead: { _ in isAccepted ? .accept(limit: nil) : .refuse })
                let (outcome, record) = try await fetch(loop, request, recorder)
                #expect(record.heads.map(\.status) == [407], "\(outcome)")
                #expect(outcome.error == nil)
                #expect(record.body.isEmpty)
                #expect(!"\(outcome)\(record.heads)".contains("s3cret"))
            }
        }
    }

    @Test(arguments: [
        "nope://me:s3cret@127.0.0.1:1", "http://me:s3cret@127.0.0.1:99999", "http://me:s3cret@127.0.0.1:1/",
        "socks5h://me:s3cret@[::1", "http://me:s3cret@no host", "me:s3cret@127.0.0.1:1",
    ])
    func messagesTellNoCredentialsOfTheProxy(proxy: String) async throws {
        try await withLoop { loop in
            var request = TransferRequest(url: "http://user:s3cret@127.0.0.1:1/")
            request.proxy = .url(proxy)
            let outcome = try await fetch(loop, request).outcome
            #expect(outcome.error != nil)
            #expect(!"\(outcome)".contains("s3cret"), "\(outcome)")
        }
    }

    @Test func addressOfTheProxyIsChecked() async throws {
        let proxy = try RelayProxy()
        defer { proxy.stop() }
        try await withLoop { loop in
            var request = TransferRequest(url: "http://origin.invalid/")
            request.proxy = .url(proxy.url(scheme: "socks5h"))
            request.addressAllowed = { $0 != "127.0.0.1" }
            let kind = try await failureKind(loop, request)
            #expect(kind == "refused address")
            #expect(proxy.targets.isEmpty)
        }
    }
}
