import SystemPackage

/// What a server that has ended says of files that it can't use.
enum ClusterTrouble {
    /// Words of the messages by which a server gives up for the sake of its files. Others say what it lacks: memory, room, a permission.
    private static let damages = [
        "pg_control", "control file", "checkpoint record", "incompatible with server", "could not load",
        "could not open file", "could not open directory", "could not read", "could not access status",
        "could not access the server configuration", "critical system index", "invalid page",
        "not a valid data directory", "is missing", "WAL", "redo",
    ]
    /// Words that tell of files which are not the server's to use.
    private static let permissions = ["ermission denied", "invalid permissions", "wrong ownership"]
    /// What is no fault of the files, whatever file it is said of.
    private static let others =
        permissions + [
            "ermission", "No space", "Too many open files", "Cannot allocate", "Input/output error", "Read-only",
            "terminating connection",
        ]
    /// What comes before the words by which a server gives up.
    private static let lastWords = ["PANIC:  ", "FATAL:  ", "postgres: "]

    /// The message that tells of damage in a server's log; `nil` where none does.
    static func damage(in log: String) -> String? {
        messages(in: log, after: lastWords).last { says($0, damages) && !says($0, others) }
    }

    /// The message that tells of a file or directory that the server may not use; `nil` where none does.
    static func ownership(in log: String) -> String? {
        messages(in: log, after: ["LOG:  "] + lastWords).first { says($0, permissions) }
    }

    /// Why the server gave up, as far as it says so.
    static func reason(in log: String) -> String? { messages(in: log, after: lastWords).last }

    private static func messages(in log: String, after marks: [String]) -> [String] {
        log.split(separator: "\n").compactMap { line in
            marks.lazy.compactMap { line.firstRange(of: $0)?.upperBound }.first.map { String(line[$0...]) }
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

    /// The error that says that files belong to somebody else than the account that the server runs as.
    func foreign(_ reason: String, _ account: ServerAccount) throws -> EmbeddedPostgresError {
        let files = try [dataDirectory, logDirectory].filter { try PrivateFiles.status($0) != nil }
        return .foreignOwner(dataDirectory: dataDirectory, files: files, account: account.name, reason: reason)
    }

    /// What has to be removed to begin with a new database.
    var removable: [FilePath] { [dataDirectory] + [pointer].compactMap { $0 } }
}

extension EmbeddedPostgres {
    /// The error that says that the data of the server which runs is damaged; `nil` without one.
    public func damaged(_ reason: String) -> EmbeddedPostgresError? { location?.damaged(reason) }

    /// A path as a POSIX shell takes it.
    static func quoted(_ path: String) -> String {
        "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
