/// A closed set of texts: an enum whose raw values stand in a column of type `text`.
///
/// A text that is none of them is refused with its column, the type that was asked for, and itself: such columns hold no secrets. Nothing
/// stands in for it, since it comes from a newer program or from a hand in the database.
public protocol PostgresText: PostgresScalar, RawRepresentable where RawValue == String {}

extension PostgresText {
    /// Reads one of the texts; throws `unknownText` for any other.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        let text = try String(postgres: value)
        guard let known = Self(rawValue: text) else { throw .unknownText(String(text.prefix(64))) }
        self = known
    }
}
