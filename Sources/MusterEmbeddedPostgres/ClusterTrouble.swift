import SystemPackage

/// Finds what a server that has ended says about files that it can't use.
enum ClusterTrouble {
    /// Words in the last messages of a server that ends because of its files. Other messages say what it lacks: memory,
    /// room, a permission.
    private static let damages = [
        "pg_control", "control file", "checkpoint record", "incompatible with server", "could not load",
        "could not open file", "could not open directory", "could not read", "could not access status",
        "could not access the server configuration", "critical system index", "invalid page",
        "not a valid data directory", "is missing", "WAL", "redo", "\" does not exist",
    ]
    /// Words about files that the server has no permission to use.
    private static let permissions = ["ermission denied", "invalid permissions", "wrong ownership"]
    /// Words about failures that are not the fault of the files, whatever file is named.
    private static let others =
        permissions + [
            "Operation not permitted", "No space", "Too many open files", "Cannot allocate", "Input/output error",
            "Read-only",
            "terminating connection",
        ]
    /// The prefixes of the messages with which a server ends.
    private static let lastWords = ["PANIC:  ", "FATAL:  ", "postgres: ", "initdb: error: "]

    /// The message in a server's log that tells of damage; `nil` if there is none.
    static func damage(in log: String) -> String? {
        messages(in: log, after: lastWords).last { says($0, damages) && !says($0, others) }
    }

    /// Whether a server has ended because of its settings.
    static func blamesSettings(_ log: String) -> Bool {
        !isDenied(in: log)
            && reason(in: log).map {
                says($0, ["contains errors", "could not access the server configuration", "could not load"])
                    && says($0, [".conf"])
            } == true
    }

    /// Whether a server's log tells of a file or directory that the server may not use.
    static func isDenied(in log: String) -> Bool { says(log, permissions) }

    /// Whether a text tells of a full disk. The server writes the init file at the first connection of a client, and logs a
    /// failure of that without its cause.
    static func isOfFullDisk(_ text: String) -> Bool { says(text, ["No space left", "could not write init file"]) }

    /// The message about such a file or directory, if the log has it in a known form.
    static func denial(in log: String) -> String? {
        messages(in: log, after: ["LOG:  "] + lastWords).first { says($0, permissions) }
    }

    /// The message about a file that no user may change.
    static func immutability(in log: String) -> String? {
        messages(in: log, after: lastWords).last { says($0, ["Operation not permitted"]) }
    }

    /// Why the server gave up, as far as it says so.
    static func reason(in log: String) -> String? { messages(in: log, after: lastWords).last }

    private static func messages(in log: String, after marks: [String]) -> [String] {
        log.split(separator: "\n").compactMap { line in
            marks.lazy.compactMap { line.ranges(of: $0).last?.upperBound }.first.map { start in
                // The text of a client's error has the SQLSTATE before the message.
                String(line[start...].trimmingPrefix(#/[0-9A-Z]{5}: /#))
            }
        }
    }

    private static func says(_ text: String, _ words: [String]) -> Bool {
        words.contains { text.firstRange(of: $0) != nil }
    }
}

extension ClusterLocation {
    /// The error that says that the data is damaged.
    func damaged(_ reason: String) -> EmbeddedPostgresError {
        .damaged(dataDirectory: dataDirectory, files: removable, reason: reason)
    }

    /// The error that says that files belong to a user other than the account that the server runs as.
    func foreign(_ reason: String, _ account: ServerAccount) throws -> EmbeddedPostgresError {
        .foreignOwner(dataDirectory: dataDirectory, files: try given, account: account.name, reason: reason)
    }

    /// What keeps a server from its files, according to its log; `nil` where the log says nothing about them.
    func trouble(in log: String, _ account: ServerAccount) async throws -> EmbeddedPostgresError? {
        if ClusterTrouble.isDenied(in: log) {
            if let barrier = try await barrier(account) { return barrier }
            let foreign = try given.compactMap { try PrivateFiles.foreign(in: $0, to: account) }.first
            let reason = foreign.map { "\($0.path) belongs to the user \($0.owner.name)" }
            return try self.foreign(reason ?? ClusterTrouble.denial(in: log) ?? "Permission denied", account)
        }
        if let reason = ClusterTrouble.immutability(in: log) {
            return .immutable(dataDirectory: dataDirectory, files: try given, reason: reason)
        }
        return ClusterTrouble.damage(in: log).map(damaged)
    }

    /// The error that names the directories that keep an account from the data, whatever it owns there; `nil` where no
    /// directory does.
    private func barrier(_ account: ServerAccount) async throws -> EmbeddedPostgresError? {
        guard try await !Self.canReach(root, account: account) else { return nil }
        var directories: [FilePath] = []
        var directory = root
        while !directory.components.isEmpty {
            if let found = try PrivateFiles.status(directory), !account.canPass(found) { directories.append(directory) }
            directory.removeLastComponent()
        }
        return .impassable(
            dataDirectory: dataDirectory, directories: directories.isEmpty ? [root] : directories.reversed(),
            account: account.name)
    }

    /// The existing directories that belong to the server's account.
    private var given: [FilePath] {
        get throws { try [dataDirectory, logDirectory].filter { try PrivateFiles.status($0) != nil } }
    }

    /// What has to be removed to begin with a new database.
    var removable: [FilePath] { [dataDirectory] + [pointer].compactMap { $0 } }
}

extension EmbeddedPostgres {
    /// The error that says that the data of the running server is damaged; `nil` without a server.
    public func damaged(_ reason: String) -> EmbeddedPostgresError? {
        location?.damaged(ClusterTrouble.reason(in: "FATAL:  \(reason)") ?? reason)
    }

    /// A path as a POSIX shell takes it.
    static func quoted(_ path: String) -> String {
        "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
