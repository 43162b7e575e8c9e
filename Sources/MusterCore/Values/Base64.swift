import FoundationEssentials

/// Base64 with the standard alphabet (RFC 4648 §4).
enum Base64 {
    /// Decodes a text; `nil` if it is not Base64. Padding may be left out (RFC 9651 §4.2.7), but may not be wrong.
    static func decode(_ text: Substring) -> [UInt8]? {
        let isPadded = text.utf8.last == UInt8(ascii: "=")
        let missing = isPadded ? 0 : (4 - text.utf8.count % 4) % 4
        return Data(base64Encoded: text + String(repeating: "=", count: missing)).map { [UInt8]($0) }
    }
}
