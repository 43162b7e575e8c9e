/// What a fetch asked an origin for.
public struct FetchQuestion: Hashable, Sendable {
    /// The bytes that were asked for; `nil` for a plain GET of everything.
    public var range: ByteRange?
    /// Whether the request carried If-Range.
    public var conditional: Bool
    /// Whether the coordinator has planned the task: its size, and that ranges work, are known.
    public var planned: Bool
    /// What is known of this content version.
    public var known: Representation
    /// The size that the caller expects.
    public var expectedSize: Int64?
    /// Whether a digest will tell a mix of contents (row 12).
    public var expectsDigest: Bool

    /// A question.
    public init(
        range: ByteRange?, conditional: Bool = false, planned: Bool, known: Representation, expectedSize: Int64? = nil,
        expectsDigest: Bool = false
    ) {
        self.range = range
        self.conditional = conditional
        self.planned = planned
        self.known = known
        self.expectedSize = expectedSize
        self.expectsDigest = expectsDigest
    }
}

/// A body that may be written.
public struct AcceptedBody: Hashable, Sendable {
    /// Where in the file its first byte belongs.
    public let offset: Int64
    /// How many bytes of it may be written; `nil` when only the end of the stream tells (row 14).
    public let count: Int64?
    /// What the response says of the whole representation.
    public let representation: Representation
    /// Whether the rest of the file may be fetched by ranges, at the same time and after a crash (rows 1, 12).
    public let isSplittable: Bool
}

/// What is to be done with a response, decided from its head alone before the first body byte (`http.md`).
public enum ResponseVerdict: Hashable, Sendable {
    /// Write the body.
    case accept(AcceptedBody)
    /// Ask again with a plain GET: offset 0 was not satisfiable, so the file may be empty (row 16).
    case askForEverything
    /// Ask again without If-Range: the origin mistrusted it although nothing changed (row 10).
    case askUnconditionally
    /// Ranges don't work here: start over as one stream (row 1).
    case restartAsStream(String)
    /// Nothing of the body may be kept. `retryAfter` is the origin's wish, in seconds.
    case refuse(FailureKind, detail: String, retryAfter: Int64?)

    /// Judges a response.
    public static func judge(_ facts: ResponseFacts, to question: FetchQuestion) -> ResponseVerdict {
        let length: Int64?
        do {
            length = try facts.contentLength()
        } catch {
            return refuse(.badRange, "Content-Length \(error.stated) can't be believed")
        }
        switch facts.status {
        case 206: return judgePartial(facts, length: length, question)
        case 200: return judgeWhole(facts, length: length, question)
        case 416: return judgeUnsatisfiable(facts, question)
        case 200..<300: return refuse(.badRange, "status \(facts.status) carries no file")
        default:
            return .refuse(
                .status(facts.status), detail: "the origin answered \(facts.status)",
                retryAfter: facts.retryAfterSeconds)
        }
    }

    /// Rows 2–7 and 13; RFC 9110 §15.3.7.
    private static func judgePartial(
        _ facts: ResponseFacts, length: Int64?, _ question: FetchQuestion
    ) -> ResponseVerdict {
        guard let asked = question.range else { return refuse(.badRange, "206 to a request without Range") }
        if let coding = facts.contentCoding { return refuse(.badRange, "206 with Content-Encoding \(coding)") }
        if facts.value("content-type")?.lowercased().hasPrefix("multipart/byteranges") == true {
            return refuse(.badRange, "206 with several ranges")
        }
        let stated = facts.values("content-range")
        guard stated.count == 1, let content = ContentRange(stated[0]), let range = content.range else {
            return refuse(.badRange, "206 with Content-Range \"\(stated.joined(separator: ", "))\"")
        }
        guard range.start == asked.start else {
            return refuse(.badRange, "206 starts at \(range.start), not at \(asked.start)")
        }
        if let length, length != range.count {
            return refuse(.badRange, "Content-Length \(length) for a range of \(range.count) bytes")
        }
        guard let size = content.size ?? question.known.size else {
            return .restartAsStream("the origin does not tell the size")
        }
        let found = facts.representation(size: size)
        if let refusal = mismatch(found, question) { return refusal }
        let splittable = found.hasValidator || question.expectsDigest
        let fitsInOne = asked.start == 0 && range.end == size
        guard splittable || fitsInOne else { return .restartAsStream("the origin sends no validator") }
        return .accept(
            AcceptedBody(
                offset: range.start, count: min(range.end, asked.end) - range.start, representation: found,
                isSplittable: splittable))
    }

    /// Rows 1, 10, 12–14; RFC 9110 §14.2: a server may ignore Range.
    private static func judgeWhole(_ facts: ResponseFacts, length: Int64?, _ question: FetchQuestion) -> ResponseVerdict
    {
        let found = facts.representation(size: length)
        if let refusal = mismatch(found, question) { return refusal }
        if let asked = question.range {
            if question.conditional { return .askUnconditionally }
            guard asked.start == 0, !question.planned else { return .restartAsStream("the origin ignores Range") }
        }
        return .accept(AcceptedBody(offset: 0, count: length, representation: found, isSplittable: false))
    }

    /// Row 16; RFC 9110 §15.5.17.
    private static func judgeUnsatisfiable(_ facts: ResponseFacts, _ question: FetchQuestion) -> ResponseVerdict {
        guard let asked = question.range else { return refuse(.httpStatus(416), "416 to a request without Range") }
        let size = facts.value("content-range").flatMap(ContentRange.init)?.size
        if asked.start == 0, !question.planned { return .askForEverything }
        return refuse(
            .changed,
            "the range \(asked) is not satisfiable any more, the size is \(size.map(String.init) ?? "unknown")")
    }

    /// Row 6, and the caller's expectation.
    private static func mismatch(_ found: Representation, _ question: FetchQuestion) -> ResponseVerdict? {
        if let expected = question.expectedSize, let size = found.size, size != expected {
            return refuse(.sizeMismatch, "expected \(expected) bytes, the origin has \(size)")
        }
        switch question.known.agreement(with: found) {
        case .same: return nil
        case .different(let what): return refuse(.changed, what)
        case .unknown:
            // A response that states no validator although its version has one can't be told to be of this content.
            guard question.planned, question.known.hasValidator, !question.expectsDigest else { return nil }
            return refuse(.badRange, "the response states none of the validators that are known")
        }
    }

    private static func refuse(_ kind: FailureKind, _ detail: String) -> ResponseVerdict {
        .refuse(kind, detail: detail, retryAfter: nil)
    }
}
