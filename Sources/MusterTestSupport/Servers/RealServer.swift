import Glibc
import SystemPackage

/// A third-party server, in the foreground, on free ports of 127.0.0.1, with everything of its own in a temporary
/// directory. It ends with this object, and with the test process.
public final class RealServer: Sendable {
    /// It is not installed, or does not start.
    public enum Failure: Error, Sendable, Hashable {
        case notInstalled(String)
        case notStarted(String, log: String)
    }

    /// The directory and the ports for a configuration.
    struct Place: Sendable {
        let directory: FilePath
        let port: Int
        let securePort: Int
    }

    /// How it is run.
    struct Launch: Sendable {
        let program: FilePath
        let arguments: [String]
        var environment: [String: String?] = [:]
        /// Whether it listens at the second port too.
        var hasSecurePort = false
        /// Files of its directory that it logs to, besides its outputs.
        var logs: [String] = []
    }

    /// How it is named in errors.
    public let name: String
    /// Where it listens.
    public let port: Int
    /// Where it listens with TLS; nil if it does not.
    public let securePort: Int?
    let directory: TemporaryDirectory
    private let process: TestProcess
    private let logs: [String]

    /// `http://127.0.0.1:<port>`, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }
    /// `https://127.0.0.1:<securePort>`, without a slash at the end; nil without TLS.
    public var secureURL: String? { securePort.map { "https://127.0.0.1:\($0)" } }
    /// The id of the process and of its descendants.
    public var processIDs: [Int32] { [process.processID] + ProcessTree.descendants(of: process.processID) }

    /// Everything that it has printed and logged so far, for a failure to show.
    public var log: String {
        let files = logs.map { (try? Self.read(directory.path.appending($0))) ?? "" }
        return ([process.standardOutput, process.standardError] + files).joined(separator: "\n")
    }

    /// Starts it, and waits until it listens.
    ///
    /// - Parameters:
    ///   - permissions: Of its directory, for a server that writes there as another user.
    ///   - configure: Writes what it needs into its directory, and says how it is run. Called again with other ports if
    ///     another process has taken these.
    static func start(
        _ name: String,
        permissions: FilePermissions = [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute],
        configure: (Place) async throws -> Launch
    ) async throws -> RealServer {
        let directory = try TemporaryDirectory(permissions: permissions)
        var log = ""
        for _ in 0..<5 {
            let place = try await Place(directory: directory.path, port: FreePort.find(), securePort: FreePort.find())
            let launch = try await configure(place)
            let process = try await TestProcess.start(
                launch.program,
                arguments: launch.arguments,
                environment: launch.environment,
                workingDirectory: directory.path,
                outputLimitBytes: 16 << 20
            )
            let server = RealServer(
                name: name,
                port: place.port,
                securePort: launch.hasSecurePort ? place.securePort : nil,
                directory: directory,
                process: process,
                logs: launch.logs
            )
            if try await server.listens() { return server }
            log = server.log
        }
        throw Failure.notStarted(name, log: log)
    }

    private init(
        name: String,
        port: Int,
        securePort: Int?,
        directory: TemporaryDirectory,
        process: TestProcess,
        logs: [String]
    ) {
        self.name = name
        self.port = port
        self.securePort = securePort
        self.directory = directory
        self.process = process
        self.logs = logs
    }

    /// Stops it, and waits for its end and for the end of its descendants.
    public func stop() async throws {
        let descendants = ProcessTree.descendants(of: process.processID)
        try process.signal(SIGTERM)
        try await process.waitForExit()
        // Sessions that outlive their listener.
        for descendant in descendants { _ = kill(descendant, SIGKILL) }
        for descendant in descendants { try await ProcessTree.waitForEnd(of: descendant) }
    }

    /// Tries to connect until it can, or until the process has ended. Servers differ in how they announce that they
    /// listen, if they do so at all.
    private func listens() async throws -> Bool {
        for port in [port, securePort].compactMap(\.self) {
            let deadline = ContinuousClock.now + TimedOut.defaultLimit
            while await !FreePort.isListening(port) {
                guard process.exit == nil else { return false }
                guard ContinuousClock.now < deadline else {
                    throw TimedOut(what: "\(name) at port \(port)", limit: TimedOut.defaultLimit, details: log)
                }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        // Another process may have answered, while this one is about to end since its port is taken.
        return process.exit == nil
    }
}

extension RealServer {
    /// The path of a program; throws if it is not installed.
    static func program(_ name: String) throws -> FilePath {
        guard let program = InstalledProgram.find(name) else { throw Failure.notInstalled(name) }
        return program
    }

    /// Whether this process may become other users, as some servers need.
    static var isRoot: Bool { geteuid() == 0 }

    /// The first of these users that the machine has.
    static func user(_ names: String...) -> String {
        names.first { getpwnam($0) != nil } ?? "nobody"
    }

    /// Whether the machine has a user.
    static func exists(user: String) -> Bool { getpwnam(user) != nil }

    /// The number of a user's group.
    static func group(of user: String) -> UInt32 { getpwnam(user).map { $0.pointee.pw_gid } ?? getegid() }

    /// Makes a directory that all users can enter, unless there is one.
    static func makeDirectory(_ path: FilePath) throws {
        guard mkdir(path.string, 0o755) == 0 || errno == EEXIST else { throw Errno(rawValue: errno) }
    }

    /// Writes a file of a server's directory.
    static func write(
        _ text: String,
        to path: FilePath,
        permissions: FilePermissions = [.ownerReadWrite, .groupRead, .otherRead]
    ) throws {
        let file = try FileDescriptor.open(
            path,
            .writeOnly,
            options: [.create, .truncate, .closeOnExec],
            permissions: permissions
        )
        try file.closeAfter { _ = try file.writeAll(text.utf8) }
    }

    /// The text of a file, up to 1 MiB.
    static func read(_ path: FilePath) throws -> String {
        let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
        return try file.closeAfter {
            var buffer = [UInt8](repeating: 0, count: 1 << 20)
            let count = try buffer.withUnsafeMutableBytes { try file.read(into: $0) }
            return String(decoding: buffer[..<count], as: UTF8.self)
        }
    }
}
