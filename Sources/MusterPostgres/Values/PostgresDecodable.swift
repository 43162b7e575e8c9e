/// A value that can be read from a column.
public protocol PostgresDecodable {
    /// Reads the value. Throws a problem that the row completes with the column's name.
    init(postgres value: PostgresValue) throws(PostgresDecodingProblem)
}

/// Why a column could not be read as the type that was asked for.
public enum PostgresDecodingProblem: Error, Hashable, Sendable {
    /// The column is NULL, but the type is not optional.
    case unexpectedNull
    /// The column's type has no conversion to the requested one; cast it in the statement.
    case wrongType(PostgresType)
    /// The value does not fit the requested type.
    case outOfRange
    /// The text is not in the closed set; this is its first 64 characters.
    case unknownText(String)
    /// The bytes are not what the type's binary format promises.
    case malformed
    /// No column has this name or index.
    case noSuchColumn
}

/// One field of a result, still in PostgreSQL's binary format.
///
/// It keeps alive the result that holds its bytes, so that nothing is copied until a Swift value is made of it.
public struct PostgresValue {
    private let owner: ResultHandle
    private let start: UnsafeRawPointer?
    private let length: Int

    /// The type that the server states for the column (or array element).
    public let type: PostgresType

    init(owner: ResultHandle, start: UnsafeRawPointer?, length: Int, type: PostgresType) {
        self.owner = owner
        self.start = start
        self.length = length
        self.type = type
    }

    /// Whether the field is NULL.
    public var isNull: Bool { start == nil }

    /// A copy of the field's bytes. Throws when the field is NULL.
    public var bytes: [UInt8] {
        get throws(PostgresDecodingProblem) { try withBytes { Array($0) } }
    }

    func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) throws(PostgresDecodingProblem) -> R {
        guard let start else { throw .unexpectedNull }
        // The pointer lies within the PGresult, which `owner` frees in its deinit: it must outlive the body.
        return withExtendedLifetime(owner) { body(UnsafeRawBufferPointer(start: start, count: length)) }
    }

    /// Reads a whole field as one big-endian integer.
    func integer<T: FixedWidthInteger>(_: T.Type = T.self) throws(PostgresDecodingProblem) -> T {
        let value = try withBytes { bytes -> T? in
            guard bytes.count == MemoryLayout<T>.size else { return nil }
            return T(bigEndian: bytes.loadUnaligned(as: T.self))
        }
        guard let value else { throw .malformed }
        return value
    }

    /// Reads an integer of whatever width the server sent.
    func anyInteger<T: FixedWidthInteger>(_: T.Type = T.self) throws(PostgresDecodingProblem) -> T {
        let wide: Int64
        switch type {
        case .int8: wide = try integer(Int64.self)
        case .int4: wide = Int64(try integer(Int32.self))
        case .int2: wide = Int64(try integer(Int16.self))
        default:
            // If both are wrong, NULL is reported rather than the type, since the caller has to fix that first.
            throw isNull ? .unexpectedNull : .wrongType(type)
        }
        guard let value = T(exactly: wide) else { throw .outOfRange }
        return value
    }

    /// Splits an array of one dimension into its elements.
    func elements() throws(PostgresDecodingProblem) -> [PostgresValue] {
        guard let start else { throw .unexpectedNull }
        var reader = ArrayReader(bytes: UnsafeRawBufferPointer(start: start, count: length))
        return try withExtendedLifetime(owner) { () throws(PostgresDecodingProblem) -> [PostgresValue] in
            let dimensions = try reader.next(Int32.self)
            _ = try reader.next(Int32.self)
            let elementType = PostgresType(rawValue: try reader.next(UInt32.self))
            guard dimensions != 0 else { return [] }
            guard dimensions == 1 else { throw .wrongType(type) }
            let count = try reader.next(Int32.self)
            _ = try reader.next(Int32.self)
            // Each element takes four bytes at least, so that a forged count cannot make us reserve memory.
            guard count >= 0, Int(count) <= length / 4 else { throw .malformed }
            var elements: [PostgresValue] = []
            elements.reserveCapacity(Int(count))
            for _ in 0..<count {
                let size = try reader.next(Int32.self)
                let bytes = size < 0 ? nil : try reader.take(Int(size))
                elements.append(
                    PostgresValue(owner: owner, start: bytes?.baseAddress, length: bytes?.count ?? 0, type: elementType)
                )
            }
            return elements
        }
    }
}

/// Walks over the bytes of an array, checking every length before it is believed.
private struct ArrayReader {
    var bytes: UnsafeRawBufferPointer
    var offset = 0

    mutating func next<T: FixedWidthInteger>(_: T.Type) throws(PostgresDecodingProblem) -> T {
        let piece = try take(MemoryLayout<T>.size)
        return T(bigEndian: piece.loadUnaligned(as: T.self))
    }

    mutating func take(_ count: Int) throws(PostgresDecodingProblem) -> UnsafeRawBufferPointer {
        guard count <= bytes.count - offset else { throw .malformed }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
    }
}

extension Optional: PostgresDecodable where Wrapped: PostgresDecodable {
    /// Reads NULL as `nil`, and anything else as the wrapped type does.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        self = value.isNull ? .none : .some(try Wrapped(postgres: value))
    }
}
