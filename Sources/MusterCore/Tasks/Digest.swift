/// A digest algorithm that the caller may expect of a file.
public enum DigestAlgorithm: String, Sendable, Hashable, CaseIterable, Codable {
    /// SHA-256, FIPS 180-4.
    case sha256
    /// SHA-512, FIPS 180-4.
    case sha512
    /// SHA-1; only as trustworthy as what the origin publishes.
    case sha1
    /// MD5; only as trustworthy as what the origin publishes.
    case md5
    /// CRC-32C (RFC 9260 appendix A), most significant byte first; detects accidents, not attacks.
    case crc32c

    /// Length of the value in hexadecimal digits.
    public var hexadecimalDigits: Int {
        switch self {
        case .sha256: 64
        case .sha512: 128
        case .sha1: 40
        case .md5: 32
        case .crc32c: 8
        }
    }

    /// Whether two contents that differ by accident have different values, for all practical purposes. Only such a digest may prove that
    /// chunks of unknown origin make up a single content (range contract, rows 11, 12, 30). Among many files 32 bits are too few.
    public var tellsContentsApart: Bool {
        switch self {
        case .sha256, .sha512, .sha1, .md5: true
        case .crc32c: false
        }
    }
}

/// A digest of a whole file, in lower-case hexadecimal.
public struct ContentDigest: Hashable, Sendable {
    /// The algorithm.
    public let algorithm: DigestAlgorithm
    /// Its value: lower-case hexadecimal digits, as many as the algorithm has.
    public let hexadecimal: String

    /// A digest; `nil` if the digits are not hexadecimal, or not as many as the algorithm has.
    public init?(algorithm: DigestAlgorithm, hexadecimal: String) {
        let digits = hexadecimal.lowercased()
        guard digits.utf8.count == algorithm.hexadecimalDigits, digits.utf8.allSatisfy(Self.isDigit) else { return nil }
        self.algorithm = algorithm
        self.hexadecimal = digits
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// A digest from raw bytes.
    public init(algorithm: DigestAlgorithm, bytes: some Sequence<UInt8>) {
        let digits = Array("0123456789abcdef".utf8)
        self.algorithm = algorithm
        hexadecimal = String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
