/// The least speed at which a response must come.
public struct LowSpeedLimit: Sendable, Hashable {
    /// Bytes per second, on average over each `over`.
    public var bytesPerSecond: Int64
    /// The span that the average is taken over; time during which the handler had paused does not count.
    public var over: Duration

    /// Makes a limit.
    public init(bytesPerSecond: Int64, over: Duration) {
        self.bytesPerSecond = bytesPerSecond
        self.over = over
    }
}

/// Which HTTP version is offered. Cleartext is HTTP/1.1 always.
public enum HTTPVersionPreference: Sendable, Hashable {
    /// HTTP/1.1: one connection per transfer at a time, the better choice for large ranges.
    case http1
    /// HTTP/2 where the TLS handshake agrees on it, else HTTP/1.1.
    case http2OverTLS
}

/// Through what a request goes.
public enum ProxyChoice: Sendable, Hashable {
    /// Straight to the host, whatever the environment says.
    case direct
    /// As `http_proxy`, `https_proxy`, `no_proxy` and their like say.
    case environment
    /// Through this proxy, given as a URL (`http://`, `https://`, `socks5h://` …, credentials allowed).
    case url(String)
}

/// A client certificate in PEM files.
public struct ClientCertificate: Sendable, Hashable {
    /// The path of the certificate (chain).
    public var certificatePath: String
    /// The path of its private key.
    public var keyPath: String

    /// Makes one.
    public init(certificatePath: String, keyPath: String) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
    }
}

/// One HTTP request and the limits that it is carried out under.
public struct TransferRequest: Sendable {
    /// An absolute URL with a scheme.
    public var url: String
    /// The method, a token of RFC 9110 §9.1, for example `GET`.
    public var method: String
    /// Header fields to send, in order. A name that is not a token, or a line break or NUL in a value, fails the
    /// transfer as `invalidRequest`. Authorization and Cookie do not follow a redirect to another origin.
    public var headers: HeaderList
    /// The byte positions to ask for (RFC 9110 §14.2), nil for the whole; nothing about the answer is checked.
    public var range: RangeSpec?
    /// What to send as the request's body.
    public var body: UploadBody
    /// How long name resolution, TCP and TLS may take together, for each hop.
    public var connectTimeout: Duration
    /// How long the peer may take from the request to the end of its response head, for each hop; a 1xx response begins
    /// the time anew. While an upload makes progress, or waits for its source, the time does not run.
    public var firstByteTimeout: Duration
    /// How long everything may take together, from the start; nil for no limit.
    public var deadline: Duration?
    /// The least speed once the response has begun; nil for no limit.
    public var lowSpeed: LowSpeedLimit?
    /// How many redirects to follow; 0 delivers a redirect as the final response.
    public var maxRedirects: Int
    /// The schemes that the URL and every redirect may have, lowercase.
    public var allowedSchemes: [String]
    /// Asked for the numeric address of each connection before the request goes out on it, also for reused ones and for
    /// redirects; false fails the transfer as `refusedAddress`. nil allows all. Called on the loop's thread. With a
    /// proxy it is the proxy's address that is seen.
    public var addressAllowed: (@Sendable (_ numericAddress: String) -> Bool)?
    /// The User-Agent to send, nil for none.
    public var userAgent: String?
    /// Which HTTP version to offer over TLS.
    public var httpVersion: HTTPVersionPreference
    /// Size of the receive buffer in bytes; libcurl caps it at 512 KiB.
    public var receiveBufferBytes: Int
    /// Size in bytes up to which the head of a response (with all 1xx before it) is taken; beyond, `protocolViolation`.
    public var maxHeadBytes: Int
    /// A PEM file of certificate authorities to trust instead of the system's; verification is never off.
    public var caFile: String?
    /// A client certificate to offer.
    public var clientCertificate: ClientCertificate?
    /// Basic credentials `user:password` for the URL's origin only.
    public var basicCredentials: String?
    /// Through what the request goes.
    public var proxy: ProxyChoice

    /// Makes a request with the defaults of Muster: 15 s to connect, 60 s to the first byte, no speed limit, 10
    /// redirects, http and https, 256 KiB buffer, 64 KiB of head.
    public init(
        url: String,
        method: String = "GET",
        headers: HeaderList = [],
        range: RangeSpec? = nil,
        body: UploadBody = .none
    ) {
        self.url = url
        self.method = method
        self.headers = headers
        self.range = range
        self.body = body
        self.connectTimeout = .seconds(15)
        self.firstByteTimeout = .seconds(60)
        self.deadline = nil
        self.lowSpeed = nil
        self.maxRedirects = 10
        self.allowedSchemes = ["http", "https"]
        self.addressAllowed = nil
        self.userAgent = nil
        self.httpVersion = .http2OverTLS
        self.receiveBufferBytes = 256 * 1024
        self.maxHeadBytes = 64 * 1024
        self.caFile = nil
        self.clientCertificate = nil
        self.basicCredentials = nil
        self.proxy = .direct
    }
}

/// Byte positions of a Range request, `first-last`, both included, as RFC 9110 §14.1.2 counts them.
public struct RangeSpec: Sendable, Hashable {
    /// The first position asked for, from 0.
    public var first: Int64
    /// The last position asked for, included; nil for everything from `first`.
    public var last: Int64?

    /// Makes a range of positions; `last` must not be smaller than `first`, or the transfer fails as `invalidRequest`.
    public init(first: Int64, last: Int64?) {
        self.first = first
        self.last = last
    }
}
