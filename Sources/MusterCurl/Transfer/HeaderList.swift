/// One header field as it stands on the wire: the name keeps its spelling, the value is trimmed of outer white space.
public struct HeaderField: Sendable, Hashable {
    /// The field name, in the peer's (or caller's) spelling; names are compared without regard to ASCII case.
    public var name: String
    /// The field value, decoded as UTF-8; bytes that are not UTF-8 become U+FFFD.
    public var value: String

    /// Makes a field from a name and a value; nothing is checked here, see ``TransferRequest/headers``.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// Header fields in the order of the wire, duplicates kept, looked up without regard to ASCII case (RFC 9110 §5.1).
public struct HeaderList: Sendable, Hashable, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
    /// All fields, in order.
    public private(set) var fields: [HeaderField]

    /// Makes a list of the given fields.
    public init(_ fields: [HeaderField] = []) {
        self.fields = fields
    }

    /// Makes a list of the given fields.
    public init(arrayLiteral elements: HeaderField...) {
        self.init(elements)
    }

    /// Makes a list from name and value pairs, whose order is kept.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { HeaderField($0.0, $0.1) })
    }

    /// The value of the last field of that name, or nil if there is none.
    public subscript(name: String) -> String? {
        fields.last { asciiCaseInsensitiveEqual($0.name, name) }?.value
    }

    /// The values of all fields of that name, in order; comma lists are not split.
    public func all(_ name: String) -> [String] {
        fields.filter { asciiCaseInsensitiveEqual($0.name, name) }.map(\.value)
    }

    /// Whether a field of that name is there.
    public func contains(_ name: String) -> Bool {
        fields.contains { asciiCaseInsensitiveEqual($0.name, name) }
    }

    /// Adds a field at the end, whether or not the name is there already.
    public mutating func append(_ name: String, _ value: String) {
        fields.append(HeaderField(name, value))
    }

    /// Takes out all fields of that name.
    public mutating func remove(_ name: String) {
        fields.removeAll { asciiCaseInsensitiveEqual($0.name, name) }
    }

    mutating func extendLast(by text: String) {
        guard !fields.isEmpty else { return }
        fields[fields.count - 1].value += " " + text
    }
}

/// Compares two strings byte by byte, A-Z being equal to a-z; without allocation, and without Unicode folding, which HTTP
/// does not use.
func asciiCaseInsensitiveEqual(_ left: String, _ right: String) -> Bool {
    let (a, b) = (left.utf8, right.utf8)
    guard a.count == b.count else { return false }
    return zip(a, b).allSatisfy { asciiLowercase($0) == asciiLowercase($1) }
}

/// Lowers A-Z and leaves every other byte as it is.
func asciiLowercase(_ byte: UInt8) -> UInt8 {
    byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
}
