public import MusterCore

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
}
