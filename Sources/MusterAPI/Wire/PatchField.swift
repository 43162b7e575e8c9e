/// What a `PATCH` says of one field: absent, `null` and a value are three different wishes.
public enum PatchField<Value: Hashable & Sendable>: Hashable, Sendable {
    /// The field is absent: what is set stays.
    case keep
    /// The field is `null`: what is set is taken away.
    case clear
    /// It is this from now on.
    case set(Value)

    /// The new value, if there is one.
    public var value: Value? {
        switch self {
        case .keep, .clear: nil
        case .set(let value): value
        }
    }
}

extension KeyedDecodingContainer {
    /// A field of a patch.
    func patch<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> PatchField<Value> {
        guard contains(key) else { return .keep }
        return try decodeIfPresent(type, forKey: key).map { .set($0) } ?? .clear
    }

    /// A whole number of a patch.
    func patch<Number: FixedWidthInteger & Decodable>(
        integer type: Number.Type, forKey key: Key
    ) throws -> PatchField<
        Number
    > {
        guard contains(key) else { return .keep }
        return try integerIfPresent(type, forKey: key).map { .set($0) } ?? .clear
    }
}

extension KeyedEncodingContainer {
    /// Writes a field of a patch, as far as it says something.
    mutating func encode<Value: Encodable>(_ field: PatchField<Value>, forKey key: Key) throws {
        switch field {
        case .keep: break
        case .clear: try encodeNil(forKey: key)
        case .set(let value): try encode(value, forKey: key)
        }
    }
}
