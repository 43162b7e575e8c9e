/// A finished file of the sink that may be what a task asks for: an earlier task asked for the same in the same way.
///
/// Whether it still is says the origin alone, by answering 304 to a request with the file's validator (RFC 9110 §13); and that it is
/// what was fetched then is checked against all that is known of its content.
public struct HeldFile: Hashable, Sendable, Codable {
    /// Where it stands below the sink, as far as the coordinator knows.
    public var path: String
    /// Its size, and what its origin stated of it.
    public var representation: Representation
    /// CRC32C of all of it.
    public var crc: UInt32
    /// Digests that were computed of it, by algorithm, in hexadecimal.
    public var digests: [String: String]
    /// Where its content came from, after redirects.
    public var effectiveURL: String?

    /// Its size, if the origin stated a validator with it: what comes without one, and is smaller, is not its next version (row 27).
    public var validatedSize: Int64? { representation.hasValidator ? representation.size : nil }

    /// A file that is there.
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

    /// The fields of what is known of its content; those that an origin stated are not stored of a finished file.
    private enum RepresentationKeys: CodingKey, CaseIterable {
        case size, etag, lastModified, isDateStrong, digests
    }

    /// Reads what the SQL function `held_file` writes, and what a coordinator sends on; refuses fields that nobody knows.
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
