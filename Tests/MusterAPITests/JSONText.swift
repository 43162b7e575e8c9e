import FoundationEssentials
import MusterAPI
import MusterCore
import Testing

/// JSON with its fields in alphabetical order, so that whole documents can be compared as texts.
func jsonText(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
}

/// Reads a document.
func document<Value: Decodable>(_ type: Value.Type, _ json: String) throws -> Value {
    try JSONDecoder().decode(type, from: Data(json.utf8))
}

/// Decodes JSON that should be refused, and returns the refusal.
func refusal<Value: Decodable>(_ type: Value.Type, _ json: String) -> InputRefusal? {
    do {
        _ = try document(type, json)
        return nil
    } catch let error as DecodingError {
        return InputRefusal(error)
    } catch {
        Issue.record(error)
        return nil
    }
}
