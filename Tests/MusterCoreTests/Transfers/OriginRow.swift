import MusterCore
import Testing

/// A verdict without its details.
enum Outcome: Hashable, Sendable {
    case accept(offset: Int64, count: Int64?, splittable: Bool)
    case askUnconditionally
    case askPlainly
    case unmodified
    case complete
    case descend(Rung)
    case refuse(FailureKind)

    init(_ verdict: ResponseVerdict) {
        switch verdict {
        case .accept(let body): self = .accept(offset: body.offset, count: body.count, splittable: body.isSplittable)
        case .askUnconditionally: self = .askUnconditionally
        case .askPlainly: self = .askPlainly
        case .unmodified: self = .unmodified
        case .complete: self = .complete
        case .descend(_, let rung): self = .descend(rung)
        case .refuse(let kind, _, _): self = .refuse(kind)
        }
    }
}

/// One behaviour of an origin, by its row of the range contract.
struct OriginRow: Sendable, CustomTestStringConvertible {
    let row: Int
    let what: String
    let status: Int
    let headers: [String]
    let question: FetchQuestion
    let outcome: Outcome

    init(_ row: Int, _ what: String, _ status: Int, _ headers: [String], to question: FetchQuestion, _ outcome: Outcome)
    {
        self.row = row
        self.what = what
        self.status = status
        self.headers = headers
        self.question = question
        self.outcome = outcome
    }

    var testDescription: String { "row \(row): \(what)" }

    var facts: ResponseFacts {
        let fields = headers.map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: String(parts[0]), value: String(parts[1].drop { $0 == " " }))
        }
        return ResponseFacts(status: status, headers: fields)
    }
}

private let version = Representation(size: 1_000, etag: "\"v1\"")
private let dated = Representation(
    size: 1_000, lastModified: "Sun, 01 Mar 2026 12:00:00 GMT", isDateStrong: true)

/// The questions of the rows.
extension FetchQuestion {
    /// The first request of a task: nothing is known, the first 100 bytes are asked for.
    static let first = FetchQuestion(range: ByteRange(first: 100), planned: false, known: Representation())
    /// A chunk in the middle of a planned task.
    static let middle = FetchQuestion(range: ByteRange(start: 100, end: 200), planned: true, known: version)
    /// The same of a version that has a date as well.
    static let taggedAndDated = FetchQuestion(
        range: ByteRange(start: 100, end: 200), planned: true,
        known: Representation(size: 1_000, etag: "\"v1\"", lastModified: "Sun, 01 Mar 2026 12:00:00 GMT"))
    /// The same with If-Range.
    static let conditional = FetchQuestion(
        range: ByteRange(start: 100, end: 200),
        conditional: true,
        planned: true,
        known: version
    )
    /// All that follows the first 100 bytes.
    static let rest = rest(conditional: false)
    static func rest(conditional: Bool) -> FetchQuestion {
        FetchQuestion(
            range: ByteRange(start: 100, end: 1_000), conditional: conditional, planned: true, known: version, kept: 100
        )
    }
    /// The first chunk of a planned task, asked for again.
    static let again = FetchQuestion(range: ByteRange(first: 100), planned: true, known: version)
    /// A chunk of a planned task without validators, which only a digest can prove.
    static let digested = FetchQuestion(
        range: ByteRange(start: 100, end: 200),
        planned: true,
        known: Representation(size: 1_000),
        expectsDigest: true
    )
    /// A plain GET of everything.
    static let stream = FetchQuestion(range: nil, planned: false, known: Representation())
    /// The same of a task whose content is decoded.
    static let decoded = FetchQuestion(range: nil, planned: false, known: Representation(), decodes: true)
    /// The first request of such a task.
    static let decodedRange = FetchQuestion(
        range: ByteRange(first: 100), planned: false, known: Representation(), decodes: true)
    /// The first request where the caller said how large the file is.
    static let sized = FetchQuestion(
        range: ByteRange(first: 100),
        planned: false,
        known: Representation(),
        expectedSize: 1_000
    )
    /// A chunk of a planned task whose only validator is a date.
    static let byDate = FetchQuestion(range: ByteRange(start: 100, end: 200), planned: true, known: dated)
    /// The first request where a digest is expected.
    static let proven = FetchQuestion(
        range: ByteRange(first: 100),
        planned: false,
        known: Representation(),
        expectsDigest: true
    )
}
