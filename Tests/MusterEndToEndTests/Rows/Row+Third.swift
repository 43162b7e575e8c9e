import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension Row {
    /// Rows 27 to 38: lies, caches, mirrors, slowness, names, digests, certificates, ways to ask.
    static let third: [Row] = [
        Row(27, "an HTML page with 200, and the size is known") {
            $0.file((.htmlErrorPage, .always)).with { $0.task.size = Stage.size }.failing(.sizeMismatch)
        },
        Row(27, "an HTML page with 200, and the media type is known") {
            $0.file((.htmlErrorPage, .always)).with { $0.task.contentType = "application/octet-stream" }
                .failing(.httpStatus(200))
        },
        Row(27, "an HTML page with 200, and the digest is known") {
            $0.file((.htmlErrorPage, .always)).with { $0.task.digests = ["sha256": String(repeating: "ab", count: 32)] }
                .failing(.digestMismatch)
        },
        Row(27, "a redirect of requests with a Range, and no others, to a page", on: [.plain]) { stage in
            let other = try await ScriptedOrigin.start()
            other.serve("/login", .init(.seeded(seed: 7, size: 4_000)))
            other.misbehave("/login", .htmlErrorPage)
            // The other origin has to live as long as the row: another one would get its port.
            return stage.file((.redirect(to: other.url("/login"), status: 302), .ranged)).checking { _, _ in
                #expect(!other.requests.isEmpty)
            }
        },
        Row(27, "a page in answer to requests with a Range, and no others") { stage in
            let play = stage.file()
            stage.origin.serve("/file.bin", .init(.seeded(seed: 7, size: Stage.size)))
            stage.origin.misbehave("/file.bin", .htmlErrorPage, when: .ranged)
            return play.with { $0.task.urls = [stage.origin.url("/file.bin")] }
        },
        Row(27, "a page in answer to requests with a Range, and no others, and the media type is known") {
            $0.file((.htmlErrorPage, .ranged)).with { $0.task.contentType = "application/octet-stream" }
        },
        Row(27, "a page in answer to requests with a Range, and no others, and the digest is known") { stage in
            let content = ScriptedOrigin.Content.seeded(seed: 7, size: Stage.size)
            return stage.file((.htmlErrorPage, .ranged)).with { $0.task.digests = ["sha256": content.sha256()] }
        },
        Row(27, "a page in the place of a file that a plain GET was served of, and cut", of: .unknown) {
            $0.file(
                (.status(400, retryAfter: nil), .ranged),
                (.truncated(afterBytes: .mebibytes(2)), .init(requests: 1..<2)),
                (.htmlErrorPage, .init(requests: 2..<3)))
        },
        Row(27, "pages in the place of a file without validators that was cut") {
            $0.file(
                (.noValidators, .always), (.ignoreRange, .always), (.truncated(afterBytes: .mebibytes(2)), .first(1)),
                (.htmlErrorPage, .init(requests: 1..<3)))
        },
        Row(27, "a file that was cut, and has no validators any more") {
            $0.file((.truncated(afterBytes: .mebibytes(2)), .first(1)), (.noValidators, .after(1)))
        },
        Row(27, "a file that was cut, and has neither validators nor ranges any more") { stage in
            stage.file(
                (.truncated(afterBytes: .mebibytes(2)), .first(1)), (.noValidators, .after(1)),
                (.ignoreRange, .after(1)))
        },
        Row(
            28, "surplus bytes after a response, which must not become the beginning of the next one",
            on: [.plain, .tls]
        ) {
            $0.file((.surplus(bytes: 10), .always))
        },
        Row(29, "a cache that mixes versions, and the digest is known", of: .known) { stage in
            stage.file((.corruptByte(at: 1_500_000), .first(4))).with { play in
                if case .bytes(let right) = play.expected { play.task.digests = ["sha256": right.first ?? ""] }
            }.checking { task, requests in
                #expect(task.contentVersion == 2)
                #expect(requests.contains { $0.header("Cache-Control") == "no-cache" })
            }
        },
        Row(29, "a cache that is wrong for ever") {
            $0.file((.corruptByte(at: 1_500_000), .always)).with { play in
                if case .bytes(let right) = play.expected { play.task.digests = ["sha256": right.first ?? ""] }
            }.failing(.digestMismatch)
        },
        Row(29, "a cache that is wrong for ever, and a second source") { stage in
            let play = stage.file((.corruptByte(at: 1_500_000), .always))
            stage.origin.serve("/good", .init(.seeded(seed: 7, size: Stage.size)))
            return play.with { play in
                play.task.urls.append(stage.origin.url("/good"))
                if case .bytes(let right) = play.expected { play.task.digests = ["sha256": right.first ?? ""] }
            }
        },
        Row(30, "a mirror with other bytes") { stage in
            let other = ScriptedOrigin.Content.seeded(seed: 9, size: Stage.size)
            let play = stage.file((.truncated(afterBytes: 100_000), .always))
            stage.origin.serve("/mirror", .init(other))
            return play.with { play in
                play.task.urls.append(stage.origin.url("/mirror"))
                // All bytes are of one source, whichever that is.
                if case .bytes(let right) = play.expected { play.expected = .bytes(right.union([other.sha256()])) }
            }
        },
        Row(30, "a mirror with the same bytes, told by size and strong ETag") { stage in
            let elsewhere = try await ScriptedOrigin.start(transport: stage.origin.transport)
            let play = stage.file(size: .mebibytes(8), etag: "\"same\"")
            elsewhere.serve("/mirror", .init(.seeded(seed: 7, size: .mebibytes(8)), etag: "\"same\""))
            for origin in [stage.origin, elsewhere] { origin.limitRate(bytesPerSecond: 2 << 20) }
            stage.origin.limitResponses(to: 2, otherwise: 503)
            return play.with { $0.task.urls.append(elsewhere.url("/mirror")) }.checking { task, _ in
                #expect(task.contentVersion == 1)
                #expect(elsewhere.bytesSent("/mirror") > 0)
            }
        },
        Row(31, "Content-Lengths that disagree") {
            $0.file((.conflictingContentLengths, .always)).failing(.badRange, .network)
        },
        Row(31, "a negative Content-Length") {
            $0.file((.negativeContentLength, .always)).failing(.badRange, .network)
        },
        Row(31, "Transfer-Encoding and Content-Length", on: [.plain, .tls]) {
            $0.file((.transferEncodingAndContentLength, .always))
        },
        Row(31, "no HTTP at all, once", on: [.plain, .tls]) {
            $0.file((.garbage("SSH-2.0-OpenSSH_9.2p1\r\n"), .first(1)))
        },
        Row(32, "drips for ever") {
            $0.file((.drip(bytes: 10, every: .milliseconds(100)), .always)).impatient().with {
                $0.task.deadline = "20s"
            }
            .failing(.tooSlow, .deadline)
        },
        Row(32, "drips once") { $0.file((.drip(bytes: 10, every: .milliseconds(100)), .first(1))).impatient() },
        Row(33, "hangs before its headers, once") { $0.file((.hangBeforeHeaders, .first(1))).impatient() },
        Row(33, "hangs before its headers, always") {
            $0.file((.hangBeforeHeaders, .always)).impatient().with { $0.task.deadline = "3s" }.failing(.deadline)
        },
        Row(33, "hangs in the handshake", on: [.tls, .h2]) { stage in
            let play = stage.file().impatient()
            stage.origin.refuseConnections(0..<1, .hang)
            return play
        },
        Row(34, "suggests a name that nobody asked for") { stage in
            stage.file(headers: [.disposition(filename: "suggested.bin")]).checking { task, _ in
                #expect(task.path != "suggested.bin")
            }
        },
        Row(34, "suggests a name that leads elsewhere") { stage in
            stage.file(headers: [.disposition(filename: "../../etc/pass\\wd")]).with { play in
                play.policy.names = .suggested
                play.task.path = "\(stage.origin.port)/given"
            }.checking { task, _ in
                #expect(task.path.hasPrefix("\(stage.origin.port)/"))
                #expect(!task.path.contains(".."))
                #expect(task.path.split(separator: "/").count == 2)
            }
        },
        Row(35, "states the right digest") { stage in
            let content = ScriptedOrigin.Content.seeded(seed: 7, size: Stage.size)
            return stage.file(headers: [.reprDigest(of: content, .sha256)]).checking { task, _ in
                #expect(task.digests["sha256"] == content.sha256())
            }
        },
        Row(35, "states a digest that is not the content's") { stage in
            let other = ScriptedOrigin.Content.seeded(seed: 70, size: Stage.size)
            return stage.file(headers: [.reprDigest(of: other, .sha256)]).failing(.digestMismatch)
        },
        Row(36, "a certificate of an unknown authority", on: [.tls]) { try await Self.identity(.otherAuthority, $0) },
        Row(36, "a certificate that has expired", on: [.tls]) { try await Self.identity(.expired, $0) },
        Row(36, "a certificate for another host", on: [.tls]) { try await Self.identity(.wrongHost, $0) },
        Row(36, "a certificate that vouches for itself", on: [.tls]) { try await Self.identity(.selfSigned, $0) },
        Row(36, "ends a connection within the handshake", on: [.tls, .h2]) { stage in
            let play = stage.file()
            stage.origin.refuseConnections(0..<1, .close)
            return play
        },
        Row(38, "wants Basic credentials") { stage in
            stage.file((.requires(.basic(user: "me", password: "secret")), .always)).with {
                $0.fetch.credentials = .init(user: "me", password: Secret("secret"))
            }
        },
        Row(38, "wants credentials that nobody has") {
            $0.file((.requires(.basic(user: "me", password: "secret")), .always)).failing(.authentication)
        },
        Row(38, "wants a cookie") { stage in
            stage.file((.requires(.cookie(name: "k", value: "v")), .always)).with {
                $0.fetch.cookies = ["k": Secret("v")]
            }
        },
        Row(38, "wants a header") { stage in
            stage.file((.requires(.header(.init("X-Key", "v"))), .always)).with { $0.task.headers = ["X-Key": "v"] }
        },
        Row(38, "wants a client certificate", on: [.tls, .h2]) { stage in
            let origin = try await ScriptedOrigin.start(
                transport: stage.origin.transport, clientCertificates: .required)
            let own = Stage(origin: origin, base: stage.base)
            return own.file((.requires(.clientCertificate), .always)).with { play in
                guard let certificates = origin.certificates else { return }
                play.fetch.clientCertificate = .init(
                    certificate: certificates.clientCertificateFile.string, key: certificates.clientKeyFile.string)
            }
        },
        Row(38, "is reached through a proxy that wants credentials", on: [.plain, .tls]) { stage in
            let credentials = ScriptedProxy.Credentials(user: "me", password: "secret")
            let proxy = try await ScriptedProxy.start(credentials: credentials)
            return stage.file().with { $0.fetch.proxy = Secret(proxy.url(with: credentials)) }.checking { _, _ in
                #expect(!proxy.requests.isEmpty)
            }
        },
    ]

    private static func identity(_ identity: TestCertificates.Identity, _ stage: Stage) async throws -> Play {
        let origin = try await ScriptedOrigin.start(transport: stage.origin.transport, identity: identity)
        return Stage(origin: origin, base: stage.base).file().failing(.tls).checking { _, requests in
            #expect(requests.isEmpty)
        }
    }
}
