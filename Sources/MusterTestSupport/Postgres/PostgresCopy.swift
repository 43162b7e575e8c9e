import Glibc
import SystemPackage

/// A copy of a cluster in a directory of its own: a standby that follows its source, or a backup that is restored.
///
/// It has the settings of its source. It ends, and its files are removed, with this object and with the test process.
public actor PostgresCopy {
    /// What the copy is started as.
    public enum Role: Sendable, Hashable {
        /// Follows the source until it is promoted. To the source it is called `standby`.
        case standby
        /// Recovers what it has, begins a timeline of its own, and takes writes.
        case restored
    }

    /// The copy can't be made, or does not start.
    public struct Failure: Error, Sendable, Hashable {
        /// What failed.
        public let what: String
        /// What the program printed.
        public let output: String
    }

    /// The settings of a cluster that is to be copied.
    ///
    /// - Parameter isSynchronous: Whether each commit waits until the standby has it. No commit is confirmed before there is one.
    public static func sourceSettings(isSynchronous: Bool = false) -> [String: String] {
        var settings = [
            "wal_level": "replica", "max_wal_senders": "8", "wal_keep_size": "256MB", "full_page_writes": "on",
            "synchronous_commit": "on",
        ]
        if isSynchronous { settings["synchronous_standby_names"] = "standby" }
        return settings
    }

    /// The directory of the server's Unix socket, also while there is no server.
    public nonisolated let socketDirectory: String
    /// The connection string of the database `muster` of the copy.
    public nonisolated let conninfo: String
    private let source: TestPostgres
    private let directory: TemporaryDirectory
    private let dataDirectory: FilePath
    /// The command of the source's server, and the account that it runs as.
    private let words: [String]
    private let account: (user: UInt32, group: UInt32)
    private var process: TestProcess?

    /// Prepares a copy of a running cluster; nothing is copied yet.
    public init(of source: TestPostgres) async throws {
        guard let process = await source.processID, let data = await source.dataDirectory else {
            throw Failure(what: "a copy of a stopped server", output: "")
        }
        let directory = try TemporaryDirectory()
        let place = directory.path.string
        let original = await source.conninfo
        // The server of the copy runs as the account of its source's server, and makes the data directory.
        let owner = try data.stat()
        let account = (user: owner.userID.rawValue, group: owner.groupID.rawValue)
        guard chown(place, account.user, account.group) == 0 else { throw Errno(rawValue: errno) }
        self.source = source
        self.directory = directory
        self.account = account
        words = ProcessTree.commandLine(of: process)
        dataDirectory = directory.path.appending("data")
        socketDirectory = place
        conninfo = "\(original) host=\(place)"
    }

    /// Copies the source as it is now, while it runs.
    public func copySource() async throws {
        let original = await source.conninfo
        try await run(
            program("pg_basebackup"),
            ["-d", original, "-D", dataDirectory.string, "-X", "stream", "-c", "fast", "--no-sync"])
    }

    /// Copies another copy that was never started: a second restore of one backup.
    public func copy(_ backup: PostgresCopy) async throws {
        try await run("/bin/cp", ["-a", backup.dataDirectory.string, dataDirectory.string])
    }

    /// Starts the server, and waits until it answers in its role.
    public func start(as role: Role) async throws {
        var settings = [
            "unix_socket_directories=\(socketDirectory)", "logging_collector=off", "synchronous_standby_names=",
        ]
        let signal: String
        switch role {
        case .standby:
            signal = "standby.signal"
            let original = await source.conninfo
            settings.append("primary_conninfo=\(original) application_name=standby")
        case .restored:
            signal = "recovery.signal"
            // There is no archive: all that the backup needs is in it.
            settings.append("restore_command=false")
        }
        try await run("/usr/bin/touch", [dataDirectory.appending(signal).string])
        let process = try await launch(program("postgres"), arguments(settings))
        self.process = process
        let expected = role == .standby ? "t\n" : "f\n"
        try await eventually(
            "the server of the copy",
            isTrue: {
                guard process.exit == nil else {
                    throw Failure(what: "the server of the copy", output: process.standardError)
                }
                // Until then it refuses connections.
                return (try? await source.execute("SELECT pg_is_in_recovery()", conninfo: conninfo)) == expected
            })
    }

    /// Waits until a standby has all that its source has committed.
    public func catchUp() async throws {
        let end = try await source.execute("SELECT pg_current_wal_flush_lsn()").filter { !$0.isNewline }
        try await eventually("the standby at \(end)") {
            try await source.execute("SELECT pg_last_wal_replay_lsn() >= '\(end)'", conninfo: conninfo) == "t\n"
        }
    }

    /// Makes a standby the primary, and waits until it takes writes.
    public func promote() async throws {
        let answer = try await source.execute("SELECT pg_promote(true, 60)", conninfo: conninfo)
        guard answer == "t\n" else { throw Failure(what: "the promotion", output: answer) }
    }

    /// Stops the server in order, unless it is stopped.
    public func stop() async throws {
        guard let process else { return }
        try process.signal(SIGINT)
        try await process.waitForExit()
        self.process = nil
    }

    /// Kills the server and all of its processes (SIGKILL), as the loss of its machine does.
    public func crash() async throws {
        guard let process else { return }
        try await ProcessTree.kill(process.processID)
        try await process.waitForExit()
        self.process = nil
    }

    /// The arguments of the source's server, with another directory and further settings, of which the last of a name counts.
    private func arguments(_ settings: [String]) -> [String] {
        var arguments = Array(words.dropFirst())
        if let place = arguments.firstIndex(of: "-D"), place + 1 < arguments.count {
            arguments[place + 1] = dataDirectory.string
        }
        return arguments + settings.flatMap { ["-c", $0] }
    }

    /// A program of the source's version of PostgreSQL.
    private func program(_ name: String) -> FilePath {
        FilePath(words.first ?? "").removingLastComponent().appending(name)
    }

    private func run(_ program: FilePath, _ arguments: [String]) async throws {
        let process = try await launch(program, arguments)
        guard try await process.waitForExit() == .exited(0) else {
            throw Failure(what: program.string, output: process.standardError)
        }
    }

    /// Starts a program as the account of the server.
    private func launch(_ program: FilePath, _ arguments: [String]) async throws -> TestProcess {
        var command = [program.string] + arguments
        if account.user != geteuid() {
            let change = ["--reuid=\(account.user)", "--regid=\(account.group)", "--clear-groups", "--"]
            command = [try RealServer.program("setpriv").string] + change + command
        }
        return try await TestProcess.start(
            FilePath(command[0]), arguments: Array(command.dropFirst()), workingDirectory: directory.path)
    }
}
