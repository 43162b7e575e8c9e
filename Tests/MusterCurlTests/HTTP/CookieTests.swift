import FoundationEssentials
import MusterCurl
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct CookieTests {
    /// A server that records every request and answers it with `answer(path)`.
    private func withOrigin(
        _ answer: @escaping @Sendable (_ path: String) -> String,
        _ body: (CurlLoop, RawServer, _ heads: () -> [String]) async throws -> Void
    ) async throws {
        let seen = Seen()
        try await withServer { connection, _ in
            while true {
                let head = connection.readHead()
                if head.isEmpty { return }
                seen.heads.withLock { $0.append(head) }
                let path = String(head.split(separator: " ")[1])
                connection.send("HTTP/1.1 \(answer(path))\r\nContent-Length: 0\r\n\r\n")
            }
        } _: { loop, server in
            try await body(loop, server) {
                seen.heads.withLock { heads in
                    defer { heads = [] }
                    return heads
                }
            }
        }
    }

    private final class Seen: Sendable {
        let heads = Mutex<[String]>([])
    }

    private func cookies(_ heads: [String]) -> [String] {
        heads.map { head in
            let lines = head.split(separator: "\r\n").filter { $0.hasPrefix("Cookie: ") }
            return lines.map { String($0.dropFirst(8)) }.joined(separator: "|")
        }
    }

    @Test func cookiesOfTheCallerStayWithTheFirstOrigin() async throws {
        try await withOrigin({ _ in "200 OK" }) { loop, target, atTarget in
            let there = target.url("/there")
            try await withOrigin({ $0 == "/1" ? "302 Go\r\nLocation: /2" : "302 Go\r\nLocation: \(there)" }) {
                _,
                origin,
                atOrigin in
                var request = TransferRequest(url: origin.url("/1"))
                request.cookies = "sid=s3cret; b=2"
                for _ in 0..<2 {
                    let end = try await bodyEnd(loop, request)
                    #expect(end == .framed)
                    #expect(cookies(atOrigin()) == ["sid=s3cret; b=2", "sid=s3cret; b=2"])
                    #expect(cookies(atTarget()) == [""])
                }
            }
        }
    }

    @Test func cookiesSetOnTheWayLastForOneTransfer() async throws {
        let answer: @Sendable (String) -> String = { path in
            path == "/1" ? "302 Go\r\nSet-Cookie: sid=1\r\nLocation: /2" : "200 OK\r\nSet-Cookie: late=1"
        }
        try await withOrigin(answer) { loop, server, heads in
            var request = TransferRequest(url: server.url("/1"))
            request.cookies = "mine=1"
            for _ in 0..<3 {
                let end = try await bodyEnd(loop, request)
                #expect(end == .framed)
                #expect(cookies(heads()) == ["mine=1", "sid=1; mine=1"])
            }
        }
    }

    @Test func cookiesOfAFileAreSentToTheirHostAlone() async throws {
        let folder = try TemporaryFolder("cookies")
        defer { folder.remove() }
        let lines = ["127.0.0.1\tFALSE\t/\tFALSE\t0\tfromfile\t1", "elsewhere.invalid\tFALSE\t/\tFALSE\t0\tother\t1"]
        try folder.write("# Netscape HTTP Cookie File\n\(lines.joined(separator: "\n"))\n".utf8, to: "jar")
        try await withOrigin({ _ in "200 OK" }) { loop, server, heads in
            var request = TransferRequest(url: server.url("/"))
            request.cookieFile = folder.path + "/jar"
            let first = try await bodyEnd(loop, request)
            #expect(first == .framed)
            #expect(cookies(heads()) == ["fromfile=1"])
            // The handle is used again, its cookies are not.
            let second = try await bodyEnd(loop, TransferRequest(url: server.url("/")))
            #expect(second == .framed)
            #expect(cookies(heads()) == [""])
            request.cookieFile = folder.path + "/absent"
            let kind = try await failureKind(loop, request)
            #expect(kind == "invalid request")
        }
    }

    @Test func netrcCredentialsAreSentToTheirHostAlone() async throws {
        let folder = try TemporaryFolder("netrc")
        defer { folder.remove() }
        try folder.write("machine 127.0.0.1 login me password pass\n".utf8, to: "netrc", mode: 0o600)
        try await withOrigin({ $0 == "/1" ? "302 Go\r\nLocation: /2" : "200 OK" }) { loop, server, heads in
            var request = TransferRequest(url: server.url("/1"))
            request.netrcFile = folder.path + "/netrc"
            let known = try await bodyEnd(loop, request)
            #expect(known == .framed)
            #expect(heads().map { $0.contains("Authorization: Basic bWU6cGFzcw==\r\n") } == [true, true])
            // The caller's credentials take precedence over the netrc file.
            request.credentials = "you:pass"
            let given = try await bodyEnd(loop, request)
            #expect(given == .framed)
            #expect(heads().map { $0.contains("Authorization: Basic eW91OnBhc3M=\r\n") } == [true, true])
            request.credentials = nil
            request.url = "http://localhost:\(server.port)/1"
            let unknown = try await bodyEnd(loop, request)
            #expect(unknown == .framed)
            #expect(heads().map { $0.contains("Authorization") } == [false, false])
            request.netrcFile = folder.path + "/absent"
            let kind = try await failureKind(loop, request)
            #expect(kind == "invalid request")
        }
    }

    /// The redirects go https → https → http → http, all at one host. The cookie that it sets is not marked as Secure.
    @Test(.enabled(if: Nginx.path != nil && Nginx.openssl != nil))
    func nothingSecretGoesFromHTTPSToHTTP() async throws {
        let folder = try TemporaryFolder("netrc")
        defer { folder.remove() }
        try folder.write("machine localhost login me password s3cret\n".utf8, to: "netrc", mode: 0o600)
        try folder.write("localhost\tFALSE\t/\tFALSE\t0\tfromfile\ts3cret\n".utf8, to: "jar")
        try await withOrigin({ $0 == "/3" ? "302 Go\r\nSet-Cookie: plain=1\r\nLocation: /4" : "200 OK" }) {
            loop,
            server,
            heads in
            let locations = """
                location /1 { add_header Set-Cookie "sid=s3cret; Path=/" always; return 302 /2; }
                location /2 {
                    add_header X-Seen "$http_cookie $http_authorization" always;
                    if ($http_cookie !~ "sid=s3cret") { return 400; }
                    return 302 http://localhost:\(server.port)/3;
                }
                """
            let nginx = try Nginx(tls: true, locations: locations)
            defer { nginx.stop() }
            var request = TransferRequest(url: nginx.url("/1"))
            request.caFile = nginx.certificate
            var variants = [request, request, request, request]
            variants[0].netrcFile = folder.path + "/netrc"
            variants[1].credentials = "me:s3cret"
            variants[2].headers = ["Authorization": "Bearer s3cret", "Cookie": "own=s3cret"]
            variants[3].cookies = "own=s3cret"
            for var variant in variants {
                variant.cookieFile = folder.path + "/jar"
                let (outcome, record) = try await fetch(loop, variant)
                #expect(outcome.end == .framed, "\(outcome)")
                #expect(record.head?.status == 200)
                #expect(record.head?.redirectCount == 3)
                let seen = heads()
                #expect(seen.count == 2)
                #expect(seen.allSatisfy { !$0.contains("s3cret") && !$0.contains("Authorization") }, "\(seen)")
                // A cookie that was set over http is sent over http.
                #expect(cookies(seen) == ["", "plain=1"])
            }
        }
    }
}
