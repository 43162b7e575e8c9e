import MusterCurl
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct RedirectTests {
    @Test(arguments: [301, 302, 303, 307, 308])
    func chainIsFollowedAndOnlyTheLastHeadIsShown(status: Int) async throws {
        try await withServer { connection, _ in
            while true {
                let head = connection.readHead()
                if head.isEmpty { return }
                if head.hasPrefix("GET /end ") {
                    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-End: 1\r\n\r\nend")
                } else {
                    let next = head.hasPrefix("GET /1 ") ? "/2" : "/end"
                    connection.send(
                        "HTTP/1.1 \(status) Go\r\nLocation: \(next)\r\nX-Hop: 1\r\nContent-Length: 4\r\n\r\nhop!"
                    )
                }
            }
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url("/1")))
            #expect(outcome.end == .framed)
            #expect(record.heads.count == 1)
            #expect(record.head?.headers.contains("X-Hop") == false)
            #expect(record.head?.redirectCount == 2)
            #expect(record.head?.effectiveURL == server.url("/end"))
            #expect(record.body == Array("end".utf8))
            #expect(server.acceptedConnections == 1)
        }
    }

    /// libcurl itself resolves names below localhost to the loopback address.
    @Test func internationalNamesAreAskedForInPunycode() async throws {
        try await withServer { connection, _ in
            let head = connection.readHead()
            let isRight = head.lowercased().contains("\r\nhost: xn--bcher-kva.localhost:")
            connection.send("HTTP/1.1 \(isRight ? 200 : 400) X\r\nContent-Length: 0\r\n\r\n")
            connection.waitForPeerToClose()
        } _: { loop, server in
            let request = TransferRequest(url: "http://bücher.localhost:\(server.port)/")
            let (outcome, record) = try await fetch(loop, request)
            #expect(record.head?.status == 200, "\(outcome)")
        }
    }

    @Test func redirectIsTheFinalResponseWhenNoneIsToBeFollowed() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 302 Go\r\nLocation: /2\r\nContent-Length: 4\r\n\r\nhop!")
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: server.url("/1"))
            request.maxRedirects = 0
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.end == .framed)
            #expect(record.head?.status == 302)
            #expect(record.body == Array("hop!".utf8))
        }
    }

    @Test func loopOfRedirectsFails() async throws {
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty {
                connection.send("HTTP/1.1 302 Go\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")
            }
        } _: { loop, server in
            let (outcome, record) = try await fetch(loop, TransferRequest(url: server.url()))
            #expect(outcome.error?.kind == "too many redirects")
            #expect(outcome.statistics.redirectCount == 10)
            #expect(record.heads.isEmpty)
        }
    }

    @Test(arguments: [
        "file:///etc/passwd", "ftp://127.0.0.1:1/x", "sftp://127.0.0.1:1/x", "gopher://127.0.0.1/", "nope://127.0.0.1/",
        "mailto:a@example.org",
    ])
    func otherSchemesAreNotFollowed(location: String) async throws {
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty {
                connection.send("HTTP/1.1 302 Go\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n")
            }
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            for schemes in [["http", "https"], ["http", "https", "ftp", "ftps", "sftp"]] {
                request.allowedSchemes = schemes
                let (outcome, record) = try await fetch(loop, request)
                let text = outcome.error.map { "\($0)" } ?? ""
                #expect(
                    text.hasPrefix("unsupported scheme: a redirect leads to a scheme that is not followed"),
                    "\(outcome)")
                #expect(!location.hasPrefix("file:") || text.hasSuffix(": file"), "\(text)")
                #expect(record.heads.isEmpty)
            }
        }
    }

    @Test func secretsDoNotCrossOrigins() async throws {
        let seen = Mutex<[String]>([])
        try await withServer { connection, _ in
            while true {
                let head = connection.readHead()
                if head.isEmpty { return }
                seen.withLock { $0.append(head) }
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
        } _: { loop, target in
            let origin = try RawServer { connection, _ in
                while true {
                    let head = connection.readHead()
                    if head.isEmpty { return }
                    seen.withLock { $0.append(head) }
                    let next = head.hasPrefix("GET /1 ") ? "/2" : target.url("/3")
                    connection.send("HTTP/1.1 302 Go\r\nLocation: \(next)\r\nContent-Length: 0\r\n\r\n")
                }
            }
            defer { origin.stop() }
            var request = TransferRequest(
                url: origin.url("/1"),
                headers: ["Authorization": "Bearer s3cret", "Cookie": "sid=s3cret", "X-Plain": "kept"]
            )
            request.userAgent = "own/1"
            request.originHeaders = ["X-Api-Key": "k3y", "User-Agent": "callers/1"]
            let firstEnd = try await bodyEnd(loop, request)
            #expect(firstEnd == .framed)
            let heads = seen.withLock { $0 }
            #expect(heads.count == 3)
            // The second hop is of the same origin, the third is not: another port is another origin.
            #expect(heads.map { $0.contains("Bearer s3cret") } == [true, true, false])
            #expect(heads.map { $0.contains("sid=s3cret") } == [true, true, false])
            #expect(heads.map { $0.contains("X-Plain: kept") } == [true, true, true])
            #expect(heads.map { $0.contains("X-Api-Key: k3y") } == [true, true, false])
            #expect(heads.map { $0.contains("User-Agent: callers/1") } == [true, true, false])
            #expect(heads[2].contains("User-Agent: own/1"))

            seen.withLock { $0 = [] }
            request.trustsRedirects = true
            request.headers = ["Authorization": "Bearer s3cret"]
            request.cookies = "trusted=1"
            let trustingEnd = try await bodyEnd(loop, request)
            #expect(trustingEnd == .framed)
            for field in ["X-Api-Key: k3y", "Bearer s3cret", "trusted=1", "User-Agent: callers/1"] {
                #expect(seen.withLock { $0.map { $0.contains(field) } } == [true, true, true], "\(field)")
            }
            request.trustsRedirects = false
            request.cookies = nil
            request.originHeaders = []

            seen.withLock { $0 = [] }
            request.headers = []
            request.credentials = "user:s3cret"
            let secondEnd = try await bodyEnd(loop, request)
            #expect(secondEnd == .framed)
            #expect(seen.withLock { $0.map { $0.contains("Authorization: Basic ") } } == [true, true, false])
        }
    }

    @Test func endlessBodyOfARedirectEnds() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            var goesOn = connection.send("HTTP/1.1 302 Go\r\nLocation: /2\r\nTransfer-Encoding: chunked\r\n\r\n")
            while goesOn { goesOn = connection.send("4\r\nmore\r\n") }
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.firstByteTimeout = .milliseconds(200)
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.error?.kind == "first-byte timeout", "\(outcome)")
            #expect(record.heads.isEmpty && record.body.isEmpty)
        }
    }

    @Test func targetOfARedirectIsCheckedBeforeItIsFollowed() async throws {
        let asked = Mutex<[String]>([])
        try await withServer { connection, _ in
            while !connection.readHead().isEmpty {
                connection.send("HTTP/1.1 302 Go\r\nLocation: //127.0.0.1:1/there\r\nContent-Length: 0\r\n\r\n")
            }
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.redirectAllowed = { url in
                asked.withLock { $0.append(url) }
                return false
            }
            let (outcome, record) = try await fetch(loop, request)
            #expect(outcome.error?.kind == "refused redirect", "\(outcome)")
            #expect(record.heads.isEmpty)
            #expect(asked.withLock { $0 } == ["http://127.0.0.1:1/there"])
        }
    }

    @Test func refusedAddressIsNotConnectedTo() async throws {
        try await withServer { connection, _ in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            connection.waitForPeerToClose()
        } _: { loop, server in
            var request = TransferRequest(url: server.url())
            request.addressAllowed = { $0 != "127.0.0.1" }
            let firstKind = try await failureKind(loop, request)
            #expect(firstKind == "refused address")
            #expect(server.acceptedConnections == 0)
            // The check also applies to a kept connection that another request was allowed to open.
            let free = TransferRequest(url: server.url())
            let secondEnd = try await bodyEnd(loop, free)
            #expect(secondEnd == .framed)
            let thirdKind = try await failureKind(loop, request)
            #expect(thirdKind == "refused address")
            #expect(server.acceptedConnections == 1)
        }
    }
}
