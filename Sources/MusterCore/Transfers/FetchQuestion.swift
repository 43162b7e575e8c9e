/// What a fetch asked an origin for, and what is known already: all that a response is judged by.
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
    /// Whether a digest that the caller gave will tell a mix of contents (row 12); one of
    /// `DigestAlgorithm.tellsContentsApart`.
    public var expectsDigest: Bool
    /// Which differences mean that the content changed (row 11).
    public var rule: ValidatorRule
    /// Whether the group allows chunks of content that nothing can be told of (row 12).
    public var mayChunkUnvalidated: Bool
    /// Whether the source is another one than that which taught `known` (row 30).
    public var isOtherMirror: Bool
    /// The size that an answer stated which was not believed for another reason: less than that is not believed either (row 5).
    public var claimedSize: Int64?
    /// What the source has shown of a content version that was given up since: less than that is not the next version, but something in its place, unless it
    /// says that it is another one (row 27).
    public var earlier: EarlierVersion?
    /// The ordinal of the source that is asked.
    public var source: Int32
    /// Whether no try of the source is left after this one.
    public var isLastTry: Bool
    /// Whether a coding of the content is taken off a whole body before it is stored (row 13).
    public var decodes: Bool
    /// The media type that the caller expects, in lower case and without parameters (row 27).
    public var expectedContentType: String?
    /// The file that is there already and may be the content: what was asked for is only wanted if it is another one, by
    /// If-None-Match or If-Modified-Since (RFC 9110 §13.2.2: before Range and If-Range).
    public var held: Representation?
    /// How many bytes of the content are there, from its first one on, where one request is to bring all the rest: a body that comes from the first byte on
    /// is of use behind them if it surely is the same content.
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

    /// Whether a digest tells in the end if bytes of several contents were mixed: the caller's, or one that the origin
    /// stated for this content version (rows 11, 12, 30).
    var isProvable: Bool { expectsDigest || known.statesDigest }

    /// The rule that applies: without a digest nothing would tell in the end, so that every difference counts (row 11).
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
    /// How many of its first bytes are there already, and are not written again.
    public var skipped: Int64 = 0
    /// How many bytes of it may be written; `nil` when only the end of the stream tells (range contract, row 14).
    public let count: Int64?
    /// What the response says of the whole representation.
    public let representation: Representation
    /// Whether the rest of the file may be fetched by ranges, at the same time and after a crash (rows 1, 12).
    public let isSplittable: Bool
    /// Whether it is a part from the first byte on that says nothing of what follows it: the byte beyond tells (row 2).
    public var mayBePart = false
    /// Whether it is coded, as it is stored or before it is decoded. Under the same validators an origin may send the content as it is.
    public var isCoded = false
    /// The coding to take off before its bytes are written. What is told of sizes is then told of the decoded content.
    public var coding: ContentCoding?
    /// What the origin states of the coded content then, which is all that it can state digests of (RFC 9530 §3).
    public var codedDigests: [ContentDigest] = []
}
