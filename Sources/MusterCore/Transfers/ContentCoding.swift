/// A content coding that can be decoded (RFC 9110 §8.4.1; br: RFC 7932, zstd: RFC 8878).
public enum ContentCoding: String, Sendable, CaseIterable {
    /// `gzip` and `x-gzip`.
    case gzip
    /// `deflate`.
    case deflate
    /// `br`.
    case brotli = "br"
    /// `zstd`.
    case zstandard = "zstd"

    /// The coding with that name, in any case; `nil` for other names and for lists of codings.
    public init?(_ name: String) {
        let name = name.lowercased()
        self.init(rawValue: name == "x-gzip" ? "gzip" : name)
    }
}
