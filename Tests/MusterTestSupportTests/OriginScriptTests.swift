import MusterTestSupport
import Testing

/// Scripts that depend on connections, on earlier requests, on what the client sends, or on chance.
@Suite struct OriginScriptTests {
    private static let content = ScriptedOrigin.Content.seeded(seed: 9, size: 1000)
    private static let file = ScriptedOrigin.File(content, etag: "\"v1\"")

    private func origin(_ misbehaviours: ScriptedOrigin.Misbehaviour...) async throws -> ScriptedOrigin {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        for misbehaviour in misbehaviours { origin.misbehave("/a", misbehaviour) }
        return origin
    }

    private func status(_ received: RawClient.Received) -> Int? {
        received.head.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }

    /// The value of a field of the response.
    private func field(_ name: String, _ received: RawClient.Received) -> String? {
        received.head.split(separator: "\r\n").first { $0.hasPrefix("\(name): ") }
            .map { String($0.dropFirst(name.count + 2)) }
    }

    @Test func onePathLimitsItsResponses() async throws {
        let origin = try await origin(.limit(responses: 1, otherwise: .status(429, retryAfter: "3")))
        origin.serve("/b", Self.file)
        origin.hold("/a", afterBytes: 1)
        let client = try await RawClient.connect(origin)
        try await client.send(RawClient.request("/a"))
        try await origin.waitUntil("/a", bytesSent: 1)
        let second = try await RawClient.get(origin, "/a")
        #expect(status(second) == 429)
        #expect(field("Retry-After", second) == "3")
        #expect(status(try await RawClient.get(origin, "/b")) == 200)
        try await client.close()
        try await origin.waitForOpenConnections(atMost: 0)
        origin.release("/a")
        #expect(status(try await RawClient.get(origin, "/a")) == 200)
        await origin.stop()
    }

    @Test(
        arguments: [.status(403, retryAfter: nil), .status(503, retryAfter: "1"), .close, .reset]
            as [ScriptedOrigin.Refusal]
    )
    func connectionsBeyondTheLimitAreRefused(refusal: ScriptedOrigin.Refusal) async throws {
        let origin = try await origin()
        origin.limitConnections(to: 1, otherwise: refusal)
        let first = try await RawClient.connect(origin)
        try await origin.waitForConnections(atLeast: 1)
        switch refusal {
        case .status(let status, _): #expect(self.status(try await RawClient.get(origin, "/a")) == status)
        case .close: #expect(await silence(of: origin) == nil)
        case .reset: #expect(await silence(of: origin)?.contains("reset") == true)
        case .hang: break
        }
        #expect(origin.refusedConnectionCount == 1)
        try await first.close()
        try await origin.waitForOpenConnections(atMost: 0)
        #expect(status(try await RawClient.get(origin, "/a")) == 200)
        await origin.stop()
    }

    /// How a connection ends on which neither side sends anything; nil for a clean close.
    private func silence(of origin: ScriptedOrigin) async -> String? {
        do {
            let client = try await RawClient.connect(origin)
            let received = try await client.received.wait(for: "the end") { $0.isClosed }
            return received.bytes.isEmpty ? received.failure : received.text
        } catch {
            // A reset may come before the connection is reported as established.
            return "\(error)"
        }
    }

    @Test func misbehaviourCanBeBoundToConnectionsAndBytes() async throws {
        let origin = try await origin()
        origin.misbehave("/a", .status(500, retryAfter: nil), when: .firstConnections(1))
        origin.misbehave("/a", .status(410, retryAfter: nil), when: .after(bytesSent: 1000))
        #expect(status(try await RawClient.get(origin, "/a")) == 500)
        #expect(status(try await RawClient.get(origin, "/a")) == 200)
        #expect(status(try await RawClient.get(origin, "/a")) == 410)
        await origin.stop()
    }

    @Test func signedURLsExpire() async throws {
        let origin = try await origin()
        #expect(status(try await RawClient.get(origin, "/a")) == 200)
        origin.sign("/a", lifetime: .init(requests: 2), refusal: 410)
        #expect(status(try await RawClient.get(origin, "/a")) == 410)
        #expect(status(try await RawClient.get(origin, "/a?signature=guessed")) == 410)
        let target = String(origin.signedURL("/a").dropFirst(origin.url.count))
        #expect(status(try await RawClient.get(origin, target, method: "HEAD")) == 410)
        #expect(status(try await RawClient.get(origin, target)) == 200)
        #expect(status(try await RawClient.get(origin, target)) == 200)
        #expect(status(try await RawClient.get(origin, target)) == 410)

        origin.sign("/a", lifetime: .init(bytes: 150))
        let other = String(origin.signedURL("/a").dropFirst(origin.url.count))
        for expected in [206, 206, 403] {
            let response = try await RawClient.get(origin, other, headers: ["Range: bytes=0-99"])
            #expect(status(response) == expected)
        }
        origin.sign("/a")
        let third = String(origin.signedURL("/a").dropFirst(origin.url.count))
        #expect(status(try await RawClient.get(origin, third)) == 200)
        origin.expireSignatures(of: "/a")
        #expect(status(try await RawClient.get(origin, third)) == 403)
        await origin.stop()
    }

    @Test func redirectToASignedURLIsFreshEachTime() async throws {
        let origin = try await origin()
        origin.sign("/a", lifetime: .once)
        origin.misbehave("/get", .redirectToSigned("/a", status: 307))
        var targets: Set<String> = []
        for _ in 0..<2 {
            let redirect = try await RawClient.get(origin, "/get")
            #expect(status(redirect) == 307)
            let target = try #require(field("Location", redirect))
            targets.insert(target)
            #expect(try await RawClient.get(origin, target).body == Self.content.allBytes)
            #expect(status(try await RawClient.get(origin, target)) == 403)
        }
        #expect(targets.count == 2)
        await origin.stop()
    }

    @Test func resolverGivesFreshURLsAndRemembersQuestions() async throws {
        let origin = try await origin()
        origin.sign("/a", lifetime: .once)
        origin.resolve(at: "/resolve", .signing(headers: ["X-Fresh": "yes"]))
        let question = #"{"group":"g","key":"k","url":"\#(origin.url("/a"))","source":0}"#
        let client = try await RawClient.connect(origin)
        let host = "127.0.0.1:\(origin.port)"
        let head =
            "POST /resolve HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\nContent-Length: \(question.utf8.count)"
        try await client.send(head + "\r\n\r\n" + question)
        let answer = try await client.received.wait(for: "the answer") { $0.isClosed }
        #expect(status(answer) == 200)
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(text.hasPrefix(#"{"headers":{"X-Fresh":"yes"},"url":"\#(origin.url("/a?signature="))"#), "\(text)")
        let signature = try #require(text.split(separator: "signature=").last?.prefix { $0 != "\"" })
        #expect(try await RawClient.get(origin, "/a?signature=\(signature)").body == Self.content.allBytes)
        #expect(origin.questions(at: "/resolve") == [question])
        #expect(status(try await RawClient.get(origin, "/resolve")) == 404)
        #expect(status(try await RawClient.get(origin, "/a", method: "POST")) == 405)
        await origin.stop()
    }

    @Test func redirectsFormChainsAndWantCookies() async throws {
        let chain = try await origin(.redirectChain(hops: 2, status: 308))
        var target = "/a"
        for _ in 0..<2 {
            let redirect = try await RawClient.get(chain, target)
            #expect(status(redirect) == 308)
            target = try #require(field("Location", redirect))
        }
        #expect(try await RawClient.get(chain, target).body == Self.content.allBytes)
        await chain.stop()
        let picky = try await origin(.redirectForCookie(name: "seen", value: "1", status: 302))
        let redirect = try await RawClient.get(picky, "/a?x=1")
        #expect(status(redirect) == 302)
        #expect(field("Location", redirect) == "/a?x=1")
        #expect(field("Set-Cookie", redirect)?.hasPrefix("seen=1;") == true)
        #expect(status(try await RawClient.get(picky, "/a?x=1", headers: ["Cookie: other=2; seen=1"])) == 200)
        await picky.stop()
    }

    @Test func requirementsAreEnforced() async throws {
        let requirements: [(ScriptedOrigin.Requirement, String)] = [
            (.basic(user: "u", password: "p:w"), "Authorization: Basic dTpwOnc="),
            (.header(.init("X-Key", "k")), "x-key: k"),
            (.cookie(name: "id", value: "7"), "Cookie: a=b; id=7"),
        ]
        for (requirement, header) in requirements {
            let origin = try await origin(.requires(requirement))
            let refused = try await RawClient.get(origin, "/a", headers: ["X-Other: 1"])
            #expect(status(refused) == 401)
            let isBasic = if case .basic = requirement { true } else { false }
            #expect((field("WWW-Authenticate", refused) != nil) == isBasic)
            #expect(status(try await RawClient.get(origin, "/a", headers: [header])) == 200)
            await origin.stop()
        }
    }

    @Test func cacheMixesVersionsAndNodesDiffer() async throws {
        let other = ScriptedOrigin.File(.seeded(seed: 10, size: 1000), etag: "\"v1\"")
        let cache = try await origin(.mixedCache([Self.file, other], seed: 1, heedsNoCache: true))
        var bodies: Set<[UInt8]> = []
        for _ in 0..<20 { bodies.insert(try await RawClient.get(cache, "/a").body) }
        #expect(bodies == [Self.content.allBytes, other.content.allBytes])
        for _ in 0..<20 {
            let fresh = try await RawClient.get(cache, "/a", headers: ["Cache-Control: no-cache"])
            #expect(fresh.body == other.content.allBytes)
        }
        await cache.stop()
        let nodes = try await origin(.nodes([.init(etag: "\"n1\""), .init(etag: nil, lastModified: nil)], seed: 1))
        var etags: Set<String?> = []
        for _ in 0..<20 {
            let response = try await RawClient.get(nodes, "/a")
            #expect(response.body == Self.content.allBytes)
            etags.insert(field("ETag", response))
        }
        #expect(etags == ["\"n1\"", nil])
        await nodes.stop()
    }

    @Test func chanceFollowsFromTheSeed() async throws {
        var played: [[[ScriptedOrigin.Misbehaviour]]] = []
        for seed in [1, 1, 2] as [UInt64] {
            let origin = try await origin()
            origin.misbehaveAtRandom(
                "/a",
                seed: seed,
                rate: 0.5,
                from: [.ignoreRange, .noContentRange, .truncated(afterBytes: 3), .resetStream(afterBytes: 1, code: 2)]
            )
            for _ in 0..<40 { _ = try await RawClient.get(origin, "/a", headers: ["Range: bytes=1-9"]) }
            played.append(origin.requests.map(\.misbehaviours))
            await origin.stop()
        }
        #expect(played[0] == played[1])
        #expect(played[0] != played[2])
        let count = played[0].count { !$0.isEmpty }
        #expect((10...30).contains(count), "\(count) of 40")
        #expect(Set(played[0].flatMap(\.self)).count == 3, "all but the one that HTTP/1.1 does not have")
    }

    @Test func fieldsCanBeSetOrLeftOut() async throws {
        let dated = try await origin(.date("Thu, 01 Jan 1970 00:00:10 GMT"))
        #expect(field("Date", try await RawClient.get(dated, "/a")) == "Thu, 01 Jan 1970 00:00:10 GMT")
        await dated.stop()
        let dateless = try await origin(.date(nil), .rangeNotSatisfiableStating(total: 77))
        let response = try await RawClient.get(dateless, "/a")
        #expect(field("Date", response) == nil)
        #expect(field("Content-Range", response) == "bytes */77")
        await dateless.stop()
        let garbage = try await origin(.garbage("SSH-2.0-x\r\n"))
        #expect(try await RawClient.get(garbage, "/a").text == "SSH-2.0-x\r\n")
        await garbage.stop()
        let reset = try await origin(.resetBeforeHeaders)
        let nothing = try await RawClient.get(reset, "/a")
        #expect(nothing.bytes.isEmpty && nothing.failure?.contains("reset") == true)
        await reset.stop()
    }

    @Test func statedDigestsAreThoseOfTheStandards() {
        typealias Header = ScriptedOrigin.Header
        let abc = ScriptedOrigin.Content.bytes(Array("abc".utf8))
        #expect(
            Header.reprDigest(of: abc, .sha256, .md5).value
                == "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:, md5=:kAFQmDzST7DWlj99KOF/cg==:"
        )
        #expect(Header.digest(of: abc, .sha1).value == "SHA=qZk+NkcGgWq6PiVxeFDCbJzQ2J0=")
        #expect(Header.contentMD5(of: abc).value == "kAFQmDzST7DWlj99KOF/cg==")
        #expect(Header.date("Retry-After", secondsSince1970: 1_577_836_800).value == "Wed, 01 Jan 2020 00:00:00 GMT")
        #expect(Header.disposition(filename: #"a"b\c"#).value == #"attachment; filename="a\"b\\c""#)
        #expect(Header.disposition(extendedFilename: "€").value == "attachment; filename*=UTF-8''%E2%82%AC")
    }
}
