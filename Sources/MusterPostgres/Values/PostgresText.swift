/// A closed set of texts: an enum whose raw values are stored in a column of type `text`.
///
/// Any other text is an error that states the column, the requested type and the text: such columns hold no secrets.
/// There is no fallback value, since such a text comes from a newer program or from a manual change in the database.
public protocol PostgresText: PostgresScalar, RawRepresentable where RawValue == String {}

extension PostgresText {
    /// Reads one of the texts; throws `unknownText` for any other.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        let text = try String(postgres: value)
        guard let known = Self(rawValue: text) else { throw .unknownText(String(text.prefix(64))) }
        self = known
    }
}
