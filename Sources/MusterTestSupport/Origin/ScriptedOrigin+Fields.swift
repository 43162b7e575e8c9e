import Crypto
import FoundationEssentials

extension ScriptedOrigin.Header {
    /// An algorithm of a stated digest.
    public enum DigestAlgorithm: Sendable, Hashable, CaseIterable {
        case md5
        case sha1
        case sha256
        case sha512
    }

    /// `Repr-Digest` of these bytes (RFC 9530 §3); give it other bytes than those of the file to state a wrong one (35).
    public static func reprDigest(
        of content: ScriptedOrigin.Content,
        _ algorithms: DigestAlgorithm...
    ) -> ScriptedOrigin.Header {
        let members = algorithms.map { "\($0.structuredName)=:\(content.base64Digest($0)):" }
        return ScriptedOrigin.Header("Repr-Digest", members.joined(separator: ", "))
    }

    /// `Digest` of these bytes (RFC 3230 §4.3.2).
    public static func digest(
        of content: ScriptedOrigin.Content,
        _ algorithms: DigestAlgorithm...
    ) -> ScriptedOrigin.Header {
        let members = algorithms.map { "\($0.instanceName)=\(content.base64Digest($0))" }
        return ScriptedOrigin.Header("Digest", members.joined(separator: ","))
    }

    /// `Content-MD5` of these bytes (RFC 1864).
    public static func contentMD5(of content: ScriptedOrigin.Content) -> ScriptedOrigin.Header {
        ScriptedOrigin.Header("Content-MD5", content.base64Digest(.md5))
    }

    /// `Content-Disposition: attachment` with this name, quoted (RFC 6266 §4.1).
    public static func disposition(filename: String) -> ScriptedOrigin.Header {
        let quoted = filename.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        return ScriptedOrigin.Header("Content-Disposition", "attachment; filename=\"\(quoted)\"")
    }

    /// The same in the extended form of RFC 8187, with every byte of the name percent-encoded.
    public static func disposition(extendedFilename name: String) -> ScriptedOrigin.Header {
        let encoded = name.utf8.map { "%" + FileDigest.hexadecimal([$0]).uppercased() }.joined()
        return ScriptedOrigin.Header("Content-Disposition", "attachment; filename*=UTF-8''\(encoded)")
    }

    /// A field with a date, this many seconds after 1970 (RFC 9110 §5.6.7), such as Retry-After (25).
    public static func date(_ name: String, secondsSince1970 seconds: Int) -> ScriptedOrigin.Header {
        ScriptedOrigin.Header(name, ResponsePlan.date(seconds))
    }

    /// Names that an origin may suggest, and that lead out of a directory, to another place in it, or nowhere (34).
    public static let hostileNames = [
        "../escaped", "../../../../tmp/escaped", "/tmp/escaped", "..", ".", "", "a/b", "..\\escaped", "C:\\escaped",
        ".muster", "a\u{0}b", "a\nb", "a\u{1b}[31mb", "-rf", String(repeating: "n", count: 300), "a/../../escaped",
    ]
}

extension ScriptedOrigin.Header.DigestAlgorithm {
    /// Its key in a structured field (RFC 9530 §5).
    fileprivate var structuredName: String {
        switch self {
        case .md5: "md5"
        case .sha1: "sha"
        case .sha256: "sha-256"
        case .sha512: "sha-512"
        }
    }

    /// Its name in RFC 3230's registry.
    fileprivate var instanceName: String {
        switch self {
        case .md5: "MD5"
        case .sha1: "SHA"
        case .sha256: "SHA-256"
        case .sha512: "SHA-512"
        }
    }
}

extension ScriptedOrigin.Content {
    /// A digest of all of it, in Base64.
    func base64Digest(_ algorithm: ScriptedOrigin.Header.DigestAlgorithm) -> String {
        switch algorithm {
        case .md5: base64(Insecure.MD5())
        case .sha1: base64(Insecure.SHA1())
        case .sha256: base64(SHA256())
        case .sha512: base64(SHA512())
        }
    }

    private func base64(_ start: some HashFunction) -> String {
        Data(digest(start)).base64EncodedString()
    }

    /// Hashes all of it, piece by piece.
    func digest<Function: HashFunction>(_ start: Function) -> Function.Digest {
        var hash = start
        var offset: Int64 = 0
        while offset < size {
            let piece = bytes(in: offset..<min(size, offset + (1 << 20)))
            piece.withUnsafeBytes { hash.update(bufferPointer: $0) }
            offset += Int64(piece.count)
        }
        return hash.finalize()
    }
}
