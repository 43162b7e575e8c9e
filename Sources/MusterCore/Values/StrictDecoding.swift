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
    /// A container that refuses fields which `Key` doesn't know, so that a misspelt field is never silently ignored.
    package func strictContainer<Key: CodingKey & CaseIterable>(
        keyedBy type: Key.Type
    ) throws -> KeyedDecodingContainer<Key> {
        let known = Set(Key.allCases.map(\.stringValue))
        // The keys come in no order: of several unknown fields the same one is named each time.
        let unknown = try container(keyedBy: AnyKey.self).allKeys.filter { !known.contains($0.stringValue) }
        if let key = unknown.min(by: { $0.stringValue < $1.stringValue }) {
            let fields = known.sorted().joined(separator: ", ")
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: codingPath + [key], debugDescription: "unknown field; there are: \(fields)"))
        }
        return try container(keyedBy: type)
    }
}
