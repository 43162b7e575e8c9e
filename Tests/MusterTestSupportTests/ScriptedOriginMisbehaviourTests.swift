import MusterTestSupport
import Testing

/// Each misbehaviour as the bytes that arrive: tests that rely on a misbehaviour have to know that it happens.
@Suite struct ScriptedOriginMisbehaviourTests {
    private typealias Misbehaviour = ScriptedOrigin.Misbehaviour
    private static let content = ScriptedOrigin.Content.seeded(seed: 9, size: 1000)
    private static let file = ScriptedOrigin.File(content, etag: "\"v1\"")

    /// The response to `bytes=100-199` of a file of 1000 bytes.
    private func ranged(
        _ misbehaviours: ScriptedOrigin.Misbehaviour...,
        headers: [String] = ["Range: bytes=100-199"],
        method: String = "GET"
    ) async throws -> RawClient.Received {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        for misbehaviour in misbehaviours { origin.misbehave("/a", misbehaviour) }
        let response = try await RawClient.get(origin, "/a", headers: headers, method: method)
        await origin.stop()
        return response
    }

    private func bytes(_ range: Range<Int64>) -> [UInt8] { Self.content.bytes(in: range) }

    @Test func rangeIsIgnored() async throws {
        let response = try await ranged(.ignoreRange)
        #expect(response.head.hasPrefix("HTTP/1.1 200 "))
        #expect(!response.head.contains("Content-Range"))
        #expect(response.body == bytes(0..<1000))
    }

    @Test func contentRangeIsWrongMissingOrMalformed() async throws {
        let lying = try await ranged(.contentRangeShifted(by: 50))
        #expect(lying.head.contains("Content-Range: bytes 150-249/1000"))
        #expect(lying.body == bytes(100..<200))
        let shifted = try await ranged(.rangeShifted(by: 50))
        #expect(shifted.head.contains("Content-Range: bytes 150-249/1000"))
        #expect(shifted.body == bytes(150..<250))
        let missing = try await ranged(.noContentRange)
        #expect(missing.head.hasPrefix("HTTP/1.1 206 "))
        #expect(!missing.head.contains("Content-Range"))
        #expect(try await ranged(.contentRange("bytes x-y/z")).head.contains("Content-Range: bytes x-y/z"))
        #expect(try await ranged(.totalSize(2000)).head.contains("Content-Range: bytes 100-199/2000"))
    }

    @Test func rangeIsShort() async throws {
        let response = try await ranged(.shortRange(bytes: 10))
        #expect(response.head.contains("Content-Range: bytes 100-109/1000"))
        #expect(response.head.contains("Content-Length: 10\r\n") || response.head.hasSuffix("Content-Length: 10"))
        #expect(response.body == bytes(100..<110))
    }

    @Test func surplusFollowsTheBody() async throws {
        let response = try await ranged(.surplus(bytes: 5))
        #expect(response.body == bytes(100..<200) + Array("!!!!!".utf8))
        #expect(response.head.contains("Content-Length: 100"))
    }

    @Test func contentLengthLies() async throws {
        let response = try await ranged(.contentLengthOff(by: -1))
        #expect(response.head.contains("Content-Length: 99"))
        #expect(response.body == bytes(100..<200))
        #expect(try await ranged(.negativeContentLength).head.contains("Content-Length: -100"))
        let conflicting = try await ranged(.conflictingContentLengths).head
        #expect(conflicting.contains("Content-Length: 100\r\nContent-Length: 101"))
    }

    @Test func representationChangesAfterSomeRequests() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        let other = ScriptedOrigin.File(.seeded(seed: 10, size: 500), etag: "\"v2\"")
        origin.misbehave("/a", .replaced(with: other), when: .after(1))
        #expect(try await RawClient.get(origin, "/a").body == bytes(0..<1000))
        let second = try await RawClient.get(origin, "/a")
        #expect(second.body == other.content.allBytes)
        #expect(second.head.contains("ETag: \"v2\""))
        await origin.stop()
    }

    @Test func validatorsAreWeakOtherOrMissing() async throws {
        #expect(try await ranged(.weakETag).head.contains("ETag: W/\"v1\""))
        #expect(try await ranged(.etag("\"node-2\"")).head.contains("ETag: \"node-2\""))
        let date = "Thu, 02 Jan 2020 00:00:00 GMT"
        #expect(try await ranged(.lastModified(date)).head.contains("Last-Modified: \(date)"))
        let bare = try await ranged(.noValidators).head
        #expect(!bare.contains("ETag") && !bare.contains("Last-Modified"))
    }

    @Test func multipartWrapsTheRange() async throws {
        let response = try await ranged(.multipartByteRanges)
        #expect(response.head.contains("Content-Type: multipart/byteranges; boundary="))
        #expect(!response.head.contains("\r\nContent-Range"))
        #expect(String(decoding: response.body, as: UTF8.self).contains("Content-Range: bytes 100-199/1000"))
        #expect(response.body.firstRange(of: bytes(100..<200)) != nil)
    }

    @Test func codingsAreDeclared() async throws {
        let coded = try await ranged(.contentEncoding("gzip"))
        #expect(coded.head.contains("Content-Encoding: gzip"))
        #expect(coded.body == bytes(100..<200))
        let chunked = try await ranged(.chunked)
        #expect(chunked.head.contains("Transfer-Encoding: chunked") && !chunked.head.contains("Content-Length"))
        #expect(chunked.body == Array("64\r\n".utf8) + bytes(100..<200) + Array("\r\n0\r\n\r\n".utf8))
        let both = try await ranged(.transferEncodingAndContentLength).head
        #expect(both.contains("Transfer-Encoding: chunked") && both.contains("Content-Length: 100"))
        let broken = try await ranged(.chunkedUnterminated(afterBytes: 10))
        #expect(broken.body == Array("a\r\n".utf8) + bytes(100..<110) + Array("\r\n".utf8))
        let unframed = try await ranged(.closeDelimited)
        #expect(!unframed.head.contains("Content-Length") && unframed.body == bytes(100..<200))
    }

    @Test func bodyBreaksOff() async throws {
        let truncated = try await ranged(.truncated(afterBytes: 10))
        #expect(truncated.head.contains("Content-Length: 100"))
        #expect(truncated.body == bytes(100..<110))
        #expect(truncated.failure == nil)
        let reset = try await ranged(.reset(afterBytes: 10))
        #expect(reset.failure?.contains("reset") == true)
        #expect(try await ranged(.closeBeforeHeaders).bytes.isEmpty)
    }

    @Test func bodyHangs() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        origin.misbehave("/a", .hang(afterBytes: 10))
        let client = try await RawClient.connect(origin)
        try await client.send(RawClient.request("/a"))
        let received = try await client.received.wait(for: "what comes") { $0.body.count >= 10 }
        #expect(received.body == bytes(0..<10))
        #expect(!received.isClosed)
        await origin.stop()
    }

    @Test func dripDeliversEverything() async throws {
        #expect(try await ranged(.drip(bytes: 7, every: .milliseconds(1))).body == bytes(100..<200))
    }

    @Test func statusesComeForTheFirstRequests() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        origin.misbehave("/a", .status(503, retryAfter: "7"), when: .first(2))
        for _ in 0..<2 {
            let response = try await RawClient.get(origin, "/a")
            #expect(response.head.hasPrefix("HTTP/1.1 503 "))
            #expect(response.head.contains("Retry-After: 7"))
        }
        #expect(try await RawClient.get(origin, "/a").head.hasPrefix("HTTP/1.1 200 "))
        #expect(origin.requests.map(\.status) == [503, 503, 200])
        await origin.stop()
    }

    @Test func misbehaviourCanBeBoundToARange() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        origin.misbehave("/a", .status(500, retryAfter: nil), when: .range(startingAt: 100))
        #expect(
            try await RawClient.get(origin, "/a", headers: ["Range: bytes=100-199"]).head.hasPrefix("HTTP/1.1 500 ")
        )
        #expect(try await RawClient.get(origin, "/a", headers: ["Range: bytes=0-9"]).head.hasPrefix("HTTP/1.1 206 "))
        await origin.stop()
    }

    @Test func otherAnswersThanTheFile() async throws {
        #expect(try await ranged(.rangeNotSatisfiable).head.contains("Content-Range: bytes */1000"))
        let redirect = try await ranged(.redirect(to: "/b", status: 307)).head
        #expect(redirect.hasPrefix("HTTP/1.1 307 ") && redirect.contains("Location: /b"))
        let page = try await ranged(.htmlErrorPage)
        #expect(page.head.hasPrefix("HTTP/1.1 200 ") && page.head.contains("Content-Type: text/html"))
        #expect(try await ranged(.interim(103)).text.hasPrefix("HTTP/1.1 103 "))
        #expect(try await ranged(.refuseHead, method: "HEAD").head.hasPrefix("HTTP/1.1 405 "))
        #expect(try await ranged(.refuseHead).head.hasPrefix("HTTP/1.1 206 "))
        let head = try await ranged(.lieInHead(contentLength: 5), headers: [], method: "HEAD").head
        #expect(head.contains("Content-Length: 5"))
        #expect(try await ranged(.acceptRanges("none")).head.contains("Accept-Ranges: none"))
        let named = try await ranged(.headers([.init("Content-Disposition", "attachment; filename=x")])).head
        #expect(named.contains("Content-Disposition: attachment; filename=x"))
    }

    @Test func oneByteIsWrong() async throws {
        var expected = bytes(100..<200)
        expected[42] ^= 0xff
        #expect(try await ranged(.corruptByte(at: 142)).body == expected)
        #expect(try await ranged(.corruptByte(at: 500)).body == bytes(100..<200))
    }
}
