/// The byte sequences of a dictionary of structured fields (RFC 9651 §3.2); digest fields need no other types.
///
/// A field that breaks the grammar anywhere is ignored as a whole, as §4.2 demands; members of other types are skipped.
struct StructuredDictionary {
    /// Base64 texts of byte sequences, by key, without colons. Of several members with the same key the last counts.
    private(set) var byteSequences: [String: String] = [:]

    private var rest: ArraySlice<UInt8>

    /// Reads the lines of a field, which form a single list (RFC 9110 §5.3); `nil` for a text that is no dictionary, or is longer than
    /// `Limits.headerBytes`.
    init?(_ lines: [String]) {
        guard lines.lazy.map(\.utf8.count).reduce(0, +) <= Limits.headerBytes else { return nil }
        rest = Array(lines.joined(separator: ", ").utf8)[...]
        skip(" ")
        while !rest.isEmpty {
            guard member() else { return nil }
            skip(" \t")
            if rest.isEmpty { return }
            guard take(",") else { return nil }
            skip(" \t")
            // A comma has to be followed by another member.
            guard !rest.isEmpty else { return nil }
        }
    }

    private mutating func member() -> Bool {
        guard let key = key() else { return false }
        byteSequences[key] = nil
        if take("=") {
            if rest.first == UInt8(ascii: "(") {
                guard innerList() else { return false }
            } else if rest.first == UInt8(ascii: ":") {
                guard let text = byteSequence() else { return false }
                byteSequences[key] = text
            } else {
                guard bareItem() else { return false }
            }
        }
        return parameters()
    }

    /// `;key` and `;key=item`, any number of them (§3.1.2).
    private mutating func parameters() -> Bool {
        while take(";") {
            skip(" ")
            guard key() != nil else { return false }
            if take("=") {
                guard bareItem() else { return false }
            }
        }
        return true
    }

    /// `(item item …)` (§3.1.1).
    private mutating func innerList() -> Bool {
        guard take("(") else { return false }
        while true {
            skip(" ")
            if take(")") { return true }
            guard bareItem(), parameters(), rest.first == UInt8(ascii: " ") || rest.first == UInt8(ascii: ")") else {
                return false
            }
        }
    }

    /// A string, a byte sequence, or an item of any other type; the other types are similar enough to be skipped alike (§3.3).
    private mutating func bareItem() -> Bool {
        if rest.first == UInt8(ascii: ":") { return byteSequence() != nil }
        if rest.first == UInt8(ascii: "\"") { return string() }
        let item = rest.prefix { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "!#$%&'*+-.^_`|~:/?@".utf8.contains(byte)
            }
        }
        rest = rest.dropFirst(item.count)
        return !item.isEmpty
    }

    /// `"…"`, with `\"` and `\\` (§3.3.3).
    private mutating func string() -> Bool {
        guard take("\"") else { return false }
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return true
            case UInt8(ascii: "\\"):
                guard let next = rest.popFirst(), next == UInt8(ascii: "\"") || next == UInt8(ascii: "\\") else {
                    return false
                }
            case 0x20...0x7e: continue
            default: return false
            }
        }
        return false
    }

    /// `:base64:` (§3.3.5); returns what stands between the colons.
    private mutating func byteSequence() -> String? {
        guard take(":"), let end = rest.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let text = rest[..<end]
        rest = rest[(end + 1)...]
        guard text.allSatisfy(Base64.isDigit) else { return nil }
        return String(decoding: text, as: UTF8.self)
    }

    /// A key: lower-case letters, digits, `_ - . *`, and a letter or `*` first (§3.1.2).
    private mutating func key() -> String? {
        let key = rest.prefix { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            default: "_-.*".utf8.contains(byte)
            }
        }
        guard let first = key.first,
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first) || first == UInt8(ascii: "*")
        else { return nil }
        rest = rest.dropFirst(key.count)
        return String(decoding: key, as: UTF8.self)
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func skip(_ characters: String) {
        rest = rest.drop { characters.utf8.contains($0) }
    }
}
