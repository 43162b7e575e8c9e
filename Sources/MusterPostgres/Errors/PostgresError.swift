/// Everything that can go wrong between a statement and its rows, except that the task was cancelled, which is
/// `CancellationError` as everywhere. No case ever holds a password or a bound value of ours.
public enum PostgresError: Error, Sendable, Hashable {
    /// The server answered with an error. The statement had no effect, unless the session ended with it (see
    /// `outcome`).
    case server(Server)
    /// The connection could not be made, or broke.
    case connection(Connection)
    /// Time ran out, and the connection is still in order.
    case deadlineExceeded(Stage)
    /// A column cannot be read as the type that was asked for.
    case decoding(Decoding)
    /// The caller did something that cannot be done.
    case misuse(Misuse)
    /// The pool was shut down, or the connection closed by its owner.
    case shutDown
    /// COMMIT was answered by ROLLBACK: a statement had failed and its error was swallowed. Nothing was committed.
    case rolledBack

    /// The possible effect of a statement whose answer never came (fault F6).
    public enum Outcome: Sendable, Hashable {
        /// It had no effect: it was never sent, or was refused.
        case none
        /// It was part of a transaction that cannot have been committed.
        case rolledBack
        /// It was sent, and may have been committed or not.
        case unknown
    }

    /// An error that the server reported.
    public struct Server: Sendable, Hashable {
        /// The code of the error.
        public var sqlState: SQLState
        /// The primary message, in the server's language.
        public var message: String
        /// The detail, which may quote values of the offending row.
        public var detail: String?
        /// The server's hint on what to do about it.
        public var hint: String?
        /// The schema of the object.
        public var schema: String?
        /// The table of the object.
        public var table: String?
        /// The column that the error is about.
        public var column: String?
        /// The constraint (or unique index) that was violated.
        public var constraint: String?
        /// Where in PL/pgSQL it happened.
        public var context: String?
        /// Where in the statement's text, in characters from 1.
        public var position: Int?
        /// The function of PostgreSQL's source that reported it; tells errors with the same code apart in any language.
        public var routine: String?
        /// The possible effect of the statement.
        public var outcome: Outcome

        /// An error of this code and message, without further fields.
        public init(sqlState: SQLState, message: String, outcome: Outcome = .none) {
            self.sqlState = sqlState
            self.message = message
            self.outcome = outcome
        }
    }

    /// A connection that could not be made, or broke.
    public struct Connection: Sendable, Hashable {
        /// What happened to it.
        public enum Kind: Sendable, Hashable {
            /// The connection string or a setting cannot be used.
            case badConfiguration
            /// No server could be reached, or none accepted the connection.
            case unreachable
            /// The connection was there and is gone.
            case lost
            /// The server did not answer in time: not even a cancel request, or a statement that may be committing and so is
            /// not cancelled; or a synchronous standby did not confirm the commit.
            case unresponsive
            /// No thread or descriptor was left.
            case outOfResources
        }

        /// What happened to it.
        public var kind: Kind
        /// libpq's message, with passwords removed.
        public var message: String
        /// The server's code, if it sent one before the end (such as 57P01, or 28P01 for a wrong password).
        public var sqlState: SQLState?
        /// The possible effect of the statement.
        public var outcome: Outcome

        /// A failure of a connection.
        public init(kind: Kind, message: String, sqlState: SQLState? = nil, outcome: Outcome = .none) {
            self.kind = kind
            self.message = message
            self.sqlState = sqlState
            self.outcome = outcome
        }
    }

    /// Where time ran out.
    public enum Stage: Sendable, Hashable {
        /// While waiting for a free connection of the pool.
        case waitingForConnection
        /// Before the statement was sent.
        case beforeSending
        /// While the statement ran; the server confirmed that it was cancelled, so it had no effect.
        case running
    }

    /// A column that could not be read.
    public struct Decoding: Sendable, Hashable {
        /// The column's name, or its position if it has none.
        public var column: String
        /// The Swift type that was asked for.
        public var requested: String
        /// What was wrong.
        public var problem: PostgresDecodingProblem

        /// A column that could not be read.
        public init(column: String, requested: String, problem: PostgresDecodingProblem) {
            self.column = column
            self.requested = requested
            self.problem = problem
        }
    }

    /// What a caller did wrong.
    public enum Misuse: Sendable, Hashable {
        /// A statement was sent while a COPY is going on.
        case copyInProgress
        /// `copyIn` without a column, or a row with another number of fields.
        case wrongFieldCount
        /// More binds than the protocol can carry (65,535).
        case tooManyBinds
        /// A statement that starts a COPY was run as a query.
        case copyAsQuery
        /// A transaction was begun within a transaction.
        case nestedTransaction
        /// As many callers wait for a connection as the pool allows.
        case tooManyWaiters
    }
}

extension PostgresError {
    /// The server's code, if it sent one.
    public var sqlState: SQLState? {
        switch self {
        case .server(let server): server.sqlState
        case .connection(let connection): connection.sqlState
        case .deadlineExceeded(.running): .queryCanceled
        case .deadlineExceeded, .decoding, .misuse, .shutDown, .rolledBack: nil
        }
    }

    /// Whether a connection broke, or could not be made because no server is there, or the server takes none yet: a later
    /// attempt may succeed.
    public var isOutage: Bool {
        guard case .connection(let connection) = self else { return false }
        guard connection.kind == .unreachable else { return connection.kind == .lost }
        return switch connection.sqlState {
        case nil, .cannotConnectNow, .adminShutdown, .crashShutdown, .tooManyConnections: true
        default: false
        }
    }

    /// The violated constraint, if the server named one.
    public var constraint: String? {
        switch self {
        case .server(let server): server.constraint
        case .connection, .deadlineExceeded, .decoding, .misuse, .shutDown, .rolledBack: nil
        }
    }

    /// The possible effect of the statement.
    public var outcome: Outcome {
        switch self {
        case .server(let server): server.outcome
        case .connection(let connection): connection.outcome
        case .deadlineExceeded, .decoding, .misuse, .shutDown: .none
        case .rolledBack: .rolledBack
        }
    }

    /// Whether the statement may have been committed although its answer was lost: run the same idempotent statement again.
    public var outcomeUnknown: Bool { outcome == .unknown }

    /// Whether the answer was lost with the connection, so that an idempotent statement may be run again at once. A server
    /// that does not answer would not answer that either.
    public var lostAnswer: Bool {
        guard case .connection(let connection) = self, connection.kind == .unresponsive else { return outcomeUnknown }
        return false
    }

    /// Whether running the whole transaction again is safe and may well succeed.
    public var isRetryable: Bool {
        guard outcome != .unknown else { return false }
        switch self {
        case .server(let server):
            switch server.sqlState {
            case .serializationFailure, .deadlockDetected, .adminShutdown, .crashShutdown, .cannotConnectNow:
                return true
            case .uniqueViolation, .foreignKeyViolation, .checkViolation, .notNullViolation, .queryCanceled,
                .lockNotAvailable, .readOnly, .inFailedTransaction, .idleInTransactionTimeout, .tooManyConnections,
                .invalidStatementName, .undefinedTable, .duplicateObject, .other:
                return server.isStalePlan
            }
        case .connection(let connection):
            return connection.kind == .lost || connection.kind == .unresponsive
        case .deadlineExceeded, .decoding, .misuse, .shutDown, .rolledBack:
            return false
        }
    }

    /// Whether the server refused the statement because of its data, and would refuse it every time: a value that no
    /// column can hold, a constraint, a sum that overflows, a row that is too large for its index.
    public var isOfData: Bool {
        switch self {
        case .server(let server): server.sqlState.isOfData
        case .connection, .deadlineExceeded, .decoding, .misuse, .shutDown, .rolledBack: false
        }
    }

    /// Whether the error means that files of the database are damaged or gone: corrupt data or a corrupt index, a missing
    /// file or database, or what PostgreSQL calls an internal error (class XX), which has no other cause while tables are
    /// not changed. An error of this class about a file that can't be written, such as the "init file" of a first client,
    /// does not count: it means that the disk is full.
    public var isDamage: Bool {
        guard let code = sqlState?.code else { return false }
        return ["58P01", "3D000"].contains(code) || code.hasPrefix("XX") && !"\(self)".contains("could not write")
    }

    /// Whether the database could not be reached or used for writing just now, through no fault of the statement.
    public var isUnavailable: Bool {
        switch self {
        case .server(let server):
            switch server.sqlState {
            case .adminShutdown, .crashShutdown, .cannotConnectNow, .tooManyConnections, .readOnly: return true
            case .uniqueViolation, .foreignKeyViolation, .checkViolation, .notNullViolation, .serializationFailure,
                .deadlockDetected, .queryCanceled, .lockNotAvailable, .inFailedTransaction, .idleInTransactionTimeout,
                .invalidStatementName, .undefinedTable, .duplicateObject, .other:
                return false
            }
        case .connection(let connection):
            return connection.kind != .badConfiguration
        case .deadlineExceeded(.waitingForConnection):
            return true
        case .deadlineExceeded, .decoding, .misuse, .shutDown, .rolledBack:
            return false
        }
    }
}

extension PostgresError.Server {
    /// Whether a prepared statement no longer fits the tables, or is gone. Only the preparing is at fault.
    var isStalePlan: Bool {
        sqlState == .invalidStatementName || (sqlState == .other("0A000") && routine == "RevalidateCachedQuery")
    }
}

extension PostgresError: CustomStringConvertible {
    /// One line for a log.
    public var description: String {
        switch self {
        case .server(let server):
            "PostgreSQL error \(server.sqlState.code): \(server.message)"
                + (server.constraint.map { " (constraint \($0))" } ?? "")
        case .connection(let connection):
            "PostgreSQL connection \(connection.kind)"
                + (connection.sqlState.map { " (\($0.code))" } ?? "") + ": \(connection.message)"
        case .deadlineExceeded(let stage): "PostgreSQL deadline exceeded: \(stage)"
        case .decoding(let decoding):
            "PostgreSQL column \"\(decoding.column)\" cannot be read as \(decoding.requested): \(decoding.problem)"
        case .misuse(let misuse): "PostgreSQL misuse: \(misuse)"
        case .shutDown: "PostgreSQL connection or pool is shut down"
        case .rolledBack: "PostgreSQL rolled the transaction back"
        }
    }
}

extension PostgresError {
    /// Whether connecting again with the same settings cannot succeed.
    var isPermanentForConnecting: Bool {
        guard case .connection(let connection) = self else { return false }
        if connection.kind == .badConfiguration { return true }
        // Class 28 is a refused login; 3D000 is a database, and 42704 a setting, that does not exist.
        guard let code = connection.sqlState?.code else { return false }
        return code.hasPrefix("28") || code == "3D000"
    }
}
