import MusterTestSupport
import Testing

/// One address before several servers.
@Suite(.enabled(if: Curl.isInstalled && InstalledProgram.find("haproxy") != nil)) struct HAProxyServerTests {
    private static let files: [String: ScriptedOrigin.File] = [
        "/healthz": ScriptedOrigin.File(.seeded(seed: 1, size: 10)), "/a": ScriptedOrigin.File(content),
    ]
    private static let content = ScriptedOrigin.Content.seeded(seed: 2, size: 10_000)

    @Test func serverThatIsGoneIsPassedOver() async throws {
        let first = try await ScriptedOrigin.start(Self.files)
        let second = try await ScriptedOrigin.start(Self.files)
        let balancer = try await HAProxyServer.start(before: [first.port, second.port])
        // Both are asked in turn.
        try await eventually("requests to both") {
            let answer = try await Curl.get("\(balancer.url)/a")
            return answer.body == Self.content.allBytes && !first.requests(for: "/a").isEmpty
                && !second.requests(for: "/a").isEmpty
        }
        await first.stop()
        for _ in 0..<4 { #expect(try await Curl.get("\(balancer.url)/a").body == Self.content.allBytes) }
        try await balancer.stop()
        await second.stop()
    }
}
