/// One input of a `ByteFuzzer`.
public struct FuzzInput: Sendable, CustomStringConvertible {
    /// What the parser reads.
    public let bytes: [UInt8]
    /// A seed for what else a test chooses for this input, such as the pieces in which it comes.
    public let seed: UInt64

    /// The most bytes that are printed.
    private static let shownBytes = 8_192

    /// An input.
    public init(_ bytes: [UInt8], seed: UInt64 = 0) {
        self.bytes = bytes
        self.seed = seed
    }

    /// The input as a text, in which U+FFFD stands for what is not UTF-8.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The input in pieces of random sizes, some of them empty.
    public var pieces: [[UInt8]] {
        var random = SeededGenerator(seed: seed)
        var pieces: [[UInt8]] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Int(random.magnitude(upTo: 12))
            pieces.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return pieces
    }

    /// Throws what the parser did wrong, unless `holds`.
    public func expect(_ holds: Bool, _ wrong: @autoclosure () -> String) throws {
        guard holds else { throw FuzzFinding(wrong()) }
    }

    /// Printable ASCII as it is, all else as `\xNN`; a backslash is `\x5c`.
    public var description: String {
        let shown = bytes.prefix(Self.shownBytes).map { byte in
            let isPlain = (0x20..<0x7F).contains(byte) && byte != UInt8(ascii: "\\")
            guard !isPlain else { return String(UnicodeScalar(byte)) }
            return (byte < 16 ? "\\x0" : "\\x") + String(byte, radix: 16)
        }
        return shown.joined() + (bytes.count > Self.shownBytes ? "… (\(bytes.count) bytes)" : "")
    }
}

/// What a parser did wrong, with the input if it is known.
public struct FuzzFinding: Error, Sendable, CustomStringConvertible {
    /// In words.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
