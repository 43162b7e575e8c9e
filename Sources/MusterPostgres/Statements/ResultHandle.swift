import CLibpq

/// Owns a `PGresult`.
///
/// `@unchecked Sendable` is safe here: libpq never changes a result after it gave it out, the functions that read one
/// do not write to it, and it is freed once, by `deinit`. It may thus be read on any thread, long after its connection
/// is gone.
final class ResultHandle: @unchecked Sendable {
    private let result: OpaquePointer

    /// Takes over a result.
    init(owning result: OpaquePointer) {
        self.result = result
    }

    deinit {
        PQclear(result)
    }

    var status: ExecStatusType { PQresultStatus(result) }
    var rowCount: Int { Int(PQntuples(result)) }
    var columnCount: Int { Int(PQnfields(result)) }
    var commandTag: String { String(cString: PQcmdStatus(result)) }

    /// Rows that the command changed, returned or copied, as its tag says; 0 for commands that say none.
    var affected: Int { Int(String(cString: PQcmdTuples(result))) ?? 0 }

    func columnName(_ column: Int) -> String {
        PQfname(result, Int32(column)).map { String(cString: $0) } ?? ""
    }

    /// A field. Row and column must lie within the result.
    func value(row: Int, column: Int) -> PostgresValue {
        let row = Int32(row)
        let column = Int32(column)
        let isNull = PQgetisnull(result, row, column) == 1
        return PostgresValue(
            owner: self,
            start: isNull ? nil : PQgetvalue(result, row, column).map { UnsafeRawPointer($0) },
            length: Int(PQgetlength(result, row, column)),
            type: PostgresType(rawValue: PQftype(result, column))
        )
    }

    /// A field of the server's error or notice.
    func diagnostic(_ field: Int32) -> String? {
        PQresultErrorField(result, field).map { String(cString: $0) }
    }

    /// libpq's own message, for errors that did not come from the server.
    var errorMessage: String {
        PQresultErrorMessage(result).map { String(cString: $0) } ?? ""
    }
}
