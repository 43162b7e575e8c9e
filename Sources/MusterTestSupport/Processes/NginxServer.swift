public import SystemPackage

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A real nginx on a free port of 127.0.0.1, with everything of its own in a temporary directory. It ends with this
/// object, and with the test process.
public final class NginxServer: Sendable {
    /// One line of the access log. nginx writes it when the response has ended.
    public struct Request: Sendable, Hashable {
        /// The request target.
        public let uri: String
        /// The Range header; nil without one.
        public let range: String?
        /// The status.
        public let status: Int
        /// How many bytes of the body were sent.
        public let bodyBytesSent: Int64
        /// The number of the connection that it came by.
        public let connection: Int
    }

    /// There is no nginx, or it does not start.
    public enum Failure: Error, Sendable, Hashable {
        case notFound(searched: [FilePath])
        case notStarted(output: String)
    }

    /// The port.
    public let port: Int
    /// `http://127.0.0.1:<port>`, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }
    private let process: TestProcess
    private let directory: TemporaryDirectory

    /// Starts it.
    ///
    /// - Parameters:
    ///   - documentRoot: What it serves.
    ///   - limitRate: Bytes per second and connection (`limit_rate`); nil is no limit.
    ///   - serverDirectives: Further lines for the `server` block, each with its semicolon.
    public static func start(
        documentRoot: FilePath,
        limitRate: Int? = nil,
        serverDirectives: String = ""
    ) async throws -> NginxServer {
        let program = try find()
        let directory = try TemporaryDirectory()
        var output = ""
        // Somebody may take the port between our finding it and nginx's binding it.
        for _ in 0..<5 {
            let port = try await FreePort.find()
            let configuration = directory.path.appending("nginx.conf")
            try write(
                text(
                    directory: directory.path,
                    port: port,
                    documentRoot: documentRoot,
                    limitRate: limitRate,
                    serverDirectives: serverDirectives
                ),
                to: configuration
            )
            let process = try await TestProcess.start(
                program,
                arguments: ["-p", directory.path.string, "-e", "stderr", "-c", configuration.string],
                outputLimitBytes: 64 << 20
            )
            do {
                // Written once the sockets listen.
                try await process.waitForLine(containing: "start worker process", in: .standardError)
                return NginxServer(port: port, process: process, directory: directory)
            } catch let timedOut as TimedOut {
                output = timedOut.details
            }
        }
        throw Failure.notStarted(output: output)
    }

    /// The requests that have ended so far, in that order.
    public var requests: [Request] { Self.parse(process.standardOutput) }

    /// Waits until so many requests have ended.
    @discardableResult
    public func waitForRequests(
        count: Int,
        limit: Duration = TimedOut.defaultLimit
    ) async throws -> [Request] {
        try await process.waitForOutput(limit: limit) { Self.parse($0).count >= count }
        return requests
    }

    /// The ids of the master process and its workers.
    public var processIDs: [Int32] { [process.processID] + ProcessTree.descendants(of: process.processID) }

    /// Stops it, and waits for its end.
    public func stop() async throws {
        try process.signal(SIGTERM)
        try await process.waitForExit()
    }

    private init(port: Int, process: TestProcess, directory: TemporaryDirectory) {
        self.port = port
        self.process = process
        self.directory = directory
    }

    private static func parse(_ log: String) -> [Request] {
        log.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
            guard fields.count == 5, let status = Int(fields[2]), let bytes = Int64(fields[3]),
                let connection = Int(fields[4])
            else { return nil }
            return Request(
                uri: String(fields[0]),
                range: fields[1] == "-" || fields[1].isEmpty ? nil : String(fields[1]),
                status: status,
                bodyBytesSent: bytes,
                connection: connection
            )
        }
    }

    private static func find() throws -> FilePath {
        let directories = (Environs.value("PATH") ?? "").split(separator: ":").map(String.init)
        let candidates = (directories + ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"]).map {
            FilePath($0).appending("nginx")
        }
        for candidate in candidates where access(candidate.string, X_OK) == 0 { return candidate }
        throw Failure.notFound(searched: candidates)
    }

    private static func write(_ text: String, to path: FilePath) throws {
        let descriptor = try FileDescriptor.open(
            path,
            .writeOnly,
            options: [.create, .truncate, .closeOnExec],
            permissions: .ownerReadWrite
        )
        try descriptor.closeAfter { _ = try descriptor.writeAll(text.utf8) }
    }

    private static func text(
        directory: FilePath,
        port: Int,
        documentRoot: FilePath,
        limitRate: Int?,
        serverDirectives: String
    ) -> String {
        // As root its workers would become another user, who cannot enter directories of mode 0700.
        let user = geteuid() == 0 ? "user root;" : ""
        return """
            \(user)
            daemon off;
            worker_processes 1;
            pid \(directory)/nginx.pid;
            error_log stderr notice;
            events { worker_connections 4096; }
            http {
                log_format requests '$request_uri\t$http_range\t$status\t$body_bytes_sent\t$connection';
                access_log /dev/stdout requests;
                client_body_temp_path \(directory)/body;
                proxy_temp_path \(directory)/proxy;
                fastcgi_temp_path \(directory)/fastcgi;
                uwsgi_temp_path \(directory)/uwsgi;
                scgi_temp_path \(directory)/scgi;
                default_type application/octet-stream;
                sendfile on;
                tcp_nopush on;
                keepalive_requests 1000000;
                server {
                    listen 127.0.0.1:\(port) backlog=4096;
                    root "\(documentRoot)";
                    limit_rate \(limitRate ?? 0);
                    \(serverDirectives)
                }
            }
            """
    }
}
