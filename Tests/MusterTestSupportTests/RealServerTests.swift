import FoundationEssentials
import MusterTestSupport
import SystemPackage
import Testing

/// Third-party servers start, serve their files, and leave no process behind.
@Suite(.enabled(if: Curl.isInstalled)) struct RealServerTests {
    private static let content = ScriptedOrigin.Content.seeded(seed: 4, size: 200_000)

    /// A directory that every account can read, with a file `a` in it.
    private func root() throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        let file = try FileDescriptor.open(
            directory.path.appending("a"),
            .writeOnly,
            options: .create,
            permissions: [.ownerReadWrite, .groupRead, .otherRead]
        )
        try file.closeAfter { _ = try file.writeAll(Self.content.allBytes) }
        return directory
    }

    /// Whether `server` serves `/a` and ranges of it, without TLS and with it by HTTP/2, and ends.
    private func checkHTTP(_ server: RealServer) async throws {
        let ca = try await TestCertificates.shared().caFile.string
        let whole = try await Curl.get(server.url + "/a")
        #expect(whole.exit == .exited(0), "\(whole.log)\n\(server.log)")
        #expect(whole.body == Self.content.allBytes)
        let url = try #require(server.secureURL)
        let part = try await Curl.get(url + "/a", "--cacert", ca, "-r", "5-99999")
        #expect(part.head.hasPrefix("HTTP/2 206"), "\(part.log)\n\(server.log)")
        #expect(part.body == Self.content.bytes(in: 5..<100_000))
        try await checkEnd(server)
    }

    private func checkEnd(_ server: RealServer) async throws {
        let processes = server.processIDs
        // Processes of closed connections may have ended by themselves.
        #expect(processes.contains { ProcessTree.isAlive($0) })
        try await server.stop()
        for process in processes { try await ProcessTree.waitForEnd(of: process) }
    }

    @Test(.enabled(if: ApacheServer.isInstalled)) func apacheServes() async throws {
        let root = try root()
        try await checkHTTP(try await ApacheServer.start(root: root.path))
    }

    @Test(.enabled(if: CaddyServer.isInstalled)) func caddyServes() async throws {
        let root = try root()
        try await checkHTTP(try await CaddyServer.start(root: root.path))
    }

    @Test(.enabled(if: LighttpdServer.isInstalled)) func lighttpdServes() async throws {
        let root = try root()
        try await checkHTTP(try await LighttpdServer.start(root: root.path))
    }

    @Test(.enabled(if: NginxServer.isInstalled)) func nginxServesByHTTP2AndLimitsConnections() async throws {
        let root = try root()
        let ca = try await TestCertificates.shared().caFile.string
        let nginx = try await NginxServer.start(
            documentRoot: root.path,
            limitConnections: (count: 1, status: 429),
            serverDirectives: "location = /slow { alias \(root.path)/a; limit_rate 1k; }"
        )
        let part = try await Curl.get(nginx.secureURL + "/a", "--cacert", ca, "-r", "5-99999")
        #expect(part.head.hasPrefix("HTTP/2 206"), "\(part.log)")
        #expect(part.body == Self.content.bytes(in: 5..<100_000))
        let slow = try await RawClient.connect(port: nginx.port)
        try await slow.send(RawClient.request("/slow"))
        try await slow.received.wait(for: "the beginning") { !$0.body.isEmpty }
        #expect(try await Curl.get(nginx.url + "/a").head.contains(" 429"))
        try await slow.close()
        try await nginx.stop()
    }

    @Test(.enabled(if: NginxServer.isInstalled)) func nginxWantsSignedURLs() async throws {
        let root = try root()
        let nginx = try await NginxServer.start(documentRoot: root.path, secret: "s")
        let statuses: [(String, String)] = [
            ("/a", " 403"), (NginxServer.signed("/a", expires: 10, secret: "s"), " 410"),
            (NginxServer.signed("/a", expires: 4_000_000_000, secret: "t"), " 403"),
            (NginxServer.signed("/a", expires: 4_000_000_000, secret: "s"), " 200"),
        ]
        for (target, status) in statuses {
            let answer = try await Curl.get(nginx.url + target)
            #expect(answer.head.contains(status), "\(target): \(answer.log)")
        }
        try await nginx.stop()
    }

    @Test(.enabled(if: SquidServer.isInstalled)) func squidCachesInFrontOfAnOrigin() async throws {
        let origin = try await ScriptedOrigin.start(["/a": .init(Self.content)])
        origin.misbehave("/a", .headers([.init("Cache-Control", "max-age=600")]))
        let squid = try await SquidServer.start(inFrontOf: origin.port)
        for _ in 0..<2 {
            let answer = try await Curl.get(squid.url + "/a")
            #expect(answer.body == Self.content.allBytes, "\(answer.log)\n\(squid.log)")
        }
        #expect(origin.requests.count == 1)
        let part = try await Curl.get(squid.url + "/a", "-r", "5-9")
        #expect(part.body == Self.content.bytes(in: 5..<10))
        #expect(origin.requests.count == 1)
        _ = try await Curl.get(squid.url + "/a", "-H", "Cache-Control: no-cache")
        #expect(origin.requests.count == 2)
        try await checkEnd(squid)
        await origin.stop()
    }

    @Test(.enabled(if: SquidServer.isInstalled)) func squidForwards() async throws {
        let origin = try await ScriptedOrigin.start(["/a": .init(Self.content)])
        let squid = try await SquidServer.startForward()
        let answer = try await Curl.get(origin.url("/a"), "-x", squid.url)
        #expect(answer.body == Self.content.allBytes, "\(answer.log)\n\(squid.log)")
        #expect(origin.requests.first?.header("Via")?.contains("squid") == true)
        let tunnelled = try await Curl.get(origin.url("/a"), "-x", squid.url, "-p")
        // Squid's default configuration allows tunnels to port 443 only; ours does not restrict them.
        #expect(tunnelled.body == Self.content.allBytes, "\(tunnelled.log)\n\(squid.log)")
        try await checkEnd(squid)
        await origin.stop()
    }

    @Test(.enabled(if: VsftpdServer.isAvailable)) func vsftpdServes() async throws {
        let root = try root()
        let server = try await VsftpdServer.start(root: root.path)
        let url = "ftp://127.0.0.1:\(server.port)/a"
        let whole = try await Curl.get(url)
        #expect(whole.body == Self.content.allBytes, "\(whole.log)\n\(server.log)")
        #expect(try await Curl.get(url, "-r", "150000-").body == Self.content.bytes(in: 150_000..<200_000))
        try await checkEnd(server)
    }

    @Test(.enabled(if: VsftpdServer.isAvailable)) func vsftpdServesWithinTLSAndWantsAPassword() async throws {
        let root = try root()
        let ca = try await TestCertificates.shared().caFile.string
        let server = try await VsftpdServer.start(root: root.path, encryption: .implicit, password: "sesame")
        let url = "ftps://127.0.0.1:\(server.port)/a"
        let answer = try await Curl.get(url, "--cacert", ca, "-u", "anonymous:sesame")
        #expect(answer.body == Self.content.allBytes, "\(answer.log)\n\(server.log)")
        let refused = try await Curl.get(url, "--cacert", ca, "-u", "anonymous:open")
        #expect(refused.exit == .exited(67), "\(refused.log)")
        #expect(try await Curl.get(url, "-u", "anonymous:sesame").exit == .exited(60))
        try await checkEnd(server)
    }

    @Test(.enabled(if: SSHServer.isInstalled)) func sshServesOnlyClientsThatHaveAKeyAndKnowTheHost() async throws {
        let root = try root()
        let server = try await SSHServer.start(root: root.path)
        let whole = try await sftp(server, key: server.keyFile, knownHosts: server.knownHostsFile)
        #expect(whole.body == Self.content.allBytes, "\(whole.log)\n\(server.server.log)")
        let part = try await sftp(server, key: server.keyFile, knownHosts: server.knownHostsFile, "-r", "150000-")
        #expect(part.body == Self.content.bytes(in: 150_000..<200_000), "\(part.log)")
        let stranger = try await sftp(server, key: server.strangeKeyFile, knownHosts: server.knownHostsFile)
        #expect(stranger.exit == .exited(67), "\(stranger.log)\n\(server.server.log)")
        let elsewhere = try await sftp(server, key: server.keyFile, knownHosts: server.wrongKnownHostsFile)
        #expect(elsewhere.exit == .exited(60), "\(elsewhere.log)\n\(server.server.log)")
        try await checkEnd(server.server)
    }

    private func sftp(
        _ server: SSHServer,
        key: FilePath,
        knownHosts: FilePath,
        _ more: String...
    ) async throws -> Curl.Answer {
        // curl looks for known hosts in the home directory alone.
        let home = try TemporaryDirectory()
        let directory = home.path.appending(".ssh").string
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        try FileManager.default.copyItem(atPath: knownHosts.string, toPath: directory + "/known_hosts")
        return try await Curl.get(
            server.url("/a"),
            arguments: ["--key", key.string, "--pubkey", key.string + ".pub"] + more,
            environment: ["HOME": home.path.string]
        )
    }
}
