public import SystemPackage

/// A real lighttpd, by HTTP/1.1 and HTTP/2 (by prior knowledge, or with TLS).
public enum LighttpdServer {
    /// Whether this machine has it.
    public static var isInstalled: Bool { InstalledProgram.find("lighttpd") != nil }

    /// Starts it.
    ///
    /// - Parameters:
    ///   - root: What it serves.
    ///   - directives: Further lines of its configuration.
    public static func start(root: FilePath, directives: String = "") async throws -> RealServer {
        let program = try RealServer.program("lighttpd")
        let certificates = try await TestCertificates.shared()
        return try await RealServer.start("lighttpd") { place in
            let file = place.directory.appending("lighttpd.conf")
            try RealServer.write(
                """
                server.modules = ( "mod_openssl" )
                server.document-root = "\(root)"
                server.upload-dirs = ( "\(place.directory)" )
                server.bind = "127.0.0.1"
                server.port = \(place.port)
                $SERVER["socket"] == "127.0.0.1:\(place.securePort)" {
                    ssl.engine = "enable"
                    ssl.pemfile = "\(certificates.bundleFile(.trusted))"
                }
                \(directives)

                """,
                to: file
            )
            return RealServer.Launch(program: program, arguments: ["-D", "-f", file.string], hasSecurePort: true)
        }
    }
}
