import Glibc
public import SystemPackage

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
    /// The port with TLS, where it speaks HTTP/2 too.
    public let securePort: Int
    /// `http://127.0.0.1:<port>`, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }
    /// `https://127.0.0.1:<securePort>`, without a slash at the end.
    public var secureURL: String { "https://127.0.0.1:\(securePort)" }
    private let process: TestProcess
    private let directory: TemporaryDirectory

    /// Whether this machine has it.
    public static var isInstalled: Bool { InstalledProgram.find("nginx") != nil }

    /// Starts it.
    ///
    /// - Parameters:
    ///   - documentRoot: What it serves.
    ///   - limitRate: Bytes per second and connection (`limit_rate`); nil is no limit.
    ///   - limitConnections: How many connections it serves at a time, and the status that others get (24); nil is no
    ///     limit. Over HTTP/2 every request counts as a connection.
    ///   - secret: If it is given, every URL has to be signed, see ``signed(_:expires:secret:)`` (21).
    ///   - serverDirectives: Further lines for the `server` block, each with its semicolon.
    public static func start(
        documentRoot: FilePath,
        limitRate: Int? = nil,
        limitConnections: (count: Int, status: Int)? = nil,
        secret: String? = nil,
        serverDirectives: String = ""
    ) async throws -> NginxServer {
        guard let program = InstalledProgram.find("nginx") else {
            throw Failure.notFound(searched: InstalledProgram.candidates("nginx"))
        }
        let certificates = try await TestCertificates.shared()
        let directory = try TemporaryDirectory()
        let limits = Limits(rate: limitRate, connections: limitConnections, secret: secret)
        var output = ""
        // Another process may take the ports before nginx binds them.
        for _ in 0..<5 {
            let place = try await RealServer.Place(
                directory: directory.path,
                port: FreePort.find(),
                securePort: FreePort.find()
            )
            let configuration = directory.path.appending("nginx.conf")
            let text = text(place, root: documentRoot, certificates, limits, serverDirectives: serverDirectives)
            try RealServer.write(text, to: configuration)
            let process = try await TestProcess.start(
                program,
                arguments: ["-p", directory.path.string, "-e", "stderr", "-c", configuration.string],
                outputLimitBytes: 64 << 20
            )
            do {
                // Written once the sockets listen, for each worker once it exists; "start worker processes" is too early.
                try await process.waitForLine(containing: "start worker process ", in: .standardError)
                return NginxServer(place, process: process, directory: directory)
            } catch let timedOut as TimedOut {
                output = timedOut.details
            }
        }
        throw Failure.notStarted(output: output)
    }

    private init(_ place: RealServer.Place, process: TestProcess, directory: TemporaryDirectory) {
        self.port = place.port
        self.securePort = place.securePort
        self.process = process
        self.directory = directory
    }

    /// The requests that have ended so far, in that order.
    public var requests: [Request] { Self.parse(process.standardOutput) }

    /// Waits until at least `count` requests have ended.
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
}
