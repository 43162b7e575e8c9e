/// A coding of a content that can be taken off (RFC 9110 §8.4.1; br: RFC 7932, zstd: RFC 8878).
public enum ContentCoding: String, Sendable, CaseIterable {
    /// `gzip` and `x-gzip`.
    case gzip
    /// `deflate`.
    case deflate
    /// `br`.
    case brotli = "br"
    /// `zstd`.
    case zstandard = "zstd"

    /// The coding of that name, in any case; `nil` for another one, and for several.
    public init?(_ name: String) {
        let name = name.lowercased()
        self.init(rawValue: name == "x-gzip" ? "gzip" : name)
    }
}
