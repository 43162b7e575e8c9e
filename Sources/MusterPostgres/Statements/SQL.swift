/// A statement whose interpolated values are bound, never spliced.
///
///     let sql: SQL = "SELECT name FROM tasks WHERE id = ANY(\(ids)) AND state = \(state)"
///
/// becomes `… id = ANY($1) AND state = $2`. Literals are `StaticString`s, so that a run-time string cannot become SQL
/// text by accident: only `init(unsafeRaw:)` takes one, for migrations that are embedded in the executable.
public struct SQL: Sendable {
    /// The pieces of text around the binds: always one more than there are binds.
    private(set) var pieces: [String]
    private(set) var binds: PostgresBinds

    init(pieces: [String], binds: PostgresBinds) {
        self.pieces = pieces
        self.binds = binds
    }

    /// Takes text as SQL, unchecked. Never give it anything that came from outside of the program.
    public init(unsafeRaw text: String) {
        self.init(pieces: [text], binds: PostgresBinds())
    }

    /// The text as it is sent, with `$1`, `$2`, … for the binds. It holds none of the bound values.
    public var text: String {
        var text = ""
        text.reserveCapacity(pieces.reduce(0) { $0 + $1.utf8.count + 4 })
        for (index, piece) in pieces.enumerated() {
            if index > 0 {
                text += "$\(index)"
            }
            text += piece
        }
        return text
    }

    /// How many values are bound. PostgreSQL allows 65,535.
    public var bindCount: Int { binds.count }

    /// Appends another statement's text and binds; the binds are numbered anew.
    public mutating func append(_ other: SQL) {
        pieces[pieces.count - 1] += other.pieces[0]
        pieces.append(contentsOf: other.pieces.dropFirst())
        binds.append(contentsOf: other.binds)
    }

    /// Both statements, one after the other.
    public static func + (lhs: SQL, rhs: SQL) -> SQL {
        var sum = lhs
        sum.append(rhs)
        return sum
    }

    /// Appends a statement.
    public static func += (lhs: inout SQL, rhs: SQL) {
        lhs.append(rhs)
    }

    mutating func append(text: String) {
        pieces[pieces.count - 1] += text
    }

    mutating func append(bind value: some PostgresEncodable) {
        binds.append(value)
        pieces.append("")
    }

    /// Quotes an identifier as `quote_ident` does, always with quotes.
    static func quoted(identifier: String) -> String {
        var quoted = "\""
        for character in identifier.unicodeScalars where character != "\0" {
            // The server cannot take a NUL in a statement; libpq would cut the text there, quote and all.
            quoted += character == "\"" ? "\"\"" : String(character)
        }
        return quoted + "\""
    }
}

extension SQL: CustomStringConvertible {
    /// The text without the bound values, which may be secret.
    public var description: String { text }
}
