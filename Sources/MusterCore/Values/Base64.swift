import FoundationEssentials

/// Base64 with the standard alphabet (RFC 4648 §4).
enum Base64 {
    /// Decodes a text; `nil` if it is not Base64. Padding may be left out (RFC 9651 §4.2.7), but may not be wrong.
    static func decode(_ text: Substring) -> [UInt8]? {
        let digits = text.prefix { $0 != "=" }
        let padding = text.utf8.count - digits.utf8.count
        let missing = (4 - digits.utf8.count % 4) % 4
        guard padding == 0 || padding == missing, text.utf8.suffix(padding).allSatisfy({ $0 == UInt8(ascii: "=") })
        else { return nil }
        return Data(base64Encoded: digits + String(repeating: "=", count: missing)).map { [UInt8]($0) }
    }
}
