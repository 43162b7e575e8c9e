/// The fields of an error or notice (libpq-fe.h's `PG_DIAG_…`, which are C characters that Swift does not import).
enum DiagnosticField {
    static let severity = code("V")
    static let sqlState = code("C")
    static let message = code("M")
    static let detail = code("D")
    static let hint = code("H")
    static let position = code("P")
    static let context = code("W")
    static let schema = code("s")
    static let table = code("t")
    static let column = code("c")
    static let constraint = code("n")
    static let routine = code("R")

    private static func code(_ character: Unicode.Scalar) -> Int32 { Int32(character.value) }
}

extension PostgresError.Server {
    init(_ result: ResultHandle, outcome: PostgresError.Outcome) {
        self.init(
            sqlState: SQLState(code: result.diagnostic(DiagnosticField.sqlState) ?? ""),
            message: result.diagnostic(DiagnosticField.message) ?? result.errorMessage,
            outcome: outcome
        )
        detail = result.diagnostic(DiagnosticField.detail)
        hint = result.diagnostic(DiagnosticField.hint)
        schema = result.diagnostic(DiagnosticField.schema)
        table = result.diagnostic(DiagnosticField.table)
        column = result.diagnostic(DiagnosticField.column)
        constraint = result.diagnostic(DiagnosticField.constraint)
        context = result.diagnostic(DiagnosticField.context)
        position = result.diagnostic(DiagnosticField.position).flatMap { Int($0) }
        routine = result.diagnostic(DiagnosticField.routine)
    }
}
