/// What a source showed of a content version that was given up. It is the measure for the content that follows, from the same source or
/// from a mirror (range contract, row 27).
///
/// Content that is smaller than before is the file's next version only if its validators say so. A mirror can't say so, since its
/// validators are its own. Heads are judged by this measure, and the ends of bodies whose heads state no size.
public struct EarlierVersion: Sendable, Hashable, Codable {
    /// The ordinal of the source.
    public var source: Int32
    /// The size in bytes that was stated.
    public var size: Int64?
    /// The most bytes that had come, if no size was stated.
    public var bytes: Int64?
    /// The entity tag that was stated, as it was sent.
    public var etag: String?
    /// The Last-Modified that was stated, as it was sent.
    public var lastModified: String?

    /// An earlier version with these properties.
    public init(
        source: Int32 = 0, size: Int64? = nil, bytes: Int64? = nil, etag: String? = nil, lastModified: String? = nil
    ) {
        self.source = source
        self.size = size
        self.bytes = bytes
        self.etag = etag
        self.lastModified = lastModified
    }

    /// The version of a file in the sink, which the first source may still serve. Its validators have to be known: other files are no measure.
    public init?(of held: HeldFile?) {
        guard let held, let size = held.validatedSize else { return nil }
        self.init(size: size, etag: held.representation.etag, lastModified: held.representation.lastModified)
    }

    /// The stated validators, without the size.
    var validators: Representation { Representation(etag: etag, lastModified: lastModified) }

    /// Why a content of `count` bytes may be something in place of the file; `nil` if nothing suggests that.
    ///
    /// - Parameters:
    ///   - found: what the response states about the content.
    ///   - source: the ordinal of the source that states it.
    ///   - isLastTry: whether the file fails if this content is not believed. On the last try a content is believed if it repeats the known
    ///     validators, or if it comes from a mirror and states a validator that tells versions apart: neither is a transient fault.
    func doubt(_ count: Int64, of found: Representation, from source: Int32, isLastTry: Bool) -> String? {
        let isOwn = source == self.source
        let isSame = isOwn && validators.agreement(with: found.validators) == .same
        guard !(isOwn && found.isAnother(than: validators)), !(isLastTry && (isSame || !isOwn && found.tellsVersions))
        else { return nil }
        let whose = isOwn ? "the origin" : "source \(self.source)"
        // A total that is one too large, in parts alone, is a known mistake; no page has the tag of the file.
        if isSame, size == count + 1 { return nil }
        if let size { return count < size ? "\(count) bytes, where \(whose) had \(size) before" : nil }
        // A body of the same version can't be shorter than the bytes that have come. A body without validators may be a next version that is somewhat smaller.
        guard let bytes, count < (isSame ? bytes : bytes / 2) else { return nil }
        return "\(count) bytes, where \(bytes) had come before"
    }
}
