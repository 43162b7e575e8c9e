/// Percent-encoding of one path segment (RFC 3986 §2.1): everything but unreserved characters, slashes too.
public enum PercentEncoding {
    private static let hexadecimal = Array("0123456789ABCDEF".utf8)

    /// Encodes `text` so that it can stand as one segment of a URL's path.
    public static func encodeSegment(_ text: String) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.append(byte)
            default:
                result.append(UInt8(ascii: "%"))
                result.append(hexadecimal[Int(byte >> 4)])
                result.append(hexadecimal[Int(byte & 15)])
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Decodes `%XX`; `nil` for a malformed escape, or if the result is not UTF-8.
    public static func decode(_ text: some StringProtocol) -> String? {
        var result: [UInt8] = []
        var bytes = text.utf8.makeIterator()
        while let byte = bytes.next() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            guard let high = bytes.next().flatMap(Hexadecimal.digit), let low = bytes.next().flatMap(Hexadecimal.digit)
            else { return nil }
            result.append(high << 4 | low)
        }
        return String(validating: result, as: UTF8.self)
    }
}
