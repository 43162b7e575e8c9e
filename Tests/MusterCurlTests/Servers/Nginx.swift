import FoundationEssentials
import MusterCurl

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A private nginx over a temporary directory.
///
/// Its listening socket is made here and inherited by it (the `NGINX` variable, by which nginx upgrades itself), so that
/// the port is free for certain and requests can be sent at once: they wait in the socket's queue until nginx is up. It
/// needs its master process for that: without one nginx crashes over an inherited socket.
final class Nginx: Sendable {
    static let path = executable(["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"])
    static let openssl = executable(["/usr/bin/openssl", "/usr/local/bin/openssl"])

    private static func executable(_ candidates: [String]) -> String? {
        candidates.first { access($0, X_OK) == 0 }
    }

    let port: UInt16
    let directory: String
    let scheme: String
    private let pid: pid_t

    var root: String { directory + "/root" }
    var certificate: String { directory + "/cert.pem" }

    func url(_ path: String) -> String { "\(scheme)://localhost:\(port)\(path)" }

    init(tls: Bool = false) throws {
        guard let nginx = Self.path else { throw SystemFailure(call: "nginx", code: ENOENT) }
        var template = Array("/tmp/muster-nginx-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemFailure(call: "mkdtemp", code: errno) }
        let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        for name in ["root", "temp"] { mkdir(directory + "/" + name, 0o700) }
        let (listener, port) = try listeningSocket()
        defer { close(listener) }
        if tls { try Self.makeCertificate(directory) }
        try Data(Self.configuration(directory, port, tls: tls).utf8)
            .write(to: URL(filePath: directory + "/nginx.conf"))
        self.port = port
        self.directory = directory
        self.scheme = tls ? "https" : "http"
        self.pid = try spawn(
            [nginx, "-c", directory + "/nginx.conf", "-p", directory, "-e", directory + "/error.log"],
            environment: ["NGINX=3;"],
            passing: listener
        )
    }

    /// Ends the process, waits for it and removes its directory.
    func stop() {
        kill(pid, SIGTERM)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        try? FileManager.default.removeItem(atPath: directory)
    }

    private static func configuration(_ directory: String, _ port: UInt16, tls: Bool) -> String {
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
            server {
                listen 127.0.0.1:\(port)\(tls ? " ssl http2" : "");
                \(tls ? "ssl_certificate \(directory)/cert.pem; ssl_certificate_key \(directory)/key.pem;" : "")
                root \(directory)/root;
                location /put/ { dav_methods PUT; create_full_put_path on; }
                location /small { return 200 "small body\\n"; }
            }
        }

        """
    }

    private static func makeCertificate(_ directory: String) throws {
        guard let openssl else { throw SystemFailure(call: "openssl", code: ENOENT) }
        let pid = try spawn(
            [
                openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", directory + "/key.pem", "-out", directory + "/cert.pem", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
            ],
            environment: [],
            passing: nil
        )
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else { throw SystemFailure(call: "openssl", code: status) }
    }
}

/// Gives a private nginx and a loop to the body and ends both afterwards, whatever happens.
func withNginx<Result>(
    tls: Bool = false,
    _ configuration: CurlLoopConfiguration = CurlLoopConfiguration(),
    _ body: (CurlLoop, Nginx) async throws -> Result
) async throws -> Result {
    let nginx = try Nginx(tls: tls)
    defer { nginx.stop() }
    return try await withLoop(configuration) { try await body($0, nginx) }
}

/// Starts a process whose descriptor 3 is `descriptor` and whose output goes nowhere.
private func spawn(_ arguments: [String], environment: [String], passing descriptor: Int32?) throws -> pid_t {
    #if canImport(Darwin)
    var actions: posix_spawn_file_actions_t?
    #else
    var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    // Made by way of a high number, because dup2 onto itself would leave close-on-exec set.
    if let descriptor {
        posix_spawn_file_actions_adddup2(&actions, descriptor, 200)
        posix_spawn_file_actions_adddup2(&actions, 200, 3)
        posix_spawn_file_actions_addclose(&actions, 200)
    }
    var argv = arguments.map { strdup($0) } + [nil]
    var envp = environment.map { strdup($0) } + [nil]
    defer { for pointer in argv + envp { free(pointer) } }
    var pid: pid_t = 0
    let code = posix_spawn(&pid, arguments[0], &actions, nil, &argv, &envp)
    guard code == 0 else { throw SystemFailure(call: "posix_spawn", code: code) }
    return pid
}
