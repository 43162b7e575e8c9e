/// Base64 with the standard alphabet (RFC 4648 §4).
enum Base64 {
    /// Whether a byte may stand in it, padding included.
    static func isDigit(_ byte: UInt8) -> Bool {
        value(byte) != nil || byte == UInt8(ascii: "=")
    }

    /// Decodes a text; `nil` if it is not Base64. Padding may be left out (RFC 9651 §4.2.7), but may not be wrong.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        let digits = text.prefix { $0 != UInt8(ascii: "=") }
        let padding = text.dropFirst(digits.count)
        let missing = (4 - digits.count % 4) % 4
        guard padding.isEmpty || padding.count == missing, padding.allSatisfy({ $0 == UInt8(ascii: "=") }), missing != 3
        else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 3 / 4)
        var (buffer, bits): (UInt32, UInt32) = (0, 0)
        for digit in digits {
            guard let value = value(digit) else { return nil }
            buffer = (buffer << 6 | UInt32(value)) & 0xffff
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(buffer >> bits & 0xff))
            }
        }
        return bytes
    }

    private static func value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
