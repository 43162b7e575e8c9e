/// The facts of a final response's head that matter here, independent of the transport's types.
public struct ResponseFacts: Sendable, Hashable {
    /// The status code of the final response, after redirects and 1xx.
    public let status: Int
    private let fields: [(name: String, value: String)]
    private let isHTTP: Bool
    /// Whether redirects led to the response.
    let isRedirected: Bool

    /// Facts of a response; names in any case, values trimmed, in the order in which they came.
    ///
    /// - Parameters:
    ///   - isHTTP: `false` for a head that was made from what a server of plain files says (row 37).
    ///   - isRedirected: whether redirects led to it.
    public init(
        status: Int, headers: [(name: String, value: String)], isHTTP: Bool = true, isRedirected: Bool = false
    ) {
        self.status = status
        self.isHTTP = isHTTP
        self.isRedirected = isRedirected
        fields = headers.map { ($0.name.lowercased(), $0.value) }
    }

    /// All values of a field, in order; `name` in lower case.
    public func values(_ name: String) -> [String] {
        fields.lazy.filter { $0.name == name }.map(\.value)
    }

    /// The names of all fields, in lower case.
    var names: Set<String> { Set(fields.map(\.name)) }

    /// The last value of a field.
    public func value(_ name: String) -> String? {
        fields.last { $0.name == name }?.value
    }

    /// Whether a transfer coding delimits the body. `identity` does not.
    public var isChunked: Bool { values("transfer-encoding").contains { $0.lowercased() != "identity" } }

    /// The Content-Encoding that is not `identity` (range contract, row 13). Some origins send `none` in its place, which is no registered
    /// coding.
    public var contentCoding: String? {
        let codings = values("content-encoding").flatMap { $0.split(separator: ",") }.map(\.trimmed).filter {
            !["", "identity", "none"].contains($0.lowercased())
        }
        return codings.isEmpty ? nil : codings.joined(separator: ", ")
    }

    /// The Content-Length; `nil` if there is none. Throws if it is negative or no number, or if two values differ (row 31; RFC 9110 §8.6).
    ///
    /// - Parameter overlooking: whether a plus sign before the number and text behind it are ignored, as other clients do.
    public func contentLength(overlooking: Bool = false) throws(MalformedLength) -> Int64? {
        let stated = values("content-length").flatMap { $0.split(separator: ",") }.map { $0.trimmed }
        guard let first = stated.first else { return nil }
        guard stated.allSatisfy({ $0 == first }), let length = ContentRange.number(overlooking ? first.counted : first)
        else {
            throw MalformedLength(stated: stated.joined(separator: ", "))
        }
        guard !isChunked else { throw MalformedLength(stated: "\(first) beside Transfer-Encoding") }
        return length
    }

    /// A Content-Length that can't be believed.
    public struct MalformedLength: Error, Hashable, Sendable {
        /// What the origin stated.
        public let stated: String
    }

    /// Retry-After in whole seconds, at most `Limits.retryAfter` (RFC 9110 §10.2.3; range contract, row 25). A date is counted from the
    /// response's own Date, never from a local clock (I11); without a Date it is ignored.
    public var retryAfterSeconds: Int64? {
        guard let field = value("retry-after") else { return nil }
        let most = Limits.retryAfter.components.seconds
        // A number of seconds that overflows still is a request to wait.
        if !field.isEmpty, field.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) {
            return min(most, Int64(field) ?? most)
        }
        guard let until = HTTPDate(field), let date else { return nil }
        return min(most, max(0, until.secondsSince1970 - date.secondsSince1970))
    }

    /// When the origin made the response, by its own clock (RFC 9110 §6.6.1).
    private var date: HTTPDate? { value("date").flatMap { HTTPDate($0) } }

    /// Type and subtype in lower case, without parameters (RFC 9110 §8.3.1); `nil` when none is stated. Several fields that disagree are
    /// joined to a type that equals no other.
    public var mediaType: String? {
        let stated = values("content-type").map { field in
            String(field.prefix { $0 != ";" }[...].trimmed).lowercased()
        }
        return stated.isEmpty ? nil : Set(stated).sorted().joined(separator: ", ")
    }

    /// Whether the body's type is one that pages, notices and errors have, or is not stated.
    var isTextual: Bool { mediaType == nil || mayBeNotice }

    /// Whether the body is of a type that pages, notices and errors have.
    public var mayBeNotice: Bool {
        guard let type = mediaType else { return false }
        return type.hasPrefix("text/") || type.hasSuffix("json") || type.hasSuffix("xml")
    }

    /// Whether the body is declared as HTML.
    var isHTML: Bool { mediaType?.hasSuffix("html") == true }

    /// Whether redirects led to something that may stand in place of the file: a login, a notice, an error in JSON. A body without a type
    /// or a validator counts only if it is as small as such pages are (row 27).
    public func mayBePageElsewhere(size: Int64?) -> Bool {
        guard isRedirected else { return false }
        return mayBeNotice
            || size ?? 0 <= Self.largestPage && (mediaType == nil || !representation(size: nil).hasValidator)
    }

    /// Bodies without a type or a validator that have more bytes than this are not pages.
    private static let largestPage: Int64 = 64 << 10

    /// The size, the validators and the digests that the response states for the whole representation (range contract, rows
    /// 8, 9 and 35).
    public func representation(size: Int64?) -> Representation {
        let digests = StatedDigests(self).byName
        return Representation(
            size: size, etag: validator("etag"), lastModified: validator("last-modified"), isDateStrong: isDateStrong,
            digests: digests.isEmpty ? nil : digests)
    }

    /// A field that identifies the content. A field of more than `Limits.validatorBytes` is ignored, and so are the placeholders of origins
    /// that know no validator: an empty tag, a date not after 1970-01-01T00:00:00Z, or the moment of the answer.
    private func validator(_ name: String) -> String? {
        guard let field = value(name), field.utf8.count <= Limits.validatorBytes,
            !["", "\"\"", "W/\"\""].contains(field)
        else { return nil }
        guard name == "last-modified", let moment = HTTPDate(field) else { return field }
        return moment.secondsSince1970 > 0 && moment != date ? field : nil
    }

    /// Whether Last-Modified may stand in If-Range: it is at least 60 s older than Date, so that no second change falls into the same
    /// second, whichever two clocks they come from (RFC 9110 §8.8.2.2; row 9). `nil` when one of them is missing or can't be read. Servers
    /// of plain files have no Date, and nothing better than the modification time (row 37).
    private var isDateStrong: Bool? {
        guard isHTTP else { return validator("last-modified").map { _ in true } }
        guard let date, let modified = validator("last-modified").flatMap({ HTTPDate($0) }) else { return nil }
        return date.secondsSince1970 - modified.secondsSince1970 >= 60
    }

    /// Equal when status and all fields are.
    public static func == (left: Self, right: Self) -> Bool {
        left.status == right.status
            && left.fields.elementsEqual(right.fields) { $0.name == $1.name && $0.value == $1.value }
    }

    /// Hashes the status; enough to tell most responses apart.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(status)
    }
}

extension Substring {
    /// Without the spaces and tabs around it (OWS of RFC 9110 §5.6.3).
    var trimmed: Substring {
        var text = self
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }

    /// The part of a Content-Length by which libcurl counts the body: the number without a plus sign, and without the text behind it unless
    /// that contains another digit.
    fileprivate var counted: Substring {
        let unsigned = hasPrefix("+") ? dropFirst() : self
        let digits = unsigned.prefix { $0.isASCII && $0.isWholeNumber }
        return unsigned.dropFirst(digits.count).contains(where: \.isWholeNumber) ? self : digits
    }
}
