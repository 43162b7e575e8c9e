public import MusterCore

extension KeyedDecodingContainer {
    /// A whole number, if there is one. For a number with a fraction, or one that doesn't fit, `JSONDecoder` loses the place and reports
    /// the whole document as invalid JSON.
    func integerIfPresent<Number: FixedWidthInteger & Decodable>(
        _ type: Number.Type, forKey key: Key
    ) throws -> Number? {
        do {
            return try decodeIfPresent(type, forKey: key)
        } catch let error as DecodingError where !error.isWithoutPlace {
            throw error
        } catch {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "must be a whole number of at most \(Number.bitWidth) bits")
        }
    }
}

extension DecodingError {
    /// Whether the error does not say where in the document it is.
    fileprivate var isWithoutPlace: Bool {
        if case .dataCorrupted(let context) = self { return context.codingPath.isEmpty }
        return false
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
            "/" + (key.intValue.map(String.init) ?? InputRefusal.pointerPart(key.stringValue))
        }.joined()
    }
}
