import Glibc
import Logging
import MusterEmbeddedPostgres
import MusterTestSupport
import Subprocess
import SystemPackage

/// A state directory with a server for it, for all tests of this target.
struct PrivateServer {
    /// Removed at the end of the test, after everything in it has been stopped.
    let directory: TemporaryDirectory
    let stateDirectory: FilePath

    init(permissions: FilePermissions = [.ownerReadWriteExecute, .groupReadExecute, .otherReadExecute]) throws {
        directory = try TemporaryDirectory(permissions: permissions)
        stateDirectory = directory.path.appending("state")
    }

    /// The directory of the cluster, unless its data is kept elsewhere.
    var root: FilePath { stateDirectory.appending("pg") }

    /// A server for the state directory, or for another.
    func server(
        in other: FilePath? = nil,
        environment: [String: String] = Self.environment,
        content: ClusterContent? = nil,
        _ change: (inout EmbeddedPostgres.Configuration) -> Void = { _ in }
    ) -> EmbeddedPostgres {
        var configuration = EmbeddedPostgres.Configuration()
        change(&configuration)
        var logger = Logger(label: "test")
        logger.logLevel = .warning
        return EmbeddedPostgres(
            stateDirectory: other ?? stateDirectory,
            environment: environment,
            configuration: configuration,
            content: content,
            logger: logger
        )
    }

    static let environment = ["PATH": "/usr/local/bin:/usr/bin:/bin"]

    static let isRoot = geteuid() == 0
}

/// A statement that failed, and the output of `psql`.
struct QueryFailed: Error {
    let sql: String
    let output: String
}

/// Runs SQL, and returns what was printed, without the line end.
func query(_ sql: String, _ endpoint: EmbeddedPostgres.Endpoint) async throws -> String {
    let result = try await Subprocess.run(
        .name("psql"),
        arguments: ["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, endpoint.conninfo],
        output: .string(limit: 1 << 20),
        error: .combinedWithOutput
    )
    guard result.terminationStatus.isSuccess else {
        throw QueryFailed(sql: sql, output: result.standardOutput)
    }
    return result.standardOutput.split(separator: "\n").joined(separator: "\n")
}

/// Writes a small file.
func write(_ text: String, to path: FilePath, permissions: FilePermissions = .ownerReadWrite) throws {
    let descriptor = try FileDescriptor.open(
        path,
        .writeOnly,
        options: [.create, .truncate],
        permissions: permissions
    )
    try descriptor.closeAfter { _ = try descriptor.writeAll(text.utf8) }
}

/// Reads a small file.
func read(_ path: FilePath) throws -> String {
    let descriptor = try FileDescriptor.open(path, .readOnly)
    return try descriptor.closeAfter {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }
}
