public import SystemPackage

/// A real apache2, by HTTP/1.1 and with TLS by HTTP/2 too.
public enum ApacheServer {
    /// Where Debian keeps its modules.
    private static let modules = FilePath("/usr/lib/apache2/modules")

    /// Whether this machine has it, with its modules where Debian puts them.
    public static var isInstalled: Bool {
        InstalledProgram.find("apache2") != nil && (try? modules.stat()) != nil
    }

    /// Starts it. If root starts it, it reads its files as another user, which needs access to them.
    ///
    /// - Parameters:
    ///   - root: What it serves.
    ///   - directives: Further lines of its configuration.
    public static func start(root: FilePath, directives: String = "") async throws -> RealServer {
        let program = try RealServer.program("apache2")
        let certificates = try await TestCertificates.shared()
        return try await RealServer.start("apache2") { place in
            let file = place.directory.appending("apache2.conf")
            try RealServer.write(
                text(place, root: root, certificates: certificates, directives: directives),
                to: file
            )
            return RealServer.Launch(
                program: program,
                arguments: ["-d", place.directory.string, "-f", file.string, "-DFOREGROUND"],
                hasSecurePort: true
            )
        }
    }

    private static func text(
        _ place: RealServer.Place,
        root: FilePath,
        certificates: TestCertificates,
        directives: String
    ) -> String {
        let names = [
            "mpm_event", "auth_digest", "authn_core", "authn_file", "authz_core", "authz_user", "headers", "http2",
            "socache_shmcb", "ssl",
        ]
        let loaded = names.map { "LoadModule \($0)_module \(modules)/mod_\($0).so" }.joined(separator: "\n")
        let user = RealServer.user("www-data")
        let identity = RealServer.isRoot ? "User \(user)\nGroup #\(RealServer.group(of: user))" : ""
        return """
            \(loaded)
            \(identity)
            ServerName 127.0.0.1
            DefaultRuntimeDir \(place.directory)
            PidFile \(place.directory)/apache2.pid
            ErrorLog /dev/stderr
            LogFormat "%r %{Range}i %>s %B" requests
            CustomLog /dev/stdout requests
            Listen 127.0.0.1:\(place.port)
            Listen 127.0.0.1:\(place.securePort)
            StartServers 1
            DocumentRoot "\(root)"
            <Directory "\(root)">
                Require all granted
            </Directory>
            <VirtualHost 127.0.0.1:\(place.securePort)>
                Protocols h2 http/1.1
                SSLEngine on
                SSLCertificateFile \(certificates.certificateFile(.trusted))
                SSLCertificateKeyFile \(certificates.keyFile(.trusted))
            </VirtualHost>
            \(directives)

            """
    }
}
