/// How an answer that carries a file looks from outside, apart from the content: the answers of an origin for files of one kind look alike, and a page
/// that it sends in the place of a file looks otherwise (range contract, row 27; adr/0036).
public struct Appearance: Sendable, Hashable {
    /// The whole size, as far as it is known.
    public private(set) var size: Int64?
    /// Whether the body is of a type that pages, notices and errors have.
    public let mayBeNotice: Bool
    /// Whether a Last-Modified is stated that may be one.
    public let hasDate: Bool
    private let mediaType: String?
    private let etag: String?
    /// Whether a Last-Modified is stated at all: of a file that was made a moment ago it may be one only later.
    private let statesDate: Bool
    private var isPart: Bool
    /// The names of the other fields that don't come and go with caches and connections.
    private let names: Set<String>

    /// Larger bodies are no pages; of what looks like one those that are larger than the second are none.
    public static let mostBytes: Int64 = 256 << 10
    private static let mostBytesOfAPage: Int64 = 4 << 20

    /// Whether redirects led to it.
    private let isRedirected: Bool

    /// Fields that say nothing of what made the body.
    private static let passing: Set<String> = [
        "age", "alt-svc", "connection", "content-length", "content-range", "content-type", "date", "etag", "expires",
        "keep-alive", "last-modified", "set-cookie", "vary", "via", "warning", "x-cache", "x-cache-hits",
    ]

    /// How an answer looks that states a whole size, or none.
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

    /// The same of a body whose end has come.
    public func of(_ size: Int64) -> Appearance {
        var appearance = self
        appearance.size = size
        return appearance
    }

    /// The same of a whole answer that came as a part, or the other way round.
    public var asOther: Appearance {
        var appearance = self
        appearance.isPart.toggle()
        return appearance
    }

    /// Whether the body is small enough to be a page.
    public var isSmall: Bool {
        size ?? 0 <= (mayBeNotice ? Self.mostBytesOfAPage : Self.mostBytes)
    }

    /// What all answers of the kind have in common, as a key.
    public var kind: String {
        let fields = names.sorted().joined(separator: ",")
        return "\(isPart) \(mediaType ?? "-") \(etag != nil) \(statesDate) \(magnitude ?? -1) \(fields)"
    }

    /// Sizes within a factor of eight are of one magnitude; nothing is one of its own.
    private var magnitude: Int? { size.map { $0 == 0 ? 0 : 1 + ($0.bitWidth - $0.leadingZeroBitCount) / 3 } }

    /// Whether it looks as files do and notices don't: it is of another type than these have, and states what tells it from another version.
    public var isUsual: Bool { !mayBeNotice && hasValidator && size != 0 }

    /// Whether anything is stated that another answer can be compared with.
    public var hasValidator: Bool { etag != nil || hasDate }

    /// Whether this one is the file rather than another answer to the same request, of another look. Nothing, and pages without anything that tells one from
    /// another, are what origins send in the place of files; HTML is no file of a name that names none. Of two that are as good the one that came first is the
    /// file, unless it has come for other files too, as what tells of a limit has: the second may be a page that says that the URL was used.
    ///
    /// - Parameters:
    ///   - isRepeated: whether the other one has come for other files too.
    ///   - namesNoPage: whether the path ends as those of pages don't.
    public func isRatherTheFile(than other: Appearance, isRepeated: Bool, namesNoPage: Bool) -> Bool {
        if isHTML, namesNoPage { return false }
        return rank > other.rank || isRepeated && rank == other.rank && size ?? .max > other.size ?? .max
    }

    /// Whether this one, which came to a plain request, is the file rather than what a request with a Range was redirected to: it came without a redirect, or it
    /// is larger, and nothing speaks against it. What is less may be said of a URL that works once.
    public func isRatherTheFile(thanElsewhere other: Appearance, namesNoPage: Bool) -> Bool {
        if !isRedirected { return true }
        return rank >= other.rank && !(isHTML && namesNoPage) && size ?? .max > other.size ?? .max
    }

    /// Whether it is said to be a page.
    public let isHTML: Bool

    private var rank: Int {
        if size == 0 { return 0 }
        return (mayBeNotice ? isHTML ? 1 : 3 : 5) + (hasValidator ? 1 : 0)
    }

    /// What came, in words.
    public var words: String {
        size == 0 ? "nothing" : "\(size.map { "\($0) bytes" } ?? "a body") of \(mediaType?.quoted ?? "no type")"
    }

    /// Whether another answer is of something else than the one that looked so: of another type, with other validators, or of quite another size.
    public func isOther(than before: Appearance) -> Bool {
        guard mediaType == before.mediaType, (etag == nil) == (before.etag == nil), statesDate == before.statesDate
        else {
            return true
        }
        guard let size, let known = before.size, size != known else { return false }
        return etag != before.etag || min(size, known) == 0 || max(size, known) / min(size, known) >= 8
    }

    /// Whether a successful answer to a request for the same file, or for a part of it, is of something else. There are parts of all but an empty file.
    public func isReplaced(in facts: ResponseFacts) -> Bool {
        if facts.status == 416 { return size != 0 }
        guard (200..<300).contains(facts.status) else { return false }
        let part = facts.value("content-range").flatMap { ContentRange($0) }
        let size = facts.status == 206 ? part?.size : (try? facts.contentLength()) ?? nil
        return Appearance(facts, size: facts.contentCoding == nil ? size : nil).isOther(than: self)
    }
}
