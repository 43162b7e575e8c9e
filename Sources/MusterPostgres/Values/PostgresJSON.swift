/// JSON text on its way to or from a `jsonb` column. It is not parsed here: the server does that.
public struct PostgresJSON: Hashable, Sendable, PostgresScalar {
    /// The JSON text in UTF-8.
    public var utf8: [UInt8]

    /// Takes JSON text in UTF-8. The server refuses what is not JSON (22P02).
    public init(utf8: [UInt8]) {
        self.utf8 = utf8
    }

    /// Takes JSON text.
    public init(_ text: String) {
        utf8 = Array(text.utf8)
    }

    /// The JSON text.
    public var text: String { String(decoding: utf8, as: UTF8.self) }

    /// `jsonb`.
    public static var postgresType: PostgresType { .jsonb }
    /// `jsonb[]`.
    public static var postgresArrayType: PostgresType { .jsonbArray }

    /// The version of jsonb's binary format that PostgreSQL has spoken since 9.4.
    private static let formatVersion: UInt8 = 1

    /// Writes the format's version, then the text.
    public func encode(into encoder: inout PostgresEncoder) {
        encoder.write(Self.formatVersion)
        encoder.write(contentsOf: utf8)
    }

    /// Reads `jsonb`, or `json` as it was written.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        switch value.type {
        case .jsonb:
            let text = try value.withBytes { bytes -> [UInt8]? in
                bytes.first == Self.formatVersion ? Array(bytes.dropFirst()) : nil
            }
            guard let text else { throw .malformed }
            utf8 = text
        case .json:
            utf8 = try value.bytes
        default:
            throw value.isNull ? .unexpectedNull : .wrongType(value.type)
        }
    }
}
