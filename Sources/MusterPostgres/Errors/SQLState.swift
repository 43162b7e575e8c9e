/// PostgreSQL's error codes (appendix A of its manual), as far as the program tells them apart.
public enum SQLState: Hashable, Sendable {
    /// 23505: a unique index holds such a row already; the failure names the constraint.
    case uniqueViolation
    /// 23503: a row that is referred to does not exist, or is still referred to.
    case foreignKeyViolation
    /// 23514: a CHECK refused the row.
    case checkViolation
    /// 23502: NULL in a NOT NULL column.
    case notNullViolation
    /// 40001: the transaction cannot be ordered among the others; run it again.
    case serializationFailure
    /// 40P01: the transaction was chosen to break a deadlock; run it again.
    case deadlockDetected
    /// 57014: the statement was cancelled, by a request or by `statement_timeout`.
    case queryCanceled
    /// 55P03: a lock was not available at once, or within `lock_timeout`.
    case lockNotAvailable
    /// 25006: the server, or the transaction, is read-only, as a standby or a demoted primary is.
    case readOnly
    /// 25P02: an earlier statement of the transaction failed.
    case inFailedTransaction
    /// 25P03: the session was closed since its transaction was idle for too long.
    case idleInTransactionTimeout
    /// 57P01: the server is being shut down, or an administrator ended the session.
    case adminShutdown
    /// 57P02: another server process crashed, and all sessions were ended.
    case crashShutdown
    /// 57P03: the server is starting up or shutting down.
    case cannotConnectNow
    /// 53300: there are as many connections as the server allows.
    case tooManyConnections
    /// 26000: no prepared statement of this name.
    case invalidStatementName
    /// 42P01: no such table.
    case undefinedTable
    /// 42P04, 42P06, 42P07, 42710: the object exists already.
    case duplicateObject(String)
    /// Any other code, as its five characters.
    case other(String)

    /// Reads a code of five characters.
    public init(code: String) {
        switch code {
        case "23505": self = .uniqueViolation
        case "23503": self = .foreignKeyViolation
        case "23514": self = .checkViolation
        case "23502": self = .notNullViolation
        case "40001": self = .serializationFailure
        case "40P01": self = .deadlockDetected
        case "57014": self = .queryCanceled
        case "55P03": self = .lockNotAvailable
        case "25006": self = .readOnly
        case "25P02": self = .inFailedTransaction
        case "25P03": self = .idleInTransactionTimeout
        case "57P01": self = .adminShutdown
        case "57P02": self = .crashShutdown
        case "57P03": self = .cannotConnectNow
        case "53300": self = .tooManyConnections
        case "26000": self = .invalidStatementName
        case "42P01": self = .undefinedTable
        case "42P04", "42P06", "42P07", "42710": self = .duplicateObject(code)
        default: self = .other(code)
        }
    }

    /// The five characters.
    public var code: String {
        switch self {
        case .uniqueViolation: "23505"
        case .foreignKeyViolation: "23503"
        case .checkViolation: "23514"
        case .notNullViolation: "23502"
        case .serializationFailure: "40001"
        case .deadlockDetected: "40P01"
        case .queryCanceled: "57014"
        case .lockNotAvailable: "55P03"
        case .readOnly: "25006"
        case .inFailedTransaction: "25P02"
        case .idleInTransactionTimeout: "25P03"
        case .adminShutdown: "57P01"
        case .crashShutdown: "57P02"
        case .cannotConnectNow: "57P03"
        case .tooManyConnections: "53300"
        case .invalidStatementName: "26000"
        case .undefinedTable: "42P01"
        case .duplicateObject(let code), .other(let code): code
        }
    }

    /// Whether the code says that the data is at fault: classes 21 (cardinality), 22 (data), 23 (constraints) and 54 (limits).
    var isOfData: Bool {
        switch code.prefix(2) {
        case "21", "22", "23", "54": true
        default: false
        }
    }

    /// Whether the code says that the server lacks something: disk, memory or connections (class 53).
    public var isOfResources: Bool { code.hasPrefix("53") }

    /// Finds the code in a verbose message of libpq, `FATAL:  28P01: …`; the last one, if several addresses were tried.
    init?(inVerboseMessage message: String) {
        let parts = message.split(separator: ":", omittingEmptySubsequences: false)
        let codes = parts.dropFirst().filter { part in
            let code = part.drop { $0 == " " }
            return part.hasPrefix("  ") && code.utf8.count == 5
                && code.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
        }
        guard let last = codes.last else { return nil }
        self.init(code: String(last.drop { $0 == " " }))
    }
}
