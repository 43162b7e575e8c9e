import RawStructuredFieldValues

/// The digests of the whole representation that an origin states beside it (range contract, row 35).
///
/// Three generations of fields say the same, and where they contradict each other the newest one counts:
/// - `Repr-Digest` (RFC 9530 §3), a dictionary of byte sequences;
/// - `Digest` (RFC 3230 §4.3.2), a list of `algorithm=base64`; it covers the whole file even in a 206;
/// - `Content-Digest` (RFC 9530 §2), which is written like `Repr-Digest`, and `Content-MD5` (RFC 1864): they cover the body, and so the
///   whole file only in a 200, and in a 206 with the whole file.
///
/// An ETag is never a digest, even if it looks like one. What can't be read is ignored: unknown algorithms, values whose length is not
/// their algorithm's, fields longer than `Limits.headerBytes`.
public struct StatedDigests: Hashable, Sendable {
    /// The digests by algorithm, each once.
    public let digests: [DigestAlgorithm: ContentDigest]

    /// Reads what a response states.
    public init(_ facts: ResponseFacts) {
        var digests: [DigestAlgorithm: ContentDigest] = [:]
        if facts.status == 200 || Self.isAll(facts) {
            digests = Self.contentMD5(facts.values("content-md5"))
            digests.merge(Self.representationDigests(facts.values("content-digest"))) { _, newer in newer }
        }
        digests.merge(Self.instanceDigests(facts.values("digest"))) { _, newer in newer }
        digests.merge(Self.representationDigests(facts.values("repr-digest"))) { _, newer in newer }
        self.digests = digests
    }

    /// Whether a 206 covers the whole file.
    private static func isAll(_ facts: ResponseFacts) -> Bool {
        let stated = facts.values("content-range")
        guard facts.status == 206, stated.count == 1, let content = ContentRange(stated[0]), let range = content.range
        else {
            return false
        }
        return range.start == 0 && range.end == content.size
    }

    /// Values in hexadecimal by the algorithm's name, the form of `Representation.digests`.
    public var byName: [String: String] {
        Dictionary(uniqueKeysWithValues: digests.map { ($0.key.rawValue, $0.value.hexadecimal) })
    }

    private static func representationDigests(_ lines: [String]) -> [DigestAlgorithm: ContentDigest] {
        guard lines.lazy.map(\.utf8.count).reduce(0, +) <= Limits.headerBytes else { return [:] }
        var parser = StructuredFieldValueParser(Array(lines.joined(separator: ", ").utf8))
        // RFC 9651 §4.2: a field that breaks the grammar anywhere is ignored as a whole.
        guard let members = try? parser.parseDictionaryFieldValue() else { return [:] }
        var digests: [DigestAlgorithm: ContentDigest] = [:]
        for (key, member) in members {
            // The registry's names are in lower case here, and each algorithm has a single name.
            guard let algorithm = algorithm(key), case .item(let item) = member,
                case .undecodedByteSequence(let text) = item.rfc9651BareItem
            else { continue }
            digests[algorithm] = digest(algorithm, base64: text[...])
        }
        return digests
    }

    private static func instanceDigests(_ lines: [String]) -> [DigestAlgorithm: ContentDigest] {
        guard lines.lazy.map(\.utf8.count).reduce(0, +) <= Limits.headerBytes else { return [:] }
        var digests: [DigestAlgorithm: ContentDigest] = [:]
        for member in lines.flatMap({ $0.split(separator: ",") }) {
            let parts = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let algorithm = algorithm(parts[0].trimmed.lowercased()) else { continue }
            digests[algorithm] = digest(algorithm, base64: parts[1].trimmed)
        }
        return digests
    }

    private static func contentMD5(_ lines: [String]) -> [DigestAlgorithm: ContentDigest] {
        guard lines.count == 1, let digest = digest(.md5, base64: lines[0][...].trimmed) else { return [:] }
        return [.md5: digest]
    }

    /// The algorithm by its name in the registry of RFC 9530 §7.2, in lower case; `sha` is SHA-1 there.
    private static func algorithm(_ name: String) -> DigestAlgorithm? {
        switch name {
        case "sha-256": .sha256
        case "sha-512": .sha512
        case "sha": .sha1
        case "md5": .md5
        case "crc32c": .crc32c
        default: nil
        }
    }

    private static func digest(_ algorithm: DigestAlgorithm, base64: Substring) -> ContentDigest? {
        // A text that is too long is not decoded.
        guard base64.utf8.count <= algorithm.hexadecimalDigits, let bytes = Base64.decode(base64),
            bytes.count * 2 == algorithm.hexadecimalDigits
        else { return nil }
        return ContentDigest(algorithm: algorithm, bytes: bytes)
    }
}
