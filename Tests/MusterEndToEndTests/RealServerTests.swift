import FoundationEssentials
import MusterAPI
import MusterCore
import MusterTestSupport
import SystemPackage
import Testing

extension EndToEnd {
    /// Independent servers, as Debian ships them, through the whole of Muster (rows 1 to 38 as they occur in practice).
    @Suite struct RealServers {
        /// Files of every size that matters, in a directory that every server can read.
        private struct Shelf {
            let directory: TemporaryDirectory
            var files: [(name: String, sha256: String)] = []

            init() throws {
                directory = try TemporaryDirectory()
                var path = directory.path.string
                // Servers that give up root have to reach the directory.
                while path.count > "/tmp".count {
                    try? FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
                    path = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
                }
                let sizes: [(String, Int64)] = [
                    ("empty", 0), ("small", 12_345), ("chunk", 1 << 20), ("large", 5_300_007),
                ]
                for (index, (name, size)) in sizes.enumerated() {
                    let content = ScriptedOrigin.Content.seeded(seed: UInt64(index) + 50, size: size)
                    let file = directory.path.appending(name).string
                    try Data(content.allBytes).write(to: URL(filePath: file))
                    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
                    files.append((name, content.sha256()))
                }
            }

            func wanted(_ base: String) -> [WantedFile] {
                files.map { WantedFile(path: $0.name, url: "\(base)/\($0.name)", sha256: $0.sha256) }
            }
        }

        /// Fetches the shelf from a server and checks every byte.
        private func fetch(_ files: [WantedFile], _ fetch: FetchOptions = FetchOptions()) async throws {
            try await Fleet.run { fleet in
                for name in ["a", "b"] { try await fleet.startWorker(name) }
                _ = try await fleet.client().createGroup(
                    GroupRequest(name: "g", sealed: true, tasks: files.map(\.task), fetch: fetch))
                try await fleet.waitForEnd(of: "g")
                try await fleet.check("g", files)
                let large = try await fleet.client().task("large", of: "g")
                #expect(large.contentVersion == 1)
                #expect(large.attempts == 0)
            }
        }

        private func trusting() async throws -> FetchOptions {
            var options = FetchOptions()
            options.caFile = try await TestCertificates.shared().caFile.string
            options.httpVersion = .http2
            return options
        }

        @Test(.enabled(if: NginxServer.isInstalled)) func nginx() async throws {
            let shelf = try Shelf()
            let server = try await NginxServer.start(documentRoot: shelf.directory.path)
            try await fetch(shelf.wanted(server.url))
            try await fetch(shelf.wanted(server.secureURL), try await trusting())
            try await server.stop()
        }

        @Test(.enabled(if: ApacheServer.isInstalled)) func apache() async throws {
            try await check { try await ApacheServer.start(root: $0) }
        }

        @Test(.enabled(if: CaddyServer.isInstalled)) func caddy() async throws {
            try await check { try await CaddyServer.start(root: $0) }
        }

        @Test(.enabled(if: LighttpdServer.isInstalled)) func lighttpd() async throws {
            // lighttpd sends validators only with files of a known type; without them a file is one stream (row 12).
            try await check {
                try await LighttpdServer.start(
                    root: $0, directives: #"mimetype.assign = ("" => "application/octet-stream")"#)
            }
        }

        /// A file that the origin keeps compressed, as object stores do, is stored as it is, or decompressed (row 13).
        @Test(.enabled(if: NginxServer.isInstalled)) func compressedObjects() async throws {
            let shelf = try Shelf()
            for file in shelf.files {
                let gzip = try await TestProcess.start(
                    "/usr/bin/gzip", arguments: ["-k", shelf.directory.path.appending(file.name).string])
                #expect(try await gzip.waitForExit(limit: .seconds(60)) == .exited(0))
            }
            let server = try await NginxServer.start(
                documentRoot: shelf.directory.path, serverDirectives: "add_header Content-Encoding gzip;")
            var coded: [WantedFile] = []
            var decoded: [WantedFile] = []
            for file in shelf.files {
                let digest = try FileDigest.sha256(shelf.directory.path.appending(file.name + ".gz"))
                coded.append(WantedFile(path: file.name, url: "\(server.url)/\(file.name).gz", sha256: digest))
                decoded.append(WantedFile(path: file.name, url: "\(server.url)/\(file.name).gz", sha256: file.sha256))
            }
            try await fetch(coded)
            var options = FetchOptions()
            options.decode = true
            try await fetch(decoded, options)
            try await server.stop()
        }

        /// Credentials by Digest, which costs no attempt (RFC 7616; row 38).
        @Test(.enabled(if: ApacheServer.isInstalled)) func digestAuthentication() async throws {
            let shelf = try Shelf()
            let users = shelf.directory.path.appending(".users")
            // MD5 of "me:shelf:secret word".
            try Data("me:shelf:53df91e9773760a920320d33fedc9a52\n".utf8).write(to: URL(filePath: users.string))
            let server = try await ApacheServer.start(
                root: shelf.directory.path,
                directives: """
                    <Location "/">
                        AuthType Digest
                        AuthName "shelf"
                        AuthUserFile "\(users)"
                        Require valid-user
                    </Location>
                    """)
            var options = FetchOptions()
            options.credentials = .init(user: "me", password: Secret("value:secret word"))
            try await fetch(shelf.wanted(server.url), options)
            try await server.stop()
        }

        private func check(_ start: (FilePath) async throws -> RealServer) async throws {
            let shelf = try Shelf()
            let server = try await start(shelf.directory.path)
            try await fetch(shelf.wanted(server.url))
            if let url = server.secureURL { try await fetch(shelf.wanted(url), try await trusting()) }
            try await server.stop()
        }

        @Test(.enabled(if: SquidServer.isInstalled && NginxServer.isInstalled)) func squidInBetween() async throws {
            let shelf = try Shelf()
            let origin = try await NginxServer.start(documentRoot: shelf.directory.path)
            let cache = try await SquidServer.start(inFrontOf: origin.port)
            try await fetch(shelf.wanted(cache.url))
            // Once more, now that the cache has the files.
            try await fetch(shelf.wanted(cache.url))
            try await cache.stop()

            let proxy = try await SquidServer.startForward()
            var options = try await trusting()
            options.proxy = Secret(proxy.url)
            try await fetch(shelf.wanted(origin.url), options)
            try await fetch(shelf.wanted(origin.secureURL), options)
            try await proxy.stop()
            try await origin.stop()
        }

        @Test(.enabled(if: VsftpdServer.isAvailable)) func vsftpd() async throws {
            let shelf = try Shelf()
            let plain = try await VsftpdServer.start(root: shelf.directory.path)
            try await fetch(shelf.wanted("ftp://127.0.0.1:\(plain.port)"))
            try await plain.stop()

            let secret = try await VsftpdServer.start(
                root: shelf.directory.path, encryption: .implicit, password: "let-me-in")
            var options = FetchOptions()
            options.caFile = try await TestCertificates.shared().caFile.string
            options.credentials = .init(user: "anonymous", password: Secret("let-me-in"))
            try await fetch(shelf.wanted("ftps://127.0.0.1:\(secret.port)"), options)
            try await secret.stop()
        }

        @Test(.enabled(if: SSHServer.isInstalled)) func sftpOfOpenSSH() async throws {
            let shelf = try Shelf()
            let server = try await SSHServer.start(root: shelf.directory.path)
            var options = FetchOptions()
            options.credentials = .init(user: server.user, password: Secret("value:"))
            options.privateKey = server.keyFile.string
            options.knownHosts = server.knownHostsFile.string
            let base = "sftp://127.0.0.1:\(server.server.port)\(shelf.directory.path)"
            try await fetch(shelf.wanted(base), options)

            // Row 37: a host key that is not the known one is a failed handshake, and nothing is fetched.
            options.knownHosts = server.wrongKnownHostsFile.string
            try await Fleet.run { [options] fleet in
                try await fleet.startWorker("a")
                let task = shelf.wanted(base)[1].task
                _ = try await fleet.client().createGroup(
                    GroupRequest(name: "g", sealed: true, tasks: [task], fetch: options))
                let group = try await fleet.waitForEnd(of: "g")
                #expect(group.state == .failed)
                #expect(try await fleet.client().task("small", of: "g").failure?.kind == .tls)
            }
            try await server.stop()
        }
    }
}
