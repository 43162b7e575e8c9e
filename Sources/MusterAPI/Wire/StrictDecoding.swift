public import MusterCore

/// A coding key of any name, to find out which fields a document really has.
private struct AnyKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init?(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init?(intValue: Int) {
        stringValue = String(intValue)
        self.intValue = intValue
    }
}

extension Decoder {
    /// A container that refuses fields which `Key` doesn't know, so that a misspelt wish is never silently dropped.
    func strictContainer<Key: CodingKey & CaseIterable>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        let known = Set(Key.allCases.map(\.stringValue))
        for key in try container(keyedBy: AnyKey.self).allKeys where !known.contains(key.stringValue) {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: codingPath + [key], debugDescription: "unknown field"))
        }
        return try container(keyedBy: type)
    }
}

extension InputRefusal {
    /// What is wrong with a JSON document, with the JSON pointer of the place.
    public init(_ error: DecodingError) {
        switch error {
        case .typeMismatch(_, let context):
            self.init(context, reason: "has the wrong type")
        case .valueNotFound(_, let context):
            self.init(context, reason: "must not be null")
        case .keyNotFound(let key, let context):
            self.init(pointer: Self.pointer(context.codingPath + [key]), reason: "is missing")
        case .dataCorrupted(let context):
            self.init(context, reason: context.codingPath.isEmpty ? "is not JSON" : context.debugDescription)
        @unknown default:
            self.init(pointer: "", reason: "can't be read")
        }
    }

    private init(_ context: DecodingError.Context, reason: String) {
        self.init(pointer: Self.pointer(context.codingPath), reason: reason)
    }

    private static func pointer(_ path: [any CodingKey]) -> String {
        path.map { key in
            // `~` and `/` are escaped as RFC 6901 §3 says.
            let escaped = key.stringValue.map { $0 == "~" ? "~0" : $0 == "/" ? "~1" : String($0) }.joined()
            return "/" + (key.intValue.map(String.init) ?? escaped)
        }.joined()
    }
}
