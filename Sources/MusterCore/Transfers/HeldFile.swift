/// A finished file of the sink that may be what a task asks for: an earlier task asked for the same in the same way.
///
/// Only the origin can say whether it still is, by answering 304 to a request with the file's validator (RFC 9110 §13). The file is also
/// checked against everything that is known of its content.
public struct HeldFile: Hashable, Sendable, Codable {
    /// The path below the sink, as far as the coordinator knows.
    public var path: String
    /// Its size, and what its origin stated about it.
    public var representation: Representation
    /// CRC32C of the whole file.
    public var crc: UInt32
    /// Digests that were computed of it, by algorithm, in hexadecimal.
    public var digests: [String: String]
    /// The URL that its content came from, after redirects.
    public var effectiveURL: String?

    /// Its size, if the origin stated a validator with it. A smaller content without a validator is not its next version (row 27).
    public var validatedSize: Int64? { representation.hasValidator ? representation.size : nil }

    /// A file that is in the sink.
    public init(
        path: String, representation: Representation, crc: UInt32, digests: [String: String] = [:],
        effectiveURL: String? = nil
    ) {
        self.path = path
        self.representation = representation
        self.crc = crc
        self.digests = digests
        self.effectiveURL = effectiveURL
    }

    private enum CodingKeys: CodingKey, CaseIterable {
        case path, representation, crc, digests, effectiveURL
    }

    /// The fields of the stored representation. Digests that an origin stated are not stored for a finished file.
    private enum RepresentationKeys: CodingKey, CaseIterable {
        case size, etag, lastModified, isDateStrong, digests
    }

    /// Reads what the SQL function `held_file` writes and the coordinator passes on; rejects unknown fields.
    public init(from decoder: any Decoder) throws {
        let file = try decoder.strictContainer(keyedBy: CodingKeys.self)
        path = try file.decode(String.self, forKey: .path)
        _ = try file.superDecoder(forKey: .representation).strictContainer(keyedBy: RepresentationKeys.self)
        representation = try file.decode(Representation.self, forKey: .representation)
        crc = try file.decode(UInt32.self, forKey: .crc)
        digests = try file.decode([String: String].self, forKey: .digests)
        effectiveURL = try file.decodeIfPresent(String.self, forKey: .effectiveURL)
    }
}
