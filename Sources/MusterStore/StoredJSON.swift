import FoundationEssentials

/// A stored value that can't be read as the type it must have.
///
/// It tells the place and the problem, but never the value: options hold secrets.
public struct StoredValueError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The column, with its table.
    public var column: String
    /// The row, such as `task 7`.
    public var row: String
    /// The Swift type that was asked for.
    public var requested: String
    /// What is wrong, with the place within the value as a JSON pointer.
    public var problem: String

    /// A value that can't be read.
    public init(column: String, row: String, requested: String, problem: String) {
        self.column = column
        self.row = row
        self.requested = requested
        self.problem = problem
    }

    /// One line for a log, or for the detail of a failure.
    public var description: String { "\(column) of \(row) can't be read as \(requested): \(problem)" }
}

/// Stored JSON: checked before it is written, and read strictly.
public enum StoredJSON {
    /// A stored document; throws `StoredValueError` when it is not one.
    public static func document<Document: Decodable>(
        _ type: Document.Type, _ text: String, column: String, of row: String
    ) throws(StoredValueError) -> Document {
        do {
            return try JSONDecoder().decode(type, from: Data(text.utf8))
        } catch {
            throw StoredValueError(column: column, row: row, requested: "\(type)", problem: problem(error))
        }
    }

    /// A stored document that may be absent.
    public static func document<Document: Decodable>(
        _ type: Document.Type, ifAny text: String?, column: String, of row: String
    ) throws(StoredValueError) -> Document? {
        guard let text else { return nil }
        return try document(type, text, column: column, of: row)
    }

    /// A JSON object whose values are texts (digests, headers, labels); empty if the column is NULL.
    public static func texts(
        _ text: String?, column: String, of row: String
    ) throws(StoredValueError) -> [String: String] {
        try document([String: String].self, ifAny: text, column: column, of: row) ?? [:]
    }

    /// The JSON text of a value, as it is stored.
    public static func text(_ value: (some Encodable)?) throws -> String? {
        try value.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }
    }

    /// The problem in Muster's own words: the decoder's message may quote the value.
    private static func problem(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "it was refused" }
        switch error {
        case .typeMismatch(_, let context): return "\(pointer(context.codingPath)) has the wrong type"
        case .valueNotFound(_, let context): return "\(pointer(context.codingPath)) is null"
        case .keyNotFound(let key, let context): return "\(pointer(context.codingPath + [key])) is missing"
        case .dataCorrupted(let context): return "\(pointer(context.codingPath)) is not allowed"
        @unknown default: return "it was refused"
        }
    }

    private static func pointer(_ path: [any CodingKey]) -> String {
        path.isEmpty ? "all of it" : path.map { "/\($0.intValue.map(String.init) ?? $0.stringValue)" }.joined()
    }
}
