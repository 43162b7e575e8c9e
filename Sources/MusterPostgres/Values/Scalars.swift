extension Bool: PostgresScalar {
    /// `boolean`.
    public static var postgresType: PostgresType { .bool }
    /// `boolean[]`.
    public static var postgresArrayType: PostgresType { .boolArray }

    /// Writes one byte.
    public func encode(into encoder: inout PostgresEncoder) {
        encoder.write(UInt8(self ? 1 : 0))
    }

    /// Reads a `boolean`.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        guard value.isNull || value.type == .bool else { throw .wrongType(value.type) }
        self = try value.integer(UInt8.self) != 0
    }
}

extension Int16: PostgresScalar {
    /// `smallint`.
    public static var postgresType: PostgresType { .int2 }
    /// `smallint[]`.
    public static var postgresArrayType: PostgresType { .int2Array }

    /// Writes two bytes.
    public func encode(into encoder: inout PostgresEncoder) { encoder.write(self) }

    /// Reads any integer that fits.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) { self = try value.anyInteger() }
}

extension Int32: PostgresScalar {
    /// `integer`.
    public static var postgresType: PostgresType { .int4 }
    /// `integer[]`.
    public static var postgresArrayType: PostgresType { .int4Array }

    /// Writes four bytes.
    public func encode(into encoder: inout PostgresEncoder) { encoder.write(self) }

    /// Reads any integer that fits.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) { self = try value.anyInteger() }
}

extension Int64: PostgresScalar {
    /// `bigint`.
    public static var postgresType: PostgresType { .int8 }
    /// `bigint[]`.
    public static var postgresArrayType: PostgresType { .int8Array }

    /// Writes eight bytes.
    public func encode(into encoder: inout PostgresEncoder) { encoder.write(self) }

    /// Reads any integer.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) { self = try value.anyInteger() }
}

extension UInt32: PostgresScalar {
    /// `bigint`: PostgreSQL knows no unsigned integers.
    public static var postgresType: PostgresType { .int8 }
    /// `bigint[]`.
    public static var postgresArrayType: PostgresType { .int8Array }

    /// Writes eight bytes.
    public func encode(into encoder: inout PostgresEncoder) { encoder.write(Int64(self)) }

    /// Reads any integer that fits.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) { self = try value.anyInteger() }
}

extension Int: PostgresScalar {
    /// `bigint`, whatever the width of `Int`.
    public static var postgresType: PostgresType { .int8 }
    /// `bigint[]`.
    public static var postgresArrayType: PostgresType { .int8Array }

    /// Writes eight bytes.
    public func encode(into encoder: inout PostgresEncoder) { encoder.write(Int64(self)) }

    /// Reads any integer that fits.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) { self = try value.anyInteger() }
}

extension Double: PostgresScalar {
    /// `double precision`.
    public static var postgresType: PostgresType { .float8 }
    /// `double precision[]`.
    public static var postgresArrayType: PostgresType { .float8Array }

    /// Writes the IEEE 754 bit pattern, NaN and infinities included.
    public func encode(into encoder: inout PostgresEncoder) { encoder.write(bitPattern) }

    /// Reads `double precision` or `real`.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        switch value.type {
        case .float8: self = Double(bitPattern: try value.integer(UInt64.self))
        case .float4: self = Double(Float(bitPattern: try value.integer(UInt32.self)))
        default: throw value.isNull ? .unexpectedNull : .wrongType(value.type)
        }
    }
}

extension String: PostgresScalar {
    /// `text`.
    public static var postgresType: PostgresType { .text }
    /// `text[]`.
    public static var postgresArrayType: PostgresType { .textArray }

    /// Writes UTF-8. The server refuses a NUL character (22021): `text` cannot hold one.
    public func encode(into encoder: inout PostgresEncoder) { encoder.write(contentsOf: utf8) }

    /// Reads any of the character types.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        switch value.type {
        case .text, .varchar, .bpchar, .name, .unknown:
            // The connection's encoding is UTF-8, and the server validates what it stores, so nothing is repaired here.
            self = try value.withBytes { String(decoding: $0, as: UTF8.self) }
        default:
            throw value.isNull ? .unexpectedNull : .wrongType(value.type)
        }
    }
}

extension Duration: PostgresScalar {
    /// `interval`.
    public static var postgresType: PostgresType { .interval }
    /// `interval[]`.
    public static var postgresArrayType: PostgresType { .intervalArray }

    /// Writes whole microseconds (truncating), and neither days nor months, whose lengths vary.
    public func encode(into encoder: inout PostgresEncoder) {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let limit = seconds < 0 ? Int64.min : Int64.max
        // `scaled` and the fraction have the same sign, so that the sum saturates at the same limit.
        let (sum, sumOverflow) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        encoder.write(overflow || sumOverflow ? limit : sum)
        encoder.write(Int32(0))
        encoder.write(Int32(0))
    }

    /// Reads an interval without months; a day counts 24 hours.
    public init(postgres value: PostgresValue) throws(PostgresDecodingProblem) {
        guard value.isNull || value.type == .interval else { throw .wrongType(value.type) }
        let parts = try value.withBytes { bytes -> (Int64, Int32, Int32)? in
            guard bytes.count == 16 else { return nil }
            return (
                Int64(bigEndian: bytes.loadUnaligned(as: Int64.self)),
                Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int32.self)),
                Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: 12, as: Int32.self))
            )
        }
        guard let (microseconds, days, months) = parts else { throw .malformed }
        guard months == 0 else { throw .outOfRange }
        self = .microseconds(microseconds) + .seconds(Int64(days) * 86_400)
    }
}
