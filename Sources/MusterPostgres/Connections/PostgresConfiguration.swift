/// Where the database is, and how a connection to it behaves.
///
/// Its description never shows the connection string, which may hold a password.
public struct PostgresConfiguration: Sendable {
    let connectionString: String

    /// What the server shows in `pg_stat_activity`.
    public var applicationName = "muster"
    /// The schemas that unqualified names are looked up in; empty leaves the server's own setting.
    public var searchPath: [String] = []
    /// The server's own limit on a statement, as a second line behind our deadlines. `nil` leaves the server's setting.
    public var statementTimeout: Duration?
    /// How long a transaction may stay idle before the server ends the session, so that a stopped coordinator (fault
    /// F4) cannot hold its locks for ever. `nil` leaves the server's setting.
    public var idleInTransactionTimeout: Duration? = .seconds(60)
    /// How often the server looks, while a statement runs, whether its client is still there, so that a killed coordinator's
    /// statement does not go on and hold its locks (fault F3). `nil` leaves the server's setting, which is never to look.
    public var clientCheckInterval: Duration? = .seconds(1)
    /// How long a statement waits for a lock. `nil` leaves the server's setting.
    public var lockTimeout: Duration?
    /// Further server settings for the session, such as `synchronous_commit`.
    public var settings: [String: String] = [:]

    /// How long connecting to each host of the connection string may take.
    public var connectTimeout: Duration = .seconds(10)
    /// The time limit of a statement without a deadline of its own.
    public var defaultTimeout: Duration = .seconds(30)
    /// How long, after a deadline or a cancellation, the server may take to confirm before the connection is closed.
    public var cancelGrace: Duration = .seconds(1)
    /// How long TCP may go without an acknowledgement before the connection is broken.
    public var tcpUserTimeout: Duration = .seconds(15)
    /// After how much silence TCP asks whether the server is still there.
    public var keepaliveIdle: Duration = .seconds(20)
    /// How many statements a connection keeps prepared; the least recently used goes first. 0 prepares none.
    public var preparedStatementLimit = 256

    /// Takes a connection string: a URI (`postgresql://…`) or keywords (`host=… dbname=…`), with several hosts if need
    /// be.
    ///
    /// It is checked when a connection is opened. Its keepalive settings take precedence over the settings here.
    public init(_ connectionString: String) {
        self.connectionString = connectionString
    }
}

extension PostgresConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The application's name, and nothing that could be secret.
    public var description: String { "PostgresConfiguration(\(applicationName))" }
    /// The same as `description`.
    public var debugDescription: String { description }
    /// Shows no members, so that `dump` gives no password away.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension PostgresConfiguration {
    /// The `options` of the start-up packet: `-c name=value`, with blanks and backslashes escaped.
    var startupOptions: String {
        var all = settings
        if !searchPath.isEmpty {
            all["search_path"] = searchPath.map { SQL.quoted(identifier: $0) }.joined(separator: ",")
        }
        all["statement_timeout"] = statementTimeout.map { "\($0.wholeMilliseconds)" } ?? all["statement_timeout"]
        all["lock_timeout"] = lockTimeout.map { "\($0.wholeMilliseconds)" } ?? all["lock_timeout"]
        if let idleInTransactionTimeout {
            all["idle_in_transaction_session_timeout"] = "\(idleInTransactionTimeout.wholeMilliseconds)"
        }
        if let clientCheckInterval {
            all["client_connection_check_interval"] = "\(clientCheckInterval.wholeMilliseconds)"
        }
        return all.sorted { $0.key < $1.key }
            .map { "-c \(Self.escaped($0.key))=\(Self.escaped($0.value))" }
            .joined(separator: " ")
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text {
            if character == " " || character == "\\" {
                escaped.append("\\")
            }
            escaped.append(character)
        }
        return escaped
    }
}

extension Duration {
    /// Milliseconds, rounded up so that a wait never ends before its time, and at most what 32 bits hold.
    var wholeMilliseconds: Int32 {
        guard self > .zero else { return 0 }
        let (seconds, attoseconds) = components
        guard seconds < 2_000_000 else { return 2_000_000_000 }
        let fraction = (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return Int32(seconds * 1_000 + fraction)
    }
}
