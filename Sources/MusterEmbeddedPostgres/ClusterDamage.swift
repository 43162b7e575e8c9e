import SystemPackage

/// What a server says of data that it can't use.
enum ClusterDamage {
    /// Words of the messages by which a server gives up for the sake of its files. Others say what it lacks: memory, room, a permission.
    private static let signs = [
        "pg_control", "control file", "checkpoint record", "incompatible with server", "could not load",
        "could not open file", "could not open directory", "could not read", "could not access status",
        "critical system index", "invalid page", "not a valid data directory", "is missing", "WAL", "redo",
    ]
    /// What is no fault of the files, whatever file it is said of.
    private static let others = [
        "ermission", "No space", "Too many open files", "Cannot allocate", "Input/output error", "Read-only",
        "terminating connection",
    ]

    /// The message that tells of damage in a server's log; `nil` where none does.
    static func reason(in log: String) -> String? {
        var reason: String?
        for line in log.split(separator: "\n") {
            guard let message = ["PANIC:  ", "FATAL:  "].lazy.compactMap({ line.firstRange(of: $0)?.upperBound }).first
            else { continue }
            let text = line[message...]
            func says(_ words: [String]) -> Bool { words.contains { text.firstRange(of: $0) != nil } }
            if says(signs), !says(others) { reason = String(text) }
        }
        return reason
    }
}

extension ClusterLocation {
    /// The error that says so.
    func damaged(_ reason: String) -> EmbeddedPostgresError {
        .damaged(dataDirectory: dataDirectory, files: [dataDirectory] + [pointer].compactMap { $0 }, reason: reason)
    }
}

extension EmbeddedPostgres {
    /// The error that says that the data of the server which runs is damaged; `nil` without one.
    public func damaged(_ reason: String) -> EmbeddedPostgresError? { location?.damaged(reason) }

    /// A path as a POSIX shell takes it.
    static func quoted(_ path: String) -> String {
        "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
