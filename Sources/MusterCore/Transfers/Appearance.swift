/// How an answer that carries a file looks from outside, apart from the content. An origin's answers for files of one kind look alike; a
/// page that it sends in place of a file looks different (range contract, row 27; adr/0036).
public struct Appearance: Sendable, Hashable {
    /// The whole size in bytes, if it is known.
    public private(set) var size: Int64?
    /// Whether the body is of a type that pages, notices and errors have.
    public let mayBeNotice: Bool
    /// Whether a usable Last-Modified is stated (see `ResponseFacts.representation`).
    public let hasDate: Bool
    private let mediaType: String?
    private let etag: String?
    /// Whether Last-Modified is stated at all. For a file that was made a moment ago it becomes usable only later.
    private let statesDate: Bool
    private var isPart: Bool
    /// The names of the other fields, except those that come and go with caches and connections.
    private let names: Set<String>

    /// Larger bodies are not pages. A body of a page's type may be as large as `mostBytesOfAPage`.
    public static let mostBytes: Int64 = 256 << 10
    private static let mostBytesOfAPage: Int64 = 4 << 20

    /// Whether redirects led to the answer.
    private let isRedirected: Bool

    /// Fields that say nothing about what made the body.
    private static let passing: Set<String> = [
        "age", "alt-svc", "connection", "content-length", "content-range", "content-type", "date", "etag", "expires",
        "keep-alive", "last-modified", "set-cookie", "vary", "via", "warning", "x-cache", "x-cache-hits",
    ]

    /// The look of a response; `size` is its whole size, if it states one.
    public init(_ facts: ResponseFacts, size: Int64?) {
        let found = facts.representation(size: size)
        self.size = size
        mayBeNotice = facts.mayBeNotice
        mediaType = facts.mediaType
        etag = found.etag
        hasDate = found.lastModified != nil
        statesDate = facts.value("last-modified") != nil
        isPart = facts.status == 206
        isRedirected = facts.isRedirected
        isHTML = facts.isHTML
        names = facts.names.subtracting(Self.passing)
    }

    /// The same look with the size of a body that has come to its end.
    public func of(_ size: Int64) -> Appearance {
        var appearance = self
        appearance.size = size
        return appearance
    }

    /// The same look for a whole answer that came as a part, or the other way round.
    public var asOther: Appearance {
        var appearance = self
        appearance.isPart.toggle()
        return appearance
    }

    /// Whether the body is small enough to be a page.
    public var isSmall: Bool {
        size ?? 0 <= (mayBeNotice ? Self.mostBytesOfAPage : Self.mostBytes)
    }

    /// A key for what all answers of this kind have in common.
    public var kind: String {
        let fields = names.sorted().joined(separator: ",")
        return "\(isPart) \(mediaType ?? "-") \(etag != nil) \(statesDate) \(magnitude ?? -1) \(fields)"
    }

    /// Sizes within a factor of eight share a magnitude; an empty body has its own.
    private var magnitude: Int? { size.map { $0 == 0 ? 0 : 1 + ($0.bitWidth - $0.leadingZeroBitCount) / 3 } }

    /// Whether the answer looks like a file and not like a notice: its type is not a notice's, it is not empty, and it states a validator.
    public var isUsual: Bool { !mayBeNotice && hasValidator && size != 0 }

    /// Whether the answer states a validator that can be compared with another answer's.
    public var hasValidator: Bool { etag != nil || hasDate }

    /// Whether this answer is the file rather than another answer to the same request that looks different. Origins send empty bodies, and
    /// pages without validators, in place of files. HTML is not the file if the path's ending is not a page's. Of two equally likely
    /// answers the first is the file, since the second may be a page that says that the URL was used. An exception is a first answer that
    /// has come for other files too, as the notice of a limit does.
    ///
    /// - Parameters:
    ///   - isRepeated: whether the other answer has come for other files too.
    ///   - namesNoPage: whether the path's ending is not a page's.
    public func isRatherTheFile(than other: Appearance, isRepeated: Bool, namesNoPage: Bool) -> Bool {
        if isHTML, namesNoPage { return false }
        return rank > other.rank || isRepeated && rank == other.rank && size ?? .max > other.size ?? .max
    }

    /// Whether this answer to a plain request is the file, rather than the answer to which a request with a Range was redirected. It is if
    /// it came without a redirect, or if it is larger and nothing contradicts that. A smaller one may be the notice of a URL that works
    /// only once.
    public func isRatherTheFile(thanElsewhere other: Appearance, namesNoPage: Bool) -> Bool {
        if !isRedirected { return true }
        return rank >= other.rank && !(isHTML && namesNoPage) && size ?? .max > other.size ?? .max
    }

    /// Whether the body is declared as HTML.
    public let isHTML: Bool

    private var rank: Int {
        if size == 0 { return 0 }
        return (mayBeNotice ? isHTML ? 1 : 3 : 5) + (hasValidator ? 1 : 0)
    }

    /// A description of the body for messages.
    public var words: String {
        size == 0 ? "nothing" : "\(size.map { "\($0) bytes" } ?? "a body") of \(mediaType?.quoted ?? "no type")"
    }

    /// Whether this answer is of something else than an earlier one: of another type, with other validators, or of a very different size.
    public func isOther(than before: Appearance) -> Bool {
        guard mediaType == before.mediaType, (etag == nil) == (before.etag == nil), statesDate == before.statesDate
        else {
            return true
        }
        guard let size, let known = before.size, size != known else { return false }
        return etag != before.etag || min(size, known) == 0 || max(size, known) / min(size, known) >= 8
    }

    /// Whether a successful answer to a request for the same file, or for a part of it, is of something else. A 416 counts as something
    /// else unless the file is empty: only an empty file has no parts.
    public func isReplaced(in facts: ResponseFacts) -> Bool {
        if facts.status == 416 { return size != 0 }
        guard (200..<300).contains(facts.status) else { return false }
        let part = facts.value("content-range").flatMap { ContentRange($0) }
        let size = facts.status == 206 ? part?.size : (try? facts.contentLength()) ?? nil
        return Appearance(facts, size: facts.contentCoding == nil ? size : nil).isOther(than: self)
    }
}
