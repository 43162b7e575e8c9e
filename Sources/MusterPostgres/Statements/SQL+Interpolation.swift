extension SQL: ExpressibleByStringInterpolation {
    /// A statement without binds.
    public init(stringLiteral value: StaticString) {
        self.init(unsafeRaw: value.description)
    }

    /// A statement with its binds.
    public init(stringInterpolation: StringInterpolation) {
        self = stringInterpolation.sql
    }

    /// Gathers the pieces of an interpolated literal.
    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var sql: SQL

        /// Starts with empty text.
        public init(literalCapacity: Int, interpolationCount: Int) {
            sql = SQL(unsafeRaw: "")
        }

        /// Appends literal text of the source.
        public mutating func appendLiteral(_ literal: StaticString) {
            sql.append(text: literal.description)
        }

        /// Binds a value.
        public mutating func appendInterpolation(_ value: some PostgresEncodable) {
            sql.append(bind: value)
        }

        /// Binds a value or NULL. A separate overload, since the compiler warns of an optional in a plain interpolation.
        public mutating func appendInterpolation<Value>(_ value: Value?) where Value?: PostgresEncodable {
            sql.append(bind: value)
        }

        /// Puts another statement (a condition, a list of columns) here, with its binds.
        public mutating func appendInterpolation(_ fragment: SQL) {
            sql.append(fragment)
        }

        /// Puts a quoted identifier here. A dot in it is part of the name; qualify with two identifiers.
        public mutating func appendInterpolation(identifier: String) {
            sql.append(text: SQL.quoted(identifier: identifier))
        }
    }
}
