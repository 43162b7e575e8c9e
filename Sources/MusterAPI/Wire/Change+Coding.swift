import MusterCore

extension KeyedDecodingContainer {
    /// Reads a field of a patch.
    func patch<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Change<Value> {
        guard contains(key) else { return .keep }
        return try decodeIfPresent(type, forKey: key).map { .set($0) } ?? .clear
    }

    /// Reads a whole number of a patch.
    func patch<Number: FixedWidthInteger & Decodable>(
        integer type: Number.Type, forKey key: Key
    ) throws -> Change<Number> {
        guard contains(key) else { return .keep }
        return try integerIfPresent(type, forKey: key).map { .set($0) } ?? .clear
    }
}

extension Change {
    /// The new value, with `value` as the default for `null`; `nil` when nothing changes.
    func orDefault(_ value: Value) -> Value? {
        switch self {
        case .keep: nil
        case .clear: value
        case .set(let new): new
        }
    }
}

extension KeyedEncodingContainer {
    /// Writes a field of a patch, unless it stays.
    mutating func encode<Value: Encodable>(_ field: Change<Value>, forKey key: Key) throws {
        switch field {
        case .keep: break
        case .clear: try encodeNil(forKey: key)
        case .set(let value): try encode(value, forKey: key)
        }
    }
}
