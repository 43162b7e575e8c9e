/// A field of a `PATCH`: absent, `null` and a value mean three different changes.
public enum PatchField<Value: Hashable & Sendable>: Hashable, Sendable {
    /// The field is absent: the setting stays.
    case keep
    /// The field is `null`: the setting is removed.
    case clear
    /// The field has a value: it is the new setting.
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
    /// Reads a field of a patch.
    func patch<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> PatchField<Value> {
        guard contains(key) else { return .keep }
        return try decodeIfPresent(type, forKey: key).map { .set($0) } ?? .clear
    }

    /// Reads a whole number of a patch.
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
    /// Writes a field of a patch, unless it stays.
    mutating func encode<Value: Encodable>(_ field: PatchField<Value>, forKey key: Key) throws {
        switch field {
        case .keep: break
        case .clear: try encodeNil(forKey: key)
        case .set(let value): try encode(value, forKey: key)
        }
    }
}
