import FoundationEssentials
import Glibc
import MusterCurl

/// A private nginx over a temporary directory.
///
/// nginx inherits a listening socket that is made here (by the `NGINX` variable, which nginx uses to upgrade itself). So
/// the port is certainly free, and requests can be sent at once: they wait in the socket's queue until nginx is up. This
/// needs the master process: without it nginx crashes over an inherited socket.
final class Nginx: Sendable {
    static let path = executable("nginx")
    static let openssl = executable("openssl")

    let port: UInt16
    let directory: String
    let scheme: String
    private let pid: pid_t

    var root: String { directory + "/root" }
    var certificate: String { directory + "/cert.pem" }
    private let temporary: TemporaryFolder

    func url(_ path: String) -> String { "\(scheme)://localhost:\(port)\(path)" }

    /// `protocols` are words of the `listen` directive, `settings` stand in the `http` block, `locations` beside the usual ones.
    /// With TLS it speaks HTTP/2 unless `speaksHTTP2` is false.
    init(
        tls: Bool = false, speaksHTTP2: Bool = true, protocols: String = "", settings: String = "",
        locations: String = ""
    ) throws {
        guard let nginx = Self.path else { throw SystemFailure(call: "nginx", code: ENOENT) }
        temporary = try TemporaryFolder("nginx")
        let directory = temporary.path
        for name in ["root", "temp"] { mkdir(directory + "/" + name, 0o700) }
        let (listener, port) = try listeningSocket()
        defer { close(listener) }
        if tls { try makeCertificate(in: directory) }
        let listen = "127.0.0.1:\(port) \(tls ? speaksHTTP2 ? "ssl http2" : "ssl" : protocols)"
        let configuration = Self.configuration(directory, listen, tls: tls, settings, locations)
        try Data(configuration.utf8).write(to: URL(filePath: directory + "/nginx.conf"))
        self.port = port
        self.directory = directory
        self.scheme = tls ? "https" : "http"
        self.pid = try spawn(
            [nginx, "-c", directory + "/nginx.conf", "-p", directory, "-e", directory + "/error.log"],
            environment: ["NGINX=3;"],
            passing: [(listener, 3)]
        )
    }

    /// Puts a file under its root.
    func write(_ content: [UInt8], to name: String) throws {
        try Data(content).write(to: URL(filePath: root + "/" + name))
    }

    /// Kills nginx at once, so that its TLS connections end without close_notify.
    func crash() { kill(-pid, SIGKILL) }

    /// Ends the process, waits for it and removes its directory.
    func stop() {
        kill(pid, SIGTERM)
        _ = waitForEnd(of: pid)
        temporary.remove()
    }

    private static func configuration(
        _ directory: String,
        _ listen: String,
        tls: Bool,
        _ settings: String,
        _ locations: String
    ) -> String {
        """
        daemon off;
        worker_processes 1;
        \(geteuid() == 0 ? "user root;" : "")
        pid \(directory)/nginx.pid;
        error_log \(directory)/error.log warn;
        events { worker_connections 256; }
        http {
            access_log off;
            client_body_temp_path \(directory)/temp/body;
            proxy_temp_path \(directory)/temp/proxy;
            fastcgi_temp_path \(directory)/temp/fastcgi;
            uwsgi_temp_path \(directory)/temp/uwsgi;
            scgi_temp_path \(directory)/temp/scgi;
            client_max_body_size 0;
            keepalive_requests 100000;
            sendfile on;
            \(settings)
            server {
                listen \(listen);
                \(tls ? "ssl_certificate \(directory)/cert.pem; ssl_certificate_key \(directory)/key.pem;" : "")
                root \(directory)/root;
                location /put/ { dav_methods PUT; create_full_put_path on; }
                location /small { return 200 "small body\\n"; }
                \(locations)
            }
        }

        """
    }
}

/// Gives a private nginx and a loop to the body and ends both afterwards, whatever happens.
func withNginx<Result>(
    tls: Bool = false,
    protocols: String = "",
    settings: String = "",
    locations: String = "",
    _ configuration: CurlLoopConfiguration = CurlLoopConfiguration(),
    _ body: (CurlLoop, Nginx) async throws -> Result
) async throws -> Result {
    let nginx = try Nginx(tls: tls, protocols: protocols, settings: settings, locations: locations)
    defer { nginx.stop() }
    return try await withLoop(configuration) { try await body($0, nginx) }
}
