public import MusterCore

/// A bound on how deep a JSON document from outside is nested: the time to decode a document grows with its size and with its
/// depth together (I19).
public enum JSONDepth {
    /// Throws `InputRefusal` if objects and arrays are nested deeper than `Limits.jsonDepth`. Reads the bytes once; anything else
    /// that may be wrong is left to the decoder.
    public static func check(_ bytes: some Collection<UInt8>) throws(InputRefusal) {
        // Each sync passes here: the bytes are read where they are.
        let isTooDeep =
            bytes.withContiguousStorageIfAvailable(Self.isTooDeep)
            ?? Array(bytes).withUnsafeBufferPointer(Self.isTooDeep)
        guard !isTooDeep else {
            throw InputRefusal(pointer: "", reason: "is nested deeper than \(Limits.jsonDepth) levels")
        }
    }

    private static func isTooDeep(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var depth = 0
        var isInString = false
        var isEscaped = false
        for byte in bytes {
            if isInString {
                isInString = isEscaped || byte != UInt8(ascii: "\"")
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                if depth > Limits.jsonDepth { return true }
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            default: break
            }
        }
        return false
    }
}
