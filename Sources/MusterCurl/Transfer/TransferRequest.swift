/// The least speed that a response must have.
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

/// Which HTTP version is offered.
public enum HTTPVersionPreference: Sendable, Hashable {
    /// HTTP/1.1: one connection per transfer at a time, the better choice for large ranges.
    case http1
    /// HTTP/2 where the TLS handshake agrees on it, else HTTP/1.1; cleartext is HTTP/1.1.
    case http2OverTLS
    /// As ``http2OverTLS``, but never on a connection that spoke HTTP/1.1 before: an origin that refuses HTTP/1.1 may
    /// serve HTTP/2 (row 23).
    case http2AfterRefusal
    /// HTTP/2 without asking, in clear text too (RFC 9113 §3.3); a peer that does not speak it fails the transfer.
    case priorKnowledge
}

/// The proxy that a request uses.
public enum ProxyChoice: Sendable, Hashable {
    /// Directly to the host, regardless of the environment.
    case direct
    /// The proxy that `http_proxy`, `https_proxy`, `no_proxy` and similar variables name.
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

    /// Makes a certificate from the paths of its two files.
    public init(certificatePath: String, keyPath: String) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
    }
}

/// One request and the limits that it is carried out under.
///
/// The schemes `ftp`, `ftps` (implicit TLS) and `sftp` take a GET without a body for one file; header fields and
/// redirects have no meaning there. Their response is presented as an HTTP server would send it, see
/// ``ResponseHead/Version/notHTTP``.
public struct TransferRequest: Sendable {
    /// An absolute URL with a scheme.
    public var url: String
    /// The method, a token of RFC 9110 §9.1, for example `GET`.
    public var method: String
    /// Header fields to send, in order. A name that is not a token, or a line break or NUL in a value, fails the transfer
    /// as `invalidRequest`. They are sent wherever redirects lead, except Authorization and Cookie.
    public var headers: HeaderList
    /// Further fields, for the URL's own origin only: after the first redirect to another scheme, host or port none of
    /// them is sent, unless ``trustsRedirects`` is set.
    public var originHeaders: HeaderList
    /// Whether the origins that redirects lead to also get what is meant for the URL's own origin: ``originHeaders``,
    /// ``credentials`` and ``cookies``.
    public var trustsRedirects: Bool
    /// The byte positions to ask for (RFC 9110 §14.2), nil for the whole; nothing about an HTTP answer is checked.
    public var range: RangeSpec?
    /// Whether an ftp file is read from the first position of ``range`` until the server ends it, whatever size the
    /// server states: the bytes show whether the server begins at the position that it was told. The head is then 206
    /// without Content-Range.
    public var readsToEnd: Bool
    /// What to send as the request's body.
    public var body: UploadBody
    /// How long name resolution, TCP and TLS may take together, for each hop.
    public var connectTimeout: Duration
    /// How long the peer may take from the request to the end of its response head, for each hop; a 1xx response begins
    /// the time anew. While an upload makes progress, or waits for its source, the time does not run.
    public var firstByteTimeout: Duration
    /// The same limit on a connection that was used before; nil to use ``firstByteTimeout`` there too.
    public var keptFirstByteTimeout: Duration?
    /// How long everything may take together, from the start; nil for no limit.
    public var deadline: Duration?
    /// The least speed once the response has begun; nil for no limit.
    public var lowSpeed: LowSpeedLimit?
    /// The budgets that the body keeps to, all of them at once; body bytes are counted as they are delivered. Time that
    /// passes because a budget is used up does not count against ``lowSpeed``.
    public var budgets: [ByteBudget]
    /// How many redirects to follow; 0 delivers a redirect as the final response.
    public var maxRedirects: Int
    /// The schemes that the URL may have, lowercase. A redirect may lead to those of them that are http or https.
    public var allowedSchemes: [String]
    /// Called with the numeric address of each connection before the request goes out on it, also for reused connections,
    /// redirects and the data connections of ftp; false fails the transfer as `refusedAddress`. nil allows all. Called on
    /// the loop's thread. With a proxy it gets the address of the proxy.
    public var addressAllowed: (@Sendable (_ numericAddress: String) -> Bool)?
    /// Asked before a redirect is followed, with the URL that it leads to; false fails the transfer as `refusedRedirect`, and
    /// nothing is sent there. nil allows all. Called on the loop's thread, so that it must not wait for anything.
    public var redirectAllowed: (@Sendable (_ url: String) -> Bool)?
    /// The User-Agent to send, nil for none. One in ``originHeaders`` takes its place.
    public var userAgent: String?
    /// Whether the request gets a new connection even if an idle one exists.
    public var isAlone: Bool
    /// Which HTTP version to offer.
    public var httpVersion: HTTPVersionPreference
    /// Size of the receive buffer in bytes; libcurl caps it at 512 KiB.
    public var receiveBufferBytes: Int
    /// Size in bytes up to which the head of a response (with all 1xx before it) is taken; beyond, `protocolViolation`.
    public var maxHeadBytes: Int
    /// A PEM file of certificate authorities to trust instead of the system's; verification is never off.
    public var caFile: String?
    /// A client certificate to offer.
    public var clientCertificate: ClientCertificate?
    /// Credentials `user:password` for the URL's origin only: as ``authentication`` says for HTTP, the login for ftp, ftps and sftp.
    public var credentials: String?
    /// Whether there are credentials for an origin of HTTP, or may be.
    public var hasCredentials: Bool { credentials != nil || netrcFile != nil }
    /// How ``credentials``, or the entries of a netrc file, are sent to an HTTP origin.
    public var authentication: Authentication
    /// The value of a Cookie field for the URL's origin only. Cookies that responses set on the way are kept for the
    /// redirects of this one transfer (RFC 6265), whether or not there is a value here.
    public var cookies: String?
    /// A file of cookies, in Netscape's form or as Set-Cookie lines; each goes where its own domain, path and `secure` say.
    public var cookieFile: String?
    /// A netrc file; each host of the transfer gets what the file has for it, unless ``credentials`` are given.
    public var netrcFile: String?
    /// OpenSSH's file of known hosts, which must list an sftp server; nil for the user's own `~/.ssh/known_hosts`. A host
    /// that is not listed, or has another key, or a file that cannot be read fails the transfer as `tls`.
    public var knownHostsFile: String?
    /// A private key without a passphrase for the login at an sftp server; nil for none, not even the user's own keys.
    public var privateKeyFile: String?
    /// The proxy that the request uses.
    public var proxy: ProxyChoice

    /// Makes a request with the defaults of Muster: 15 s to connect, 60 s to the first byte, no speed limit, 10
    /// redirects, http and https, 256 KiB buffer, 256 KiB of head.
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
        self.originHeaders = []
        self.trustsRedirects = false
        self.range = range
        self.readsToEnd = false
        self.body = body
        self.connectTimeout = .seconds(15)
        self.firstByteTimeout = .seconds(60)
        self.keptFirstByteTimeout = nil
        self.deadline = nil
        self.lowSpeed = nil
        self.budgets = []
        self.maxRedirects = 10
        self.allowedSchemes = ["http", "https"]
        self.addressAllowed = nil
        self.redirectAllowed = nil
        self.userAgent = nil
        self.httpVersion = .http2OverTLS
        self.receiveBufferBytes = 256 * 1024
        // As much as curl takes.
        self.maxHeadBytes = 300 * 1024
        self.caFile = nil
        self.clientCertificate = nil
        self.credentials = nil
        self.authentication = .preemptive
        self.cookies = nil
        self.isAlone = false
        self.cookieFile = nil
        self.netrcFile = nil
        self.knownHostsFile = nil
        self.privateKeyFile = nil
        self.proxy = .direct
    }
}

/// How credentials are sent to an HTTP origin (RFC 9110 §11).
public enum Authentication: Sendable, Hashable {
    /// By Basic (RFC 7617), with the first request.
    case preemptive
    /// By Digest (RFC 7616), or else by Basic, once the origin asks for it: this costs one more request.
    case onChallenge
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
