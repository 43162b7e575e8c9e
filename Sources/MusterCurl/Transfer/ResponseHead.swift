/// How the end of a response body can be known (RFC 9112 §6.3, RFC 9113 §8.1).
public enum BodyFraming: Sendable, Hashable {
    /// The response has no body by definition: an answer to HEAD, or status 204 or 304.
    case none
    /// Content-Length announced this many bytes; a body that ends sooner is reported as truncated.
    case contentLength(Int64)
    /// The body says itself where it ends: chunked coding, or an HTTP/2 stream without Content-Length. But see
    /// ``ResponseHead/isEndUncertain``.
    case chunked
    /// Only the end of the connection ends the body, so that a cut body looks whole: believe it only if the size or a
    /// digest is known otherwise.
    case untilClose
}

/// The status line and header fields of the final response: after redirects, after every 1xx, without trailers.
public struct ResponseHead: Sendable, Hashable {
    /// The HTTP version that the response was sent in.
    public enum Version: Sendable, Hashable {
        /// None: the head of a transfer by ftp, ftps or sftp, made here in the terms of HTTP. The status is 200, 206 with
        /// Content-Range, 416, or the reason why the file was refused: 401 (login), 403 (access), 404 (no such file), 503
        /// (temporary). Content-Length and Last-Modified are there as far as the server tells size and modification time.
        case notHTTP
        /// HTTP/1.0
        case http10
        /// HTTP/1.1
        case http11
        /// HTTP/2
        case http2
        /// HTTP/3
        case http3
    }

    /// The status code, 200...599 (or whatever three digits the peer sent).
    public var status: Int
    /// The version of the response.
    public var version: Version
    /// The URL that gave this response, after redirects, without credentials.
    public var effectiveURL: String
    /// All header fields in order, duplicates kept.
    public var headers: HeaderList
    /// The numeric address of the peer (of the proxy, if there is one), without port; empty if unknown.
    public var remoteAddress: String
    /// The peer's port, 0 if unknown.
    public var remotePort: Int
    /// How many redirects were followed before this response.
    public var redirectCount: Int
    /// How the body's end can be known.
    public var bodyFraming: BodyFraming

    /// Makes a head, for example to try the rules that judge one.
    public init(
        status: Int,
        version: Version = .http11,
        effectiveURL: String = "",
        headers: HeaderList = [],
        remoteAddress: String = "",
        remotePort: Int = 0,
        redirectCount: Int = 0,
        bodyFraming: BodyFraming
    ) {
        self.status = status
        self.version = version
        self.effectiveURL = effectiveURL
        self.headers = headers
        self.remoteAddress = remoteAddress
        self.remotePort = remotePort
        self.redirectCount = redirectCount
        self.bodyFraming = bodyFraming
    }

    /// Whether a body that was cut could look whole: believe its end only if the size or a digest is known otherwise, or ask
    /// again over HTTP/1.1.
    ///
    /// Besides a body that ends with its connection this holds for HTTP/2 without Content-Length: libcurl (7.88 at least)
    /// takes a reset of the stream with NO_ERROR for its end.
    public var isEndUncertain: Bool {
        switch (bodyFraming, version) {
        case (.untilClose, _), (.chunked, .http2), (.chunked, .http3): true
        case (.none, _), (.contentLength, _), (.chunked, .notHTTP), (.chunked, .http10), (.chunked, .http11): false
        }
    }
}

/// Reads a number made of ASCII digits only; nil for an empty text, a sign, another character or an overflow.
func decimal(_ text: some Collection<UInt8>) -> Int64? {
    guard !text.isEmpty else { return nil }
    var value: Int64 = 0
    for byte in text {
        guard byte >= 0x30, byte <= 0x39 else { return nil }
        let (scaled, overflowed) = value.multipliedReportingOverflow(by: 10)
        let (sum, overflowedToo) = scaled.addingReportingOverflow(Int64(byte - 0x30))
        guard !overflowed, !overflowedToo else { return nil }
        value = sum
    }
    return value
}

/// The text without leading and trailing space, tab, CR and LF.
func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ text: Bytes) -> Bytes.SubSequence {
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }
    guard let first = text.firstIndex(where: { !isSpace($0) }), let last = text.lastIndex(where: { !isSpace($0) })
    else {
        return text[text.endIndex...]
    }
    return text[first...last]
}
