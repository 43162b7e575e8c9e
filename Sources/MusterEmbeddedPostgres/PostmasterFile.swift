import Glibc
import SystemPackage

/// What `postmaster.pid` says: the lock file that a server keeps in its data directory while it runs.
///
/// Its lines are: process id, data directory, start time, port, socket directory, listen address, shared memory key,
/// status (PostgreSQL's `miscadmin.h`, `LOCK_FILE_LINE_…`). The later ones appear as the server comes up.
struct PostmasterFile: Sendable, Hashable {
    /// What the server says about itself.
    enum Status: Sendable, Hashable {
        /// Being started, or recovering.
        case starting
        /// Accepts connections.
        case ready
        /// Being stopped.
        case stopping
    }

    let processID: Int32
    let socketDirectory: FilePath?
    let status: Status

    /// The name of the file in the data directory.
    static let name: FilePath.Component = "postmaster.pid"

    /// Reads the file; nil when there is none, or when its first line is no process id.
    static func read(dataDirectory: FilePath) throws -> PostmasterFile? {
        let path = dataDirectory.appending(name)
        guard try PrivateFiles.status(path)?.type == .regular,
            let text = try PrivateFiles.tail(path, limitBytes: 8 * 1024)
        else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.first, let processID = Int32(first), processID > 1 else { return nil }
        let socketDirectory = lines.count > 4 && !lines[4].isEmpty ? FilePath(String(lines[4])) : nil
        let word = lines.count > 7 ? lines[7].prefix { !$0.isWhitespace } : ""
        let status: Status =
            switch word {
            case "ready", "standby": .ready
            case "stopping": .stopping
            default: .starting
            }
        return PostmasterFile(processID: processID, socketDirectory: socketDirectory, status: status)
    }

    /// Whether the process is alive and truly a server of this data directory: process ids are used again, in
    /// containers after every restart.
    func isServer(of dataDirectory: FilePath) async throws -> Bool {
        guard kill(processID, 0) == 0 || errno == EPERM else { return false }
        let words = try await commandLine()
        guard let program = words.first, FilePath(program).lastComponent == "postgres" else { return false }
        guard let flag = words.firstIndex(of: "-D"), words.indices.contains(flag + 1) else { return false }
        return words[flag + 1] == dataDirectory.string
    }

    /// Gives the file a process id that no process has, and leaves the rest as it is.
    ///
    /// A server refuses to start while the process of the file is alive, even if that is another program by now. The file
    /// must not be removed either: by its shared memory key a new server finds backends that outlived their server.
    func disown(dataDirectory: FilePath) throws {
        let path = dataDirectory.appending(Self.name)
        guard let text = try PrivateFiles.tail(path, limitBytes: 8 * 1024) else { return }
        let rest = text.drop { $0 != "\n" }
        try PrivateFiles.perform("write", path) {
            let descriptor = try FileDescriptor.open(path, .writeOnly, options: [.noFollow, .truncate, .closeOnExec])
            try descriptor.closeAfter { _ = try descriptor.writeAll("\(Int32.max)\(rest)".utf8) }
        }
    }

    private func commandLine() async throws -> [String] {
        return try ProcessRecord.words(of: processID)
    }
}
