import MusterAPI
import MusterCore
import MusterTestSupport
import Testing

extension Row {
    /// Rows 14 to 26: ends of bodies, redirects, signed URLs, limits, statuses.
    static let second: [Row] = [
        // Over HTTP/2 a proper end can't be told from a reset without an error, so HTTP/1.1 is asked, where there is one.
        Row(14, "no length, but a proper end", on: [.plain, .tls, .h2]) {
            $0.file((.ignoreRange, .always), (.chunked, .always))
        },
        Row(14, "no length, and once no end", on: [.plain, .tls, .h2]) {
            $0.file(
                (.ignoreRange, .always), (.chunkedUnterminated(afterBytes: 1_000), .first(1)), (.chunked, .after(1)))
        },
        Row(14, "the end of the connection is the end, and nothing else tells", on: [.plain, .tls]) {
            $0.file((.ignoreRange, .always), (.closeDelimited, .always)).checking { task, requests in
                // Two whole reads that agree.
                #expect(requests.count == 2 && task.attempts == 0)
            }
        },
        Row(14, "the end of the connection is the end, and the size is known", on: [.plain, .tls]) {
            $0.file((.ignoreRange, .always), (.closeDelimited, .always)).with { $0.task.size = Stage.size }
        },
        Row(15, "closes cleanly, but short") { stage in
            // Two endings within one chunk would be looked into (adr/0028), which costs a plain GET.
            stage.file((.truncated(afterBytes: 500_000), .first(1))).checking { task, _ in
                // It goes on from the durable offset: nothing is fetched twice.
                #expect(stage.origin.bytesSent(stage.path) <= Stage.size + 262_144)
                #expect(task.contentVersion == 1)
            }
        },
        Row(15, "closes without TLS's goodbye", on: [.tls, .h2]) {
            $0.file((.uncleanClose(afterBytes: 500_000), .first(2)))
        },
        Row(16, "416 for offset 0") { $0.file((.rangeNotSatisfiable, .ranged)).with { $0.task.size = Stage.size } },
        Row(16, "416 elsewhere, once") { stage in
            stage.file((.rangeNotSatisfiable, .init(requests: 0..<6, rangeStart: .mebibytes(1)))).checking { task, _ in
                #expect(task.contentVersion > 1)
            }
        },
        Row(17, "an empty file") { $0.file(size: 0) },
        Row(14, "no length, and HTTP/2 alone", on: [.h2c]) {
            // Two whole reads that agree.
            $0.file((.ignoreRange, .always), (.chunked, .always))
        },
        Row(17, "an empty file without a length", on: [.plain, .tls, .h2]) {
            $0.file(size: 0, (.chunked, .always), (.ignoreRange, .always))
        },
        Row(18, "refuses HEAD, and lies in it") { stage in
            stage.file((.refuseHead, .always), (.lieInHead(contentLength: 7), .always)).checking { _, requests in
                #expect(requests.allSatisfy { $0.method == "GET" })
            }
        },
        Row(19, "says that it accepts no ranges, but does") { stage in
            stage.file((.acceptRanges("none"), .always)).checking { _, requests in #expect(requests.count >= 3) }
        },
        Row(19, "says that it accepts ranges, but does not") {
            $0.file((.acceptRanges("bytes"), .always), (.ignoreRange, .always))
        },
        Row(20, "redirects, by 303") { $0.file((.redirectChain(hops: 5, status: 303), .always)) },
        Row(20, "redirects, by 307") { $0.file((.redirectChain(hops: 5, status: 307), .always)) },
        Row(20, "redirects, by 308") { $0.file((.redirectChain(hops: 5, status: 308), .always)) },
        Row(20, "redirects more than 10 times") {
            $0.file((.redirectChain(hops: 12, status: 302), .always)).failing(.httpStatus(302))
        },
        Row(20, "redirects until a cookie comes back") {
            $0.file((.redirectForCookie(name: "seen", value: "yes", status: 302), .always))
        },
        Row(20, "redirects to a local file") {
            $0.file((.redirect(to: "file:///etc/passwd", status: 302), .always)).failing(.refusedAddress)
        },
        Row(20, "redirects to another origin, which shall see no credentials", on: [.plain]) { stage in
            let other = try await ScriptedOrigin.start()
            let content = ScriptedOrigin.Content.seeded(seed: 7, size: Stage.size)
            other.serve("/there", .init(content))
            return stage.file((.redirect(to: other.url("/there"), status: 302), .always)).with { play in
                play.task.headers = ["Authorization": "Bearer secret-of-the-first"]
                play.fetch.cookies = ["session": Secret("secret-cookie")]
            }.checking { task, requests in
                #expect(requests.allSatisfy { $0.header("Authorization") == "Bearer secret-of-the-first" })
                #expect(requests.allSatisfy { $0.header("Cookie") == "session=secret-cookie" })
                #expect(other.requests.count >= 3)
                #expect(other.requests.allSatisfy { $0.header("Authorization") == nil && $0.header("Cookie") == nil })
                #expect(task.urls == [stage.origin.url(stage.path)])
                #expect(task.effectiveURL == other.url("/there"))
            }
        },
        Row(21, "the URL behind a redirect expires") { stage in
            let play = stage.file()
            // Each URL is good for one request, and each request gets its own.
            stage.origin.sign(stage.path, lifetime: .once)
            stage.origin.misbehave("/entry", .redirectToSigned(stage.path, status: 302))
            return play.with { $0.task.urls = [stage.origin.url("/entry")] }
        },
        Row(21, "the signed URL expires, and a resolver knows fresh ones", on: [.plain, .tls, .h2]) { stage in
            let play = stage.file()
            // The URL is good for two requests, and the file takes more.
            stage.origin.sign(stage.path, lifetime: .init(requests: 2))
            stage.origin.resolve(at: "/resolver")
            return play.with { play in
                play.task.urls = [stage.origin.signedURL(stage.path)]
                play.resolver = Resolver(url: stage.origin.url("/resolver"))
            }.checking { task, _ in
                #expect(!stage.origin.questions(at: "/resolver").isEmpty)
                // Neither the expiry nor the question to the resolver counts as a try.
                #expect(task.attempts == 0)
                #expect(task.contentVersion == 1)
            }
        },
        Row(22, "a one-time URL") { stage in
            let play = stage.file(size: 500_000)
            stage.origin.sign(stage.path, lifetime: .once)
            return play.with { $0.task.urls = [stage.origin.signedURL(stage.path)] }.checking { _, requests in
                #expect(requests.count == 1)
            }
        },
        Row(22, "a one-time URL of a file of many chunks", of: .unknown) { stage in
            let play = stage.file(size: .mebibytes(20) + 77)
            stage.origin.sign(stage.path, lifetime: .once)
            return play.with { $0.task.urls = [stage.origin.signedURL(stage.path)] }.checking { task, requests in
                #expect(requests.count(where: { $0.status == 206 }) == 1 && task.attempts == 0)
            }
        },
        Row(22, "answers 400 to every range request (22a)") { $0.file((.status(400, retryAfter: nil), .ranged)) },
        Row(22, "answers 401 to every range request (22a)") { $0.file((.status(401, retryAfter: nil), .ranged)) },
        Row(22, "answers 429 to every range request (22a)") { $0.file((.status(429, retryAfter: nil), .ranged)) },
        Row(22, "ends every part before its first byte (22a)") { $0.file((.truncated(afterBytes: 0), .ranged)) },
        Row(22, "refuses all parts but the first (22a)", of: .known) { stage in
            let play = stage.file()
            for start in 1...3 {
                stage.origin.misbehave(
                    stage.path, .status(400, retryAfter: nil), when: .range(startingAt: .mebibytes(Int64(start))))
            }
            return play
        },
        Row(22, "answers 412 to every If-Range (22a)") { stage in
            stage.file(etag: "\"strong\"", (.refuseIfRange(status: 412), .always)).checking { task, requests in
                #expect(task.contentVersion == 1)
                #expect(requests.contains { $0.start > 0 && $0.status == 206 })
            }
        },
        Row(22, "resets every range request (22a)", on: [.plain, .tls]) { $0.file((.resetBeforeHeaders, .ranged)) },
        Row(22, "answers 203 (22c)") { $0.file((.ignoreRange, .always), (.statusOnly(203), .always)) },
        Row(23, "resets streams", on: [.h2, .h2c]) {
            $0.file((.resetStream(afterBytes: 400_000, code: 2), .first(3)))
        },
        Row(23, "resets every stream of HTTP/2", on: [.h2]) { stage in
            stage.file((.resetStream(afterBytes: 0, code: 7), .init(version: .http2))).checking { _, requests in
                #expect(requests.contains { $0.version == .http1 && $0.status == 206 })
            }
        },
        Row(23, "says GOAWAY", on: [.h2, .h2c]) {
            $0.file((.goAway(afterBytes: 400_000, isFinished: false), .first(2)))
        },
        Row(24, "limits responses by 503") { stage in
            let play = stage.file(size: .mebibytes(6))
            stage.origin.limitResponses(to: 2, otherwise: 503)
            stage.origin.limitRate(bytesPerSecond: 4 << 20)
            return play.checking { task, _ in #expect(task.contentVersion == 1) }
        },
        Row(24, "limits responses by 404") { stage in
            let play = stage.file(size: .mebibytes(6))
            stage.origin.limitResponses(to: 2, otherwise: 404)
            stage.origin.limitRate(bytesPerSecond: 4 << 20)
            return play
        },
        Row(24, "limits responses by a reset") { stage in
            let play = stage.file(size: .mebibytes(6))
            stage.origin.limitResponses(to: 2, otherwise: .reset)
            stage.origin.limitRate(bytesPerSecond: 4 << 20)
            return play
        },
        Row(25, "503 with Retry-After in seconds") { $0.file((.status(503, retryAfter: "1"), .first(1))) },
        Row(25, "429 with Retry-After as a date") {
            $0.file(
                (.status(429, retryAfter: "Wed, 01 Jan 2020 00:00:31 GMT"), .first(1)),
                (.date("Wed, 01 Jan 2020 00:00:30 GMT"), .first(1)))
        },
        Row(26, "statuses that pass") {
            $0.file(
                (.status(408, retryAfter: nil), .init(requests: 0..<1)),
                (.status(500, retryAfter: nil), .init(requests: 1..<2)),
                (.status(520, retryAfter: nil), .init(requests: 2..<3)),
                (.status(524, retryAfter: nil), .init(requests: 3..<4)))
        },
        Row(26, "404") { stage in
            stage.file((.status(404, retryAfter: nil), .always)).failing(.notFound).checking { task, requests in
                #expect(requests.map { $0.header("Accept-Encoding") } == ["identity", nil])
                #expect(task.failure?.status == 404)
            }
        },
        Row(26, "410") { $0.file((.status(410, retryAfter: nil), .always)).failing(.notFound) },
        Row(26, "451") { $0.file((.status(451, retryAfter: nil), .always)).failing(.notFound) },
        Row(26, "400") { $0.file((.status(400, retryAfter: nil), .always)).failing(.httpStatus(400)) },
        Row(26, "404 at the first of two sources") { stage in
            stage.file().with { $0.task.urls.insert(stage.origin.url("/nothing-here"), at: 0) }.checking {
                _, requests in
                #expect(requests.count { $0.path == "/nothing-here" } == 1)
            }
        },
    ]
}
