/// Collects the header lines that libcurl delivers one by one into the head of the final response (RFC 9112 §2, §4, §5).
struct HeadCollector {
    /// What a line meant.
    enum Event {
        /// The head goes on.
        case more
        /// A 1xx response is over; another follows.
        case informational
        /// The head of a redirect that libcurl follows is over.
        case redirect
        /// The final head is over.
        case final
        /// The line is no HTTP head, or the head is over its limit.
        case violation(String)
    }

    private(set) var status = 0
    private(set) var version = ResponseHead.Version.http11
    private(set) var headers = HeaderList()
    private let followsRedirects: Bool
    private let limitBytes: Int
    /// Bytes of all heads of the current hop, 1xx included: the limit also stops an endless row of 1xx responses.
    private var hopBytes = 0

    init(followsRedirects: Bool, limitBytes: Int) {
        self.followsRedirects = followsRedirects
        self.limitBytes = limitBytes
    }

    mutating func take(_ line: UnsafeRawBufferPointer) -> Event {
        hopBytes += line.count
        guard hopBytes <= limitBytes else { return .violation("the response head is over \(limitBytes) bytes") }
        // In upper or lower case: some origins write the status line in lowercase, and every client accepts that.
        if line.prefix(5).lazy.map({ $0 & 0xDF }).elementsEqual(Self.statusPrefix) { return takeStatusLine(line) }
        guard status != 0 else { return .violation("a header came before the status line") }
        let text = trimmed(line)
        if text.isEmpty { return endOfHead() }
        if line[0] == 0x20 || line[0] == 0x09 {
            // A folded line belongs to the value above it (RFC 9112 §5.2).
            headers.extendLast(by: String(decoding: text, as: UTF8.self))
            return .more
        }
        guard let colon = text.firstIndex(of: 0x3A) else { return .violation("a header line has no colon") }
        headers.append(
            String(decoding: text[..<colon], as: UTF8.self),
            String(decoding: trimmed(text[(colon + 1)...]), as: UTF8.self)
        )
        return .more
    }

    /// `HTTP/` without the bit 0x20 of lowercase letters, which the slash has too.
    private static let statusPrefix = Array("HTTP/".utf8).map { $0 & 0xDF }

    private mutating func takeStatusLine(_ line: UnsafeRawBufferPointer) -> Event {
        let parts = trimmed(line).split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: true)
        guard parts.count >= 2, parts[1].count == 3, let status = decimal(parts[1]) else {
            return .violation("the status line is malformed")
        }
        self.status = Int(status)
        switch String(decoding: parts[0], as: UTF8.self).uppercased() {
        case "HTTP/1.0": version = .http10
        case "HTTP/1.1": version = .http11
        case "HTTP/2", "HTTP/2.0": version = .http2
        case "HTTP/3": version = .http3
        default: return .violation("the HTTP version is unknown")
        }
        headers = HeaderList()
        return .more
    }

    private mutating func endOfHead() -> Event {
        switch status {
        case 100...199:
            return .informational
        // The same rule by which libcurl decides to follow: any 3xx with a Location that is not empty.
        case 300...399 where followsRedirects && headers.fields.contains(where: Self.isUsableLocation):
            hopBytes = 0
            return .redirect
        case 200...:
            return .final
        default:
            return .violation("the status is below 100")
        }
    }

    private static func isUsableLocation(_ field: HeaderField) -> Bool {
        asciiCaseInsensitiveEqual(field.name, "Location") && !field.value.isEmpty
    }

    /// Whether libcurl waits for the end of the connection although a length is stated: any transfer coding makes it do
    /// so, even `identity`, which means no coding (RFC 2616 §3.6).
    var endsBeforeConnection: Bool {
        !transferCodings.isEmpty && transferCodings.allSatisfy { asciiCaseInsensitiveEqual($0, "identity") }
    }

    private var transferCodings: [String] {
        headers.all("Transfer-Encoding").flatMap { $0.split(separator: ",") }.map {
            String(decoding: trimmed($0.utf8), as: UTF8.self)
        }
    }

    /// How the body's end can be known (RFC 9112 §6.3); the first valid statement counts.
    func framing(isHead: Bool) -> BodyFraming {
        if isHead || status == 204 || status == 304 { return .none }
        if transferCodings.contains(where: { asciiCaseInsensitiveEqual($0, "chunked") }) { return .chunked }
        for value in headers.all("Content-Length") {
            // libcurl also accepts a number with a leading plus sign.
            let text = trimmed(value.utf8)
            if let length = decimal(text.first == 0x2B ? text.dropFirst() : text) { return .contentLength(length) }
        }
        return version == .http2 || version == .http3 ? .chunked : .untilClose
    }
}
