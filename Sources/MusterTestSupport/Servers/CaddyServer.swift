public import SystemPackage

/// A real caddy, by HTTP/1.1 and with TLS by HTTP/2 too.
public enum CaddyServer {
    /// Whether this machine has it.
    public static var isInstalled: Bool { InstalledProgram.find("caddy") != nil }

    /// Starts it.
    ///
    /// - Parameters:
    ///   - root: What it serves.
    ///   - directives: Further lines of both of its sites.
    public static func start(root: FilePath, directives: String = "") async throws -> RealServer {
        let program = try RealServer.program("caddy")
        let certificates = try await TestCertificates.shared()
        return try await RealServer.start("caddy") { place in
            let file = place.directory.appending("Caddyfile")
            let site = """
                    bind 127.0.0.1
                    root * "\(root)"
                    file_server
                    \(directives)
                """
            try RealServer.write(
                """
                {
                    admin off
                    auto_https off
                    servers {
                        protocols h1 h2
                    }
                }
                http://127.0.0.1:\(place.port) {
                \(site)
                }
                https://127.0.0.1:\(place.securePort) {
                    tls \(certificates.certificateFile(.trusted)) \(certificates.keyFile(.trusted))
                \(site)
                }

                """,
                to: file
            )
            let home = place.directory.string
            return RealServer.Launch(
                program: program,
                arguments: ["run", "--config", file.string, "--adapter", "caddyfile"],
                environment: ["HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home],
                hasSecurePort: true
            )
        }
    }
}
