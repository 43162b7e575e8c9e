import MusterTestSupport
import SystemPackage
import Testing

@Suite(.enabled(if: Curl.isInstalled)) struct ScriptedProxyTests {
    private static let content = ScriptedOrigin.Content.seeded(seed: 5, size: 200_000)
    private static let files = ["/a": ScriptedOrigin.File(content)]

    @Test func forwardsRequestsToNamesThatItAloneKnows() async throws {
        let origin = try await ScriptedOrigin.start(Self.files)
        let proxy = try await ScriptedProxy.start(routes: ["files.test": origin.port])
        let answer = try await Curl.get("http://files.test/a?q=1", "-x", proxy.url, "-r", "5-199999")
        #expect(answer.exit == .exited(0), "\(answer.log)")
        #expect(answer.body == Self.content.bytes(in: 5..<200_000))
        #expect(proxy.requests.map(\.target) == ["http://files.test/a?q=1"])
        #expect(origin.requests.map(\.target) == ["/a?q=1"])
        #expect(origin.requests.first?.header("Host") == "files.test")
        #expect(origin.requests.first?.header("Via") == "1.1 scripted-proxy")
        await proxy.stop()
        await origin.stop()
    }

    @Test(arguments: [ScriptedOrigin.Transport.tls, .h2])
    func opensTunnels(transport: ScriptedOrigin.Transport) async throws {
        let origin = try await ScriptedOrigin.start(Self.files, transport: transport)
        let proxy = try await ScriptedProxy.start()
        let ca = try #require(origin.caFile?.string)
        let answer = try await Curl.get(origin.url("/a"), "-x", proxy.url, "--cacert", ca)
        #expect(answer.exit == .exited(0), "\(answer.log)")
        #expect(answer.body == Self.content.allBytes)
        #expect(proxy.tunnels.map(\.target) == ["127.0.0.1:\(origin.port)"])
        await proxy.stop()
        await origin.stop()
    }

    @Test func demandsCredentials() async throws {
        let origin = try await ScriptedOrigin.start(Self.files)
        let credentials = ScriptedProxy.Credentials(user: "u", password: "p")
        let proxy = try await ScriptedProxy.start(credentials: credentials)
        #expect(try await Curl.get(origin.url("/a"), "-x", proxy.url).head.contains(" 407 "))
        #expect(origin.requests.isEmpty)
        let answer = try await Curl.get(origin.url("/a"), "-x", proxy.url(with: credentials))
        #expect(answer.body == Self.content.allBytes)
        #expect(proxy.requests.map(\.refusedWith) == [407, nil])
        #expect(origin.requests.first?.header("Proxy-Authorization") == nil)
        await proxy.stop()
        await origin.stop()
    }

    @Test func refusesUnknownHostsAndEverythingWhenTold() async throws {
        let proxy = try await ScriptedProxy.start()
        #expect(try await Curl.get("http://elsewhere.test/", "-x", proxy.url).head.contains(" 502 "))
        proxy.refuse(with: 503)
        #expect(try await Curl.get("http://127.0.0.1:1/", "-x", proxy.url).head.contains(" 503 "))
        #expect(proxy.requests.map(\.refusedWith) == [502, 503])
        #expect(proxy.connectionCount == 2)
        await proxy.stop()
    }
}
