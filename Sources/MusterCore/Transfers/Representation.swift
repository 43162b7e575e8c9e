/// The content of a task as one validator set describes it (RFC 9110 §8.8): what every chunk of a content version must
/// agree on.
public struct Representation: Hashable, Sendable, Codable {
    /// The whole size in bytes; unknown before the first response, or for a stream without a length.
    public var size: Int64?
    /// The entity tag exactly as the origin sent it, `W/` included.
    public var etag: String?
    /// The Last-Modified field exactly as the origin sent it.
    public var lastModified: String?
    /// Whether Last-Modified was at least 60 s older than the response's Date, so that it may stand in If-Range (RFC
    /// 9110 §8.8.2.2; range contract, row 9). `nil` is unknown, and means no.
    public var isDateStrong: Bool?
    /// Digests of the whole representation that the origin stated, by algorithm, in hexadecimal (row 35).
    public var digests: [String: String]?

    /// A representation; every part of it may be unknown.
    public init(
        size: Int64? = nil, etag: String? = nil, lastModified: String? = nil, isDateStrong: Bool? = nil,
        digests: [String: String]? = nil
    ) {
        self.size = size
        self.etag = etag
        self.lastModified = lastModified
        self.isDateStrong = isDateStrong
        self.digests = digests
    }

    /// The entity tag when it is a strong one: the only kind that If-Range may carry (RFC 9110 §13.1.5).
    public var strongETag: String? {
        guard let etag, etag.hasPrefix("\""), etag.hasSuffix("\""), etag.utf8.count >= 2 else { return nil }
        return etag
    }

    /// Whether a response states a validator by which another response can be compared.
    public var hasValidator: Bool { etag != nil || lastModified != nil }

    /// Whether the validators tell one version from the next, byte for byte (row 9; RFC 9110 §8.8.1): a strong tag, or a date that was old
    /// enough when it was stated. Under a younger date or a weak tag the content may change unnoticed.
    public var tellsVersions: Bool { strongETag != nil || lastModified != nil && isDateStrong == true }

    /// Whether another response that does not differ surely is of the same version, byte for byte. Both have to state the same strong tag,
    /// or if this one has none, the same date, old enough in both (RFC 9110 §8.8.3.2, §8.8.2.2).
    public func isSurely(_ other: Representation) -> Bool {
        if let tag = strongETag { return tag == other.strongETag }
        return isDateStrong == true && other.isDateStrong == true && lastModified != nil
            && lastModified == other.lastModified
    }

    /// Whether this says that it is of another version than `other`, whatever its size: by another strong tag, by a validator that differs,
    /// or by one that tells versions apart if they have none in common. Repeating a date or a weak tag, or stating a weak validator where
    /// there was none, does not say so.
    func isAnother(than other: Representation) -> Bool {
        if let strongETag { return strongETag != other.strongETag }
        return switch validators.agreement(with: other.validators) {
        case .same: false
        case .different: true
        case .unknown: tellsVersions
        }
    }

    /// The same without its size and its digests.
    var validators: Representation {
        Representation(etag: etag, lastModified: lastModified, isDateStrong: isDateStrong)
    }

    /// Whether a part of the same version states less than is known: no strong tag, or if none is known, no date that was old enough (row 9).
    func isWeakened(by part: Representation) -> Bool {
        strongETag != nil ? part.strongETag == nil : isDateStrong == true && part.isDateStrong != true
    }

    /// The same, without the claim that its validators identify every byte.
    public var weakened: Representation {
        var weak = self
        weak.etag = strongETag.map { "W/\($0)" } ?? etag
        weak.isDateStrong = false
        return weak
    }

    /// Whether the origin stated a digest that tells any other content apart; it is checked at the end as if the caller
    /// had given it (row 35).
    public var statesDigest: Bool {
        digests?.keys.contains { DigestAlgorithm(rawValue: $0)?.tellsContentsApart == true } ?? false
    }

    /// How another response relates to this representation.
    public enum Agreement: Sendable, Hashable {
        /// Nothing that both state differs, and something that both state is the same.
        case same
        /// Something that both state differs (row 6); the text says what.
        case different(String)
        /// They state nothing in common.
        case unknown

        /// Whether nothing that both state differs.
        var isNoChange: Bool {
            switch self {
            case .same, .unknown: true
            case .different: false
            }
        }
    }

    /// Compares what both state: sizes, digests, and validators unless `rule` ignores them (rows 6 and 11).
    ///
    /// Tags that differ only in strength name the same content of one source. Dates have to agree as well: under a weak tag the bytes may
    /// differ (RFC 9110 §8.8.1), and a strong tag that stays while the date changes is not trusted.
    public func agreement(with other: Representation, under rule: ValidatorRule = .strict) -> Agreement {
        if let size, let theirs = other.size, size != theirs { return .different("size \(size) became \(theirs)") }
        let digests = digestAgreement(with: other)
        if case .different = digests { return digests }
        switch rule {
        case .strict: break
        case .sizeAndDigest: return digests
        }
        var agreement = digests
        if let etag, let theirs = other.etag {
            guard Self.opaque(etag) == Self.opaque(theirs) else {
                return .different("ETag \(etag.quoted) became \(theirs.quoted)")
            }
            agreement = .same
        }
        if let lastModified, let theirs = other.lastModified {
            guard lastModified == theirs else {
                return .different("Last-Modified \(lastModified.quoted) became \(theirs.quoted)")
            }
            agreement = .same
        }
        return agreement
    }

    /// Compares the digests that both state. The result is `same` only if a digest that tells contents apart agrees.
    private func digestAgreement(with other: Representation) -> Agreement {
        var agreement = Agreement.unknown
        for (name, value) in (digests ?? [:]).sorted(by: { $0.key < $1.key }) {
            guard let theirs = other.digests?[name] else { continue }
            guard value == theirs else { return .different("\(name) \(value.quoted) became \(theirs.quoted)") }
            if DigestAlgorithm(rawValue: name)?.tellsContentsApart == true { agreement = .same }
        }
        return agreement
    }

    private static func opaque(_ etag: String) -> Substring {
        etag.hasPrefix("W/") ? etag.dropFirst(2) : etag[...]
    }
}

extension StringProtocol {
    /// A text of an origin, made safe for a failure's detail: without control characters, and at most 128 scalars.
    var quoted: String {
        let most = 128
        let shown = unicodeScalars.prefix(most).map { $0.properties.generalCategory == .control ? "\u{fffd}" : $0 }
        return String(String.UnicodeScalarView(shown)) + (unicodeScalars.count > most ? "…" : "")
    }
}
