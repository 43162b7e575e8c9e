import MusterTestSupport
import SystemPackage

/// The `curl` program: a client that speaks TLS and HTTP/2, and shows the tests what it received.
struct Curl {
    /// The result of a run.
    struct Answer {
        let exit: TestProcess.Exit
        /// The heads of all responses, one after the other.
        let heads: String
        let body: [UInt8]
        /// The verbose log and the error messages of curl.
        let log: String

        /// The head of the last response.
        var head: String { heads.split(separator: "\r\n\r\n").last.map(String.init) ?? "" }
    }

    static var isInstalled: Bool { InstalledProgram.find("curl") != nil }

    /// Gets a URL, with further arguments.
    static func get(_ url: String, _ arguments: String...) async throws -> Answer {
        try await get(url, arguments: arguments)
    }

    /// Gets a URL, with further arguments.
    static func get(
        _ url: String,
        arguments: [String],
        environment: [String: String?] = [:]
    ) async throws -> Answer {
        guard let program = InstalledProgram.find("curl") else { throw NotInstalled() }
        let directory = try TemporaryDirectory()
        let (body, heads) = (directory.path.appending("body"), directory.path.appending("heads"))
        let process = try await TestProcess.start(
            program,
            arguments: ["-q", "-sSv", "--max-time", "50", "-o", body.string, "-D", heads.string] + arguments + [url],
            environment: ["http_proxy": nil, "https_proxy": nil, "no_proxy": nil].merging(environment) { $1 }
        )
        let exit = try await process.waitForExit()
        return Answer(
            exit: exit,
            heads: String(decoding: try Self.read(heads), as: UTF8.self),
            body: try Self.read(body),
            log: process.standardError
        )
    }

    struct NotInstalled: Error {}

    /// The bytes of a file; empty if there is no file, since curl makes none without a body.
    static func read(_ path: FilePath) throws -> [UInt8] {
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(path, .readOnly)
        } catch Errno.noSuchFileOrDirectory {
            return []
        }
        return try file.closeAfter {
            var bytes: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = try piece.withUnsafeMutableBytes { try file.read(into: $0) }
                if count == 0 { return bytes }
                bytes += piece[..<count]
            }
        }
    }
}
