import MusterTestSupport
import SystemPackage
import Testing

/// The same origin by HTTP/1.1 and HTTP/2, with TLS and without, as `curl` sees it.
@Suite(.enabled(if: Curl.isInstalled)) struct OriginTransportTests {
    private static let content = ScriptedOrigin.Content.seeded(seed: 3, size: 300_001)
    private static let file = ScriptedOrigin.File(content, etag: "\"v1\"")

    /// Gets a path of an origin, with the options that curl needs for its transport.
    private func get(_ origin: ScriptedOrigin, _ path: String = "/a", _ more: String...) async throws -> Curl.Answer {
        let ca = origin.caFile?.string ?? "/nonexistent"
        let prior = origin.transport == .h2c ? ["--http2-prior-knowledge"] : []
        return try await Curl.get(origin.url(path), arguments: ["--cacert", ca] + prior + more)
    }

    @Test(arguments: ScriptedOrigin.Transport.allCases)
    func wholeFileAndRangeArrive(transport: ScriptedOrigin.Transport) async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file], transport: transport)
        let whole = try await get(origin)
        #expect(whole.exit == .exited(0), "\(whole.log)")
        #expect(whole.body == Self.content.allBytes)
        let part = try await get(origin, "/a", "-r", "100000-199999")
        #expect(part.body == Self.content.bytes(in: 100_000..<200_000))
        #expect(part.head.lowercased().contains("content-range: bytes 100000-199999/300001"))
        #expect(origin.requests.map(\.status) == [200, 206])
        let version: ScriptedOrigin.Version = transport == .h2 || transport == .h2c ? .http2 : .http1
        #expect(origin.requests.allSatisfy { $0.version == version })
        #expect(part.head.hasPrefix(version == .http2 ? "HTTP/2 206" : "HTTP/1.1 206"))
        await origin.stop()
    }

    @Test func clientWithoutHTTP2GetsHTTP1() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file], transport: .h2)
        #expect(try await get(origin, "/a", "--http1.1").body == Self.content.allBytes)
        #expect(origin.requests.map(\.version) == [.http1])
        await origin.stop()
    }

    @Test func manyStreamsShareOneConnection() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file], transport: .h2)
        origin.hold("/a", afterBytes: 1)
        async let answer = get(origin, "/a?[1-5]", "--parallel", "--parallel-max", "5")
        try await origin.waitForRequests("/a", count: 5)
        #expect(origin.mostActiveResponses == 5)
        origin.release("/a")
        #expect(try await answer.exit == .exited(0))
        #expect(origin.connectionCount == 1)
        await origin.stop()
    }

    @Test(
        arguments: [
            (.trusted, 0), (.otherAuthority, 60), (.expired, 60), (.wrongHost, 60), (.selfSigned, 60),
        ] as [(TestCertificates.Identity, Int32)]
    )
    func badCertificatesAreRefused(identity: TestCertificates.Identity, exit: Int32) async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file], transport: .tls, identity: identity)
        let answer = try await get(origin)
        #expect(answer.exit == .exited(exit), "\(answer.log)")
        #expect(origin.requests.count == (exit == 0 ? 1 : 0))
        await origin.stop()
    }

    @Test func certificateOfAnotherAuthorityIsTrustedWithThatAuthority() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file], transport: .tls, identity: .otherAuthority)
        let ca = try #require(origin.certificates?.otherCAFile.string)
        #expect(try await Curl.get(origin.url("/a"), "--cacert", ca).body == Self.content.allBytes)
        await origin.stop()
    }

    @Test(arguments: [ScriptedOrigin.Transport.tls, .h2])
    func clientCertificateIsSeen(transport: ScriptedOrigin.Transport) async throws {
        let origin = try await ScriptedOrigin.start(
            ["/a": Self.file],
            transport: transport,
            clientCertificates: .asked
        )
        origin.misbehave("/a", .requires(.clientCertificate))
        let certificates = try #require(origin.certificates)
        #expect(try await get(origin).head.contains(" 401"))
        let known = try await get(
            origin,
            "/a",
            "--cert",
            certificates.clientCertificateFile.string,
            "--key",
            certificates.clientKeyFile.string
        )
        #expect(known.body == Self.content.allBytes)
        #expect(origin.requests.map(\.hasClientCertificate) == [false, true])
        let strange = try await get(
            origin,
            "/a",
            "--cert",
            certificates.strangeClientCertificateFile.string,
            "--key",
            certificates.strangeClientKeyFile.string
        )
        #expect(strange.exit != .exited(0))
        #expect(origin.requests.count == 2)
        await origin.stop()
    }

    @Test func requiredClientCertificateEndsTheHandshake() async throws {
        let origin = try await ScriptedOrigin.start(
            ["/a": Self.file],
            transport: .tls,
            clientCertificates: .required
        )
        #expect(try await get(origin).exit != .exited(0))
        #expect(origin.requests.isEmpty)
        try await origin.waitForOpenConnections(atMost: 0)
        #expect(origin.failedHandshakeCount == 1)
        await origin.stop()
    }

    @Test func silentHandshakeHangs() async throws {
        let origin = try await ScriptedOrigin.start(["/a": Self.file], transport: .tls)
        origin.refuseConnections(0..<1, .hang)
        let hung = try await get(origin, "/a", "--connect-timeout", "1")
        #expect(hung.exit == .exited(28), "\(hung.log)")
        #expect(try await get(origin).exit == .exited(0))
        #expect(origin.refusedConnectionCount == 1)
        await origin.stop()
    }

    @Test func manyOriginsLiveInOneProcess() async throws {
        var origins: [ScriptedOrigin] = []
        for number in 0..<50 {
            let transport = ScriptedOrigin.Transport.allCases[number % 4]
            origins.append(try await ScriptedOrigin.start(["/a": Self.file], transport: transport))
        }
        #expect(Set(origins.map(\.port)).count == 50)
        #expect(try await get(origins[49]).body == Self.content.allBytes)
        for origin in origins { await origin.stop() }
    }

    @Test func stoppingEndsHandshakesAndStreams() async throws {
        for transport in ScriptedOrigin.Transport.allCases {
            let origin = try await ScriptedOrigin.start(["/a": Self.file], transport: transport)
            origin.misbehave("/a", .hangBeforeHeaders)
            async let answer = get(origin)
            try await origin.waitForRequests("/a", count: 1)
            // A client that never begins the TLS handshake.
            let mute = try await RawClient.connect(origin)
            try await origin.waitForConnections(atLeast: 2)
            await origin.stop()
            #expect(try await answer.exit != .exited(0))
            try await mute.received.wait(for: "the end") { $0.isClosed }
        }
    }
}
