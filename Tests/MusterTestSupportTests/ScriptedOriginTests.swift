import MusterTestSupport
import Testing

@Suite struct ScriptedOriginTests {
    private static let content = ScriptedOrigin.Content.seeded(seed: 7, size: 300_001)
    private static let file = ScriptedOrigin.File(content, etag: "\"v1\"")

    @Test func seededBytesAreTheSameWhereverTheyAreCutOut() {
        let all = Self.content.allBytes
        #expect(all.count == 300_001)
        for range: Range<Int64> in [0..<1, 3..<17, 8..<16, 7..<9, 299_990..<300_001, 100_000..<170_003, 5..<5] {
            #expect(Self.content.bytes(in: range) == Array(all[Int(range.lowerBound)..<Int(range.upperBound)]))
        }
        #expect(Self.content.bytes(in: 300_000..<400_000).count == 1)
        #expect(Self.content.sha256() == FileDigest.sha256(all))
        #expect(ScriptedOrigin.Content.seeded(seed: 8, size: 300_001).allBytes != all)
    }

    @Test func wholeFileIsServedWithItsValidators() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        let response = try await RawClient.get(origin, "/a?token=1")
        #expect(response.head.hasPrefix("HTTP/1.1 200 OK\r\n"))
        for field in [
            "Content-Length: 300001", "ETag: \"v1\"", "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT",
            "Accept-Ranges: bytes", "Date: ",
        ] {
            #expect(response.head.contains("\r\n" + field))
        }
        #expect(response.body == Self.content.allBytes)
        let request = try #require(origin.requests(for: "/a").first)
        #expect(request.target == "/a?token=1")
        #expect(request.status == 200)
        #expect(request.bodyBytesSent == 300_001)
        #expect(request.header("host") == "test")
        await origin.stop()
    }

    @Test(
        arguments: [
            ("bytes=0-9", 206, "bytes 0-9/300001", 0..<10),
            ("bytes=299999-", 206, "bytes 299999-300000/300001", 299_999..<300_001),
            ("bytes=299999-999999999", 206, "bytes 299999-300000/300001", 299_999..<300_001),
            ("bytes=-2", 206, "bytes 299999-300000/300001", 299_999..<300_001),
            ("Bytes=5-5", 206, "bytes 5-5/300001", 5..<6),
            ("bytes=300001-", 416, "bytes */300001", 0..<0),
            ("bytes=-0", 416, "bytes */300001", 0..<0),
            ("bytes=9-2", 200, nil, 0..<300_001),
            ("bytes=0-1,4-5", 200, nil, 0..<300_001),
            ("lines=1-2", 200, nil, 0..<300_001),
            ("bytes=+1-2", 200, nil, 0..<300_001),
        ] as [(String, Int, String?, Range<Int64>)]
    )
    func rangesFollowTheStandard(
        _ row: (range: String, status: Int, contentRange: String?, bytes: Range<Int64>)
    )
        async throws
    {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        let response = try await RawClient.get(origin, "/a", headers: ["Range: \(row.range)"])
        #expect(response.head.hasPrefix("HTTP/1.1 \(row.status) "))
        #expect(response.head.contains("Content-Range: ") == (row.contentRange != nil))
        if let contentRange = row.contentRange { #expect(response.head.contains("Content-Range: \(contentRange)")) }
        if row.status != 416 { #expect(response.body == Self.content.bytes(in: row.bytes)) }
        await origin.stop()
    }

    @Test(arguments: [
        ("\"v1\"", 206), ("\"v2\"", 200), ("W/\"v1\"", 200), ("Wed, 01 Jan 2020 00:00:00 GMT", 206),
        ("Thu, 02 Jan 2020 00:00:00 GMT", 200),
    ])
    func onlyAnEqualStrongValidatorSelectsAPart(ifRange: String, status: Int) async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        let headers = ["Range: bytes=1-2", "If-Range: \(ifRange)"]
        let response = try await RawClient.get(origin, "/a", headers: headers)
        #expect(response.head.hasPrefix("HTTP/1.1 \(status) "))
        origin.misbehave("/a", .mistrustIfRange)
        #expect(try await RawClient.get(origin, "/a", headers: headers).head.hasPrefix("HTTP/1.1 200 "))
        origin.behave("/a")
        origin.misbehave("/a", .ignoreIfRange)
        #expect(try await RawClient.get(origin, "/a", headers: headers).head.hasPrefix("HTTP/1.1 206 "))
        await origin.stop()
    }

    @Test func headHasTheHeadersOfGetAndNoBody() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        let response = try await RawClient.get(origin, "/a", method: "HEAD")
        #expect(response.head.contains("Content-Length: 300001"))
        #expect(response.body.isEmpty)
        await origin.stop()
    }

    @Test func emptyFileIsServedEmpty() async throws {
        let origin = try await ScriptedOrigin.start(["/a": .init(.empty)])
        let whole = try await RawClient.get(origin, "/a")
        #expect(whole.head.contains("Content-Length: 0"))
        #expect(whole.body.isEmpty)
        let part = try await RawClient.get(origin, "/a", headers: ["Range: bytes=0-"])
        #expect(part.head.hasPrefix("HTTP/1.1 416 "))
        await origin.stop()
    }

    @Test func oneConnectionServesManyRequests() async throws {
        let origin = try await ScriptedOrigin.start(["/a": .init(.bytes(Array("first".utf8)))])
        let client = try await RawClient.connect(origin)
        // Both at once, as a pipelining client does.
        try await client.send(RawClient.request("/a") + RawClient.request("/none"))
        try await client.received.wait(for: "both answers", details: { $0.text }) { received in
            received.text.contains("first") && received.text.contains("404 Not Found")
                && received.text.contains("no such")
        }
        #expect(origin.connectionCount == 1)
        #expect(origin.requests.map(\.connection) == [0, 0])
        try await client.close()
        try await origin.waitForOpenConnections(atMost: 0)
        await origin.stop()
    }

    @Test func gateHoldsTheBodyUntilItIsOpened() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        origin.hold("/a", afterBytes: 100_000)
        let client = try await RawClient.connect(origin)
        try await client.send(RawClient.request("/a", headers: ["Connection: close"]))
        try await origin.waitUntil("/a", bytesSent: 100_000)
        try await client.received.wait(for: "the held part") { $0.body.count == 100_000 }
        #expect(origin.bytesSent("/a") == 100_000)
        #expect(origin.requests.first?.isFinished == false)
        origin.release("/a")
        let all = try await client.received.wait(for: "the rest") { $0.isClosed }
        #expect(all.body == Self.content.allBytes)
        await origin.stop()
    }

    @Test func clientThatLeavesIsNoticedWhileItIsHeld() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        origin.hold("/a", afterBytes: 10)
        let client = try await RawClient.connect(origin)
        try await client.send(RawClient.request("/a"))
        try await origin.waitUntil("/a", bytesSent: 10)
        try await client.close()
        try await origin.waitForOpenConnections(atMost: 0)
        #expect(origin.requests.first?.isFinished == true)
        await origin.stop()
    }

    @Test func stoppingEndsResponsesThatHang() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        origin.misbehave("/a", .hangBeforeHeaders)
        let client = try await RawClient.connect(origin)
        try await client.send(RawClient.request("/a"))
        try await origin.waitForRequests("/a", count: 1)
        await origin.stop()
        let received = try await client.received.wait(for: "the end") { $0.isClosed }
        #expect(received.bytes.isEmpty)
    }

    @Test func tooManyResponsesAtATimeAreRefused() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file, "/b": Self.file])
        origin.limitResponses(to: 1, otherwise: 429)
        origin.hold("/a", afterBytes: 1)
        let client = try await RawClient.connect(origin)
        try await client.send(RawClient.request("/a"))
        try await origin.waitUntil("/a", bytesSent: 1)
        #expect(try await RawClient.get(origin, "/b").head.hasPrefix("HTTP/1.1 429 "))
        try await client.close()
        try await origin.waitForOpenConnections(atMost: 0)
        #expect(try await RawClient.get(origin, "/b").head.hasPrefix("HTTP/1.1 200 "))
        await origin.stop()
    }

    @Test func rateLimitDeliversEveryByteStill() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file])
        origin.limitRate(bytesPerSecond: 3_000_000)
        #expect(try await RawClient.get(origin, "/a").body == Self.content.allBytes)
        await origin.stop()
    }
}
