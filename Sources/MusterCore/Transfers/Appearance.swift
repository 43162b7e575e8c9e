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
    private let isPart: Bool
    /// The names of the other fields that don't come and go with caches and connections.
    private let names: Set<String>

    /// Larger bodies are no pages.
    public static let mostBytes: Int64 = 256 << 10

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
        isPart = facts.status == 206
        names = facts.names.subtracting(Self.passing)
    }

    /// The same of a body whose end has come.
    public func of(_ size: Int64) -> Appearance {
        var appearance = self
        appearance.size = size
        return appearance
    }

    /// Whether the body is small enough to be a page.
    public var isSmall: Bool { size ?? 0 <= Self.mostBytes }

    /// What all answers of the kind have in common, as a key.
    public var kind: String {
        let fields = names.sorted().joined(separator: ",")
        return "\(isPart) \(mediaType ?? "-") \(etag != nil) \(hasDate) \(magnitude ?? -1) \(fields)"
    }

    /// Sizes within a factor of eight are of one magnitude; nothing is one of its own.
    private var magnitude: Int? { size.map { $0 == 0 ? 0 : 1 + ($0.bitWidth - $0.leadingZeroBitCount) / 3 } }

    /// Whether anything is stated that another answer can be compared with.
    public var hasValidator: Bool { etag != nil || hasDate }

    /// What came, in words.
    public var words: String {
        size == 0 ? "nothing" : "\(size.map { "\($0) bytes" } ?? "a body") of \(mediaType?.quoted ?? "no type")"
    }

    /// Whether another answer is of something else than the one that looked so: of another type, with other validators, or of quite another size.
    public func isOther(than before: Appearance) -> Bool {
        guard mediaType == before.mediaType, (etag == nil) == (before.etag == nil), hasDate == before.hasDate else {
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
