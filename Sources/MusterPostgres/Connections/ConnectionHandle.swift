import CLibpq
import Logging

/// Owns a `PGconn`. Only the connection's actor holds one, so that all calls come from the actor's thread.
final class ConnectionHandle {
    private let connection: OpaquePointer
    /// Kept alive for as long as libpq may call the notice receiver with a pointer to it.
    private let notices: NoticeLog

    /// Begins to connect without blocking (except for name resolution). `nil` when libpq is out of memory.
    init?(_ target: ConnectionTarget, logger: Logger) {
        let keywords = target.settings.map { CString($0.keyword) }
        let values = target.settings.map { CString($0.value) }
        let started = withExtendedLifetime((keywords, values)) {
            PQconnectStartParams(
                keywords.map { $0.pointer } + [nil],
                values.map { $0.pointer } + [nil],
                0
            )
        }
        guard let started else { return nil }
        connection = started
        notices = NoticeLog(logger: logger)
        PQsetErrorVerbosity(connection, PQERRORS_VERBOSE)
        // Without a receiver libpq prints notices to stderr.
        PQsetNoticeReceiver(
            connection,
            { context, result in
                guard let context, let result else { return }
                Unmanaged<NoticeLog>.fromOpaque(context).takeUnretainedValue().record(result)
            },
            Unmanaged.passUnretained(notices).toOpaque()
        )
    }

    deinit {
        PQfinish(connection)
    }

    var isBad: Bool { PQstatus(connection) == CONNECTION_BAD }
    var socket: Int32 { PQsocket(connection) }
    var errorMessage: String { PQerrorMessage(connection).map { String(cString: $0) } ?? "" }
    var transactionStatus: PGTransactionStatusType { PQtransactionStatus(connection) }
    var backendPID: Int32 { PQbackendPID(connection) }

    /// The code of a FATAL message that came while no statement ran: the server has ended the session.
    var fatalNotice: SQLState? { notices.fatal }

    /// Whether the server has said that a commit is not confirmed by a synchronous standby: its wait was cancelled. Each such
    /// notice is told once.
    func takeUnreplicated() -> Bool { notices.takeUnreplicated() }

    /// The SQLSTATE of a refused connection. While connecting there is no result that holds it, only a message; a verbose
    /// message has the code in a fixed place.
    var connectSQLState: SQLState? { SQLState(inVerboseMessage: errorMessage) }

    /// Reads what came while no statement ran, and tells whether the server has ended the session.
    func hasHungUp() -> Bool {
        // Twice: the server's last message comes before the end of the stream. A healthy connection is not readable at all.
        for _ in 0..<2 where Polling.isReadable(socket) {
            if !consumeInput() { return true }
            // This call makes libpq parse what it read, and hand the last message to the notice receiver.
            _ = isBusy
        }
        return isBad || notices.fatal != nil
    }

    func pollConnecting() -> PostgresPollingStatusType { PQconnectPoll(connection) }

    /// To be called once connected: from here on, no call blocks.
    func setNonBlocking() -> Bool {
        PQsetErrorVerbosity(connection, PQERRORS_DEFAULT)
        return PQsetnonblocking(connection, 1) == 0
    }

    func send(text: String, binds: PostgresBinds) -> Bool {
        binds.withParameters { types, values, lengths, formats in
            PQsendQueryParams(connection, text, Int32(binds.count), types, values, lengths, formats, 1) == 1
        }
    }

    /// Sends text that may hold several statements, and has no binds. Its results come in text format.
    func send(script: String) -> Bool { PQsendQuery(connection, script) == 1 }

    func sendPrepare(name: String, text: String, types: [PostgresType]) -> Bool {
        PQsendPrepare(connection, name, text, Int32(types.count), types.map(\.rawValue)) == 1
    }

    func sendPrepared(name: String, binds: PostgresBinds) -> Bool {
        binds.withParameters { _, values, lengths, formats in
            PQsendQueryPrepared(connection, name, Int32(binds.count), values, lengths, formats, 1) == 1
        }
    }

    enum Flush { case done, pending, failed }

    func flush() -> Flush {
        switch PQflush(connection) {
        case 0: .done
        case 1: .pending
        default: .failed
        }
    }

    func consumeInput() -> Bool { PQconsumeInput(connection) == 1 }
    var isBusy: Bool { PQisBusy(connection) == 1 }

    func nextResult() -> ResultHandle? {
        PQgetResult(connection).map { ResultHandle(owning: $0) }
    }

    enum Put { case taken, wouldBlock, failed }

    func putCopyData(_ bytes: some Collection<UInt8>) -> Put {
        let put =
            bytes.withContiguousStorageIfAvailable { buffer in
                buffer.withMemoryRebound(to: CChar.self) {
                    PQputCopyData(connection, $0.baseAddress, Int32($0.count))
                }
            } ?? -1
        return Self.put(put)
    }

    /// Ends a COPY; with a message the server discards its rows.
    func putCopyEnd(failure: String?) -> Put { Self.put(PQputCopyEnd(connection, failure)) }

    private static func put(_ code: Int32) -> Put {
        switch code {
        case 1: .taken
        case 0: .wouldBlock
        default: .failed
        }
    }

    func nextNotification() -> PostgresNotification? {
        guard let notify = PQnotifies(connection) else { return nil }
        defer { PQfreemem(notify) }
        return PostgresNotification(
            channel: String(cString: notify.pointee.relname),
            payload: notify.pointee.extra.map { String(cString: $0) } ?? "",
            senderPID: notify.pointee.be_pid
        )
    }

    func makeCancelRequest() -> CancelRequest? {
        PQgetCancel(connection).map { CancelRequest(owning: $0) }
    }
}

/// A copy of a string with a stable address, for arrays of C strings.
private final class CString {
    private let storage: UnsafeMutableBufferPointer<CChar>

    init(_ text: String) {
        let bytes = text.utf8CString
        storage = .allocate(capacity: bytes.count)
        _ = storage.initialize(from: bytes)
    }

    deinit {
        storage.deallocate()
    }

    var pointer: UnsafePointer<CChar>? { UnsafePointer(storage.baseAddress) }
}

/// Where the server's notices go: to the log, instead of stderr.
private final class NoticeLog {
    private let logger: Logger
    /// The code with which the server ended the session while no statement ran.
    private(set) var fatal: SQLState?
    private var isUnreplicated = false

    init(logger: Logger) {
        self.logger = logger
    }

    func record(_ notice: OpaquePointer) {
        func field(_ code: Int32) -> String {
            PQresultErrorField(notice, code).map { String(cString: $0) } ?? ""
        }
        if ["FATAL", "PANIC"].contains(field(DiagnosticField.severity)) {
            fatal = SQLState(code: field(DiagnosticField.sqlState))
        }
        // The message is in the server's language; the name of the function in its source is not.
        if field(DiagnosticField.routine) == "SyncRepWaitForLSN" { isUnreplicated = true }
        logger.debug(
            "PostgreSQL notice",
            metadata: [
                LogKey.severity: "\(field(DiagnosticField.severity))",
                LogKey.sqlState: "\(field(DiagnosticField.sqlState))",
                LogKey.message: "\(field(DiagnosticField.message))",
            ]
        )
    }

    func takeUnreplicated() -> Bool {
        defer { isUnreplicated = false }
        return isUnreplicated
    }
}
