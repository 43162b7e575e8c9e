/// What a source has shown of a content version that was given up since: the measure of what comes in its place, from it or from a mirror (range contract,
/// row 27).
///
/// What is less than was there before is the file's next version only if it says that it is another one, which a mirror can't: its validators are its own. Heads are judged by it, and the ends of bodies whose
/// heads state no size.
public struct EarlierVersion: Sendable, Hashable, Codable {
    /// The ordinal of the source.
    public var source: Int32
    /// The size in bytes that was stated.
    public var size: Int64?
    /// The most bytes that had come, where no size was stated.
    public var bytes: Int64?
    /// The entity tag that was stated, as it was sent.
    public var etag: String?
    /// The Last-Modified that was stated, as it was sent.
    public var lastModified: String?

    /// What was shown of a version.
    public init(
        source: Int32 = 0, size: Int64? = nil, bytes: Int64? = nil, etag: String? = nil, lastModified: String? = nil
    ) {
        self.source = source
        self.size = size
        self.bytes = bytes
        self.etag = etag
        self.lastModified = lastModified
    }

    /// The version of a file that is there, which the first source may still serve, if its validators are known: other files are no measure.
    public init?(of held: HeldFile?) {
        guard let held, let size = held.validatedSize else { return nil }
        self.init(size: size, etag: held.representation.etag, lastModified: held.representation.lastModified)
    }

    /// What it stated besides its size.
    var validators: Representation { Representation(etag: etag, lastModified: lastModified) }

    /// Why a content of so many bytes may be something in the place of the file; `nil` where nothing speaks for that.
    ///
    /// - Parameters:
    ///   - found: what is stated of the content.
    ///   - source: the ordinal of the source that states it.
    ///   - isLastTry: whether the file fails if this is not believed. What repeats a validator for as long as that is no trouble that passes, nor is what a
    ///     mirror says that tells its versions apart.
    func doubt(_ count: Int64, of found: Representation, from source: Int32, isLastTry: Bool) -> String? {
        let isOwn = source == self.source
        let isSame = isOwn && validators.agreement(with: found.validators) == .same
        guard !(isOwn && found.isAnother(than: validators)), !(isLastTry && (isSame || !isOwn && found.tellsVersions))
        else { return nil }
        let whose = isOwn ? "the origin" : "source \(self.source)"
        if let size { return count < size ? "\(count) bytes, where \(whose) had \(size) before" : nil }
        // Of the same version there can't be less than has come. What says nothing of itself may be a next one that is somewhat smaller.
        guard let bytes, count < (isSame ? bytes : bytes / 2) else { return nil }
        return "\(count) bytes, where \(bytes) had come before"
    }
}
