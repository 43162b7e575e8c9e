/// The content of a task as one validator set describes it (RFC 9110 §8.8): what every chunk of a content version must agree on.
public struct Representation: Hashable, Sendable, Codable {
    /// The whole size in bytes; unknown before the first response, or for a stream without a length.
    public var size: Int64?
    /// The entity tag exactly as the origin sent it, `W/` included.
    public var etag: String?
    /// The Last-Modified field exactly as the origin sent it.
    public var lastModified: String?

    /// A representation; every part of it may be unknown.
    public init(size: Int64? = nil, etag: String? = nil, lastModified: String? = nil) {
        self.size = size
        self.etag = etag
        self.lastModified = lastModified
    }

    /// The entity tag when it is a strong one: the only kind that If-Range may carry (RFC 9110 §13.1.5).
    public var strongETag: String? {
        guard let etag, etag.hasPrefix("\""), etag.hasSuffix("\""), etag.utf8.count >= 2 else { return nil }
        return etag
    }

    /// Whether two responses can be told to be of the same content at all (`http.md` row 12).
    public var hasValidator: Bool { etag != nil || lastModified != nil }

    /// How another response relates to this representation.
    public enum Agreement: Sendable, Hashable {
        /// Nothing that both state differs, and something that both state is the same.
        case same
        /// Something that both state differs (row 6); the text says what.
        case different(String)
        /// They state nothing in common.
        case unknown
    }

    /// Compares what both state. A tag that differs in strength only still names the same content of one source; chunks of
    /// several sources are mixed only where a strong tag or an expected digest tells them apart, which the store sees to.
    public func agreement(with other: Representation) -> Agreement {
        if let size, let theirs = other.size, size != theirs { return .different("size \(size) became \(theirs)") }
        if let etag, let theirs = other.etag {
            return Self.opaque(etag) == Self.opaque(theirs) ? .same : .different("ETag \(etag) became \(theirs)")
        }
        if let lastModified, let theirs = other.lastModified {
            return lastModified == theirs ? .same : .different("Last-Modified \(lastModified) became \(theirs)")
        }
        return .unknown
    }

    private static func opaque(_ etag: String) -> Substring {
        etag.hasPrefix("W/") ? etag.dropFirst(2) : etag[...]
    }
}
