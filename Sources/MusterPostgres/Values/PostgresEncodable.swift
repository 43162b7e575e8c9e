/// A value that can be bound to a statement (`$1`, `$2`, …) or written as a field of a binary COPY.
public protocol PostgresEncodable: Sendable {
    /// The type under which the value is bound. It is always stated, never left to the server to guess.
    static var postgresType: PostgresType { get }

    /// Appends the value in PostgreSQL's binary format, or writes that it is NULL.
    func encode(into encoder: inout PostgresEncoder)
}

/// Receives the binary form of exactly one value.
public struct PostgresEncoder: Sendable {
    private(set) var bytes: [UInt8]
    private(set) var isNull = false

    init(reusing bytes: [UInt8] = []) {
        self.bytes = bytes
    }

    /// Declares the value to be SQL's NULL.
    public mutating func writeNull() {
        isNull = true
    }

    /// Appends an integer in network byte order.
    public mutating func write<T: FixedWidthInteger>(_ value: T) {
        withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    /// Appends bytes as they are.
    public mutating func write(contentsOf other: some Sequence<UInt8>) {
        bytes.append(contentsOf: other)
    }

    /// Appends an element or field as PostgreSQL frames them: a length of four bytes (-1 for NULL), then the value.
    mutating func writeFramed(_ value: some PostgresEncodable) {
        let lengthAt = bytes.count
        write(Int32(0))
        let outerIsNull = isNull
        isNull = false
        value.encode(into: &self)
        if isNull {
            bytes.removeSubrange((lengthAt + 4)...)
            overwrite(Int32(-1), at: lengthAt)
        } else {
            overwrite(Int32(truncatingIfNeeded: bytes.count - lengthAt - 4), at: lengthAt)
        }
        isNull = outerIsNull
    }

    private mutating func overwrite(_ value: Int32, at offset: Int) {
        withUnsafeBytes(of: value.bigEndian) { source in
            for (index, byte) in source.enumerated() {
                bytes[offset + index] = byte
            }
        }
    }

    /// Hands the bytes over, leaving none, so that their storage keeps a single owner and is not copied on the next
    /// write.
    mutating func take() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &bytes)
        isNull = false
        return taken
    }
}

extension Optional: PostgresEncodable where Wrapped: PostgresEncodable {
    /// The type of the wrapped value: NULL is typed too.
    public static var postgresType: PostgresType { Wrapped.postgresType }

    /// Writes the wrapped value, or NULL for `nil`.
    public func encode(into encoder: inout PostgresEncoder) {
        switch self {
        case .some(let value): value.encode(into: &encoder)
        case .none: encoder.writeNull()
        }
    }
}
