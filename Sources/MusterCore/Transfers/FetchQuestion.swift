/// What a fetch asked an origin for, and what is known already. Responses are judged by it alone.
public struct FetchQuestion: Hashable, Sendable {
    /// The bytes that were asked for; `nil` for a plain GET of everything.
    public var range: ByteRange?
    /// Whether the request carried If-Range, with a strong ETag or a strong date (range contract, rows 8 and 9).
    public var conditional: Bool
    /// Whether the coordinator has planned the task: its size, and that ranges work, are known.
    public var planned: Bool
    /// What is known of this content version.
    public var known: Representation
    /// The size that the caller expects.
    public var expectedSize: Int64?
    /// Whether a digest that the caller gave will detect a mix of contents (row 12). Its algorithm is one of
    /// `DigestAlgorithm.tellsContentsApart`.
    public var expectsDigest: Bool
    /// Which differences mean that the content changed (row 11).
    public var rule: ValidatorRule
    /// Whether the group allows chunks of content that states no validator or digest (row 12).
    public var mayChunkUnvalidated: Bool
    /// Whether the source is not the one whose answer gave `known` (row 30).
    public var isOtherMirror: Bool
    /// The size that was stated by an answer which was rejected for another reason: a smaller size is rejected too (row 5).
    public var claimedSize: Int64?
    /// What the source showed of a content version that was given up. A smaller content is something in its place, and not the next
    /// version, unless its validators say that it is another version (row 27).
    public var earlier: EarlierVersion?
    /// The ordinal of the source that is asked.
    public var source: Int32
    /// Whether no try of the source is left after this one.
    public var isLastTry: Bool
    /// Whether a content coding of a whole body is decoded before the body is stored (row 13).
    public var decodes: Bool
    /// The media type that the caller expects, in lower case and without parameters (row 27).
    public var expectedContentType: String?
    /// The file that is in the sink already and may be the content. The content is requested only if it differs, by If-None-Match or
    /// If-Modified-Since (RFC 9110 §13.2.2: before Range and If-Range).
    public var held: Representation?
    /// How many bytes from the start of the content are there, when one request is to bring all the rest. A body that starts at the first
    /// byte is used from that offset on, if it surely is the same content.
    public var kept: Int64

    /// A question.
    public init(
        range: ByteRange?, conditional: Bool = false, planned: Bool, known: Representation, expectedSize: Int64? = nil,
        expectsDigest: Bool = false, rule: ValidatorRule = .strict, mayChunkUnvalidated: Bool = false,
        isOtherMirror: Bool = false, claimedSize: Int64? = nil, earlier: EarlierVersion? = nil, source: Int32 = 0,
        isLastTry: Bool = false, decodes: Bool = false, expectedContentType: String? = nil,
        held: Representation? = nil, kept: Int64 = 0
    ) {
        self.range = range
        self.conditional = conditional
        self.planned = planned
        self.known = known
        self.expectedSize = expectedSize
        self.expectsDigest = expectsDigest
        self.rule = rule
        self.mayChunkUnvalidated = mayChunkUnvalidated
        self.isOtherMirror = isOtherMirror
        self.claimedSize = claimedSize
        self.earlier = earlier
        self.source = source
        self.isLastTry = isLastTry
        self.decodes = decodes
        self.expectedContentType = expectedContentType
        self.held = held
        self.kept = kept
    }

    /// Whether a digest detects at the end that bytes of several contents were mixed: the caller's digest, or a digest that the origin
    /// stated for this content version (rows 11, 12, 30).
    var isProvable: Bool { expectsDigest || known.statesDigest }

    /// The rule that applies. Without a digest nothing detects mixed contents at the end, so every difference counts (row 11).
    var effectiveRule: ValidatorRule {
        switch rule {
        case .strict: .strict
        case .sizeAndDigest: isProvable ? .sizeAndDigest : .strict
        }
    }
}

/// A body that may be written.
public struct AcceptedBody: Hashable, Sendable {
    /// Where in the file its first byte belongs.
    public let offset: Int64
    /// How many of its first bytes are there already and are not written again.
    public var skipped: Int64 = 0
    /// How many bytes of it may be written; `nil` when only the end of the stream marks the end (range contract, row 14).
    public let count: Int64?
    /// What the response states about the whole representation.
    public let representation: Representation
    /// Whether the rest of the file may be fetched by ranges, at the same time and after a crash (rows 1, 12).
    public let isSplittable: Bool
    /// Whether the body is a part from the first byte on whose response does not state the whole size: a request for the next byte decides (row 2).
    public var mayBePart = false
    /// Whether the body is coded, even if it is decoded before it is stored. Under the same validators an origin may also send the content without a coding.
    public var isCoded = false
    /// The coding to decode before the bytes are written. Sizes then refer to the decoded content.
    public var coding: ContentCoding?
    /// The digests that the origin states of the coded content, if `coding` is set. It can state no others (RFC 9530 §3).
    public var codedDigests: [ContentDigest] = []
}
