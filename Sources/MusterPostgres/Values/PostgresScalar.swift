/// A single value: it can be bound, read, and be an element of an array (also as `Optional`).
///
/// An id type of the domain conforms by being `RawRepresentable` over a scalar; it needs no further code.
public protocol PostgresScalar: PostgresEncodable, PostgresDecodable, PostgresArrayElement {
    /// The type of an array of such values.
    static var postgresArrayType: PostgresType { get }
}

/// An element of a Swift array that is sent as one PostgreSQL value.
///
/// The element defines how its array is converted, since `[UInt8]` is a `bytea` while every other array is an array.
public protocol PostgresArrayElement: Sendable {
    /// The type under which a whole array is bound.
    static var postgresArrayType: PostgresType { get }
    /// Writes a whole array.
    static func encode(array: [Self], into encoder: inout PostgresEncoder)
    /// Reads a whole array.
    static func decodeArray(_ value: PostgresValue) throws(PostgresDecodingProblem) -> [Self]
}

extension PostgresArrayElement where Self: PostgresEncodable & PostgresDecodable {
    /// Writes a one-dimensional array: header, then each element behind its length.
    public static func encode(array: [Self], into encoder: inout PostgresEncoder) {
        guard !array.isEmpty else {
            encoder.write(Int32(0))
            encoder.write(Int32(0))
            encoder.write(postgresType.rawValue)
            return
        }
        encoder.write(Int32(1))
        // The flag "may contain NULL" is only a hint, which the server computes for itself.
        encoder.write(Int32(1))
        encoder.write(postgresType.rawValue)
        encoder.write(Int32(truncatingIfNeeded: array.count))
        encoder.write(Int32(1))
        for element in array {
            encoder.writeFramed(element)
        }
    }

    /// Reads an array of at most one dimension.
    public static func decodeArray(_ value: PostgresValue) throws(PostgresDecodingProblem) -> [Self] {
        let elements = try value.elements()
        var array: [Self] = []
        array.reserveCapacity(elements.count)
        for element in elements {
            array.append(try Self(postgres: element))
        }
        return array
    }
}

extension Array: PostgresEncodable where Element: PostgresArrayElement {
    /// The array type of the element, or `bytea` for bytes.
    public static var postgresType: PostgresType { Element.postgresArrayType }

    /// Writes the array as its element type wants it.
    public func encode(into encoder: inout PostgresEncoder) {
        Element.encode(array: self, into: &encoder)
    }
}

extension Array: PostgresDecodable where Element: PostgresArrayElement {
    /// Reads the array as its element type wants it.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        self = try Element.decodeArray(value)
    }
}

extension Optional: PostgresArrayElement where Wrapped: PostgresScalar {
    /// The array type of the wrapped scalar.
    public static var postgresArrayType: PostgresType { Wrapped.postgresArrayType }
}

extension UInt8: PostgresArrayElement {
    /// `bytea`: an array of bytes is one value, not an array.
    public static var postgresArrayType: PostgresType { .bytea }

    /// Writes the bytes as they are.
    public static func encode(array: [UInt8], into encoder: inout PostgresEncoder) {
        encoder.write(contentsOf: array)
    }

    /// Copies the bytes of a `bytea`.
    public static func decodeArray(_ value: PostgresValue) throws(PostgresDecodingProblem) -> [UInt8] {
        guard value.isNull || value.type == .bytea else { throw .wrongType(value.type) }
        return try value.bytes
    }
}

extension PostgresScalar where Self: RawRepresentable, RawValue: PostgresScalar {
    /// The type of the raw value.
    public static var postgresType: PostgresType { RawValue.postgresType }
    /// The array type of the raw value.
    public static var postgresArrayType: PostgresType { RawValue.postgresArrayType }

    /// Writes the raw value.
    public func encode(into encoder: inout PostgresEncoder) {
        rawValue.encode(into: &encoder)
    }

    /// Reads the raw value; a value that the type refuses is out of range.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        let raw = try RawValue(postgres: value)
        guard let made = Self(rawValue: raw) else { throw .outOfRange }
        self = made
    }
}
