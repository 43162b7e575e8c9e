extension ScriptedOrigin {
    /// What an origin can do wrong, or at least unexpectedly. The numbers are the rows of the range contract.
    public enum Misbehaviour: Sendable, Hashable {
        /// Answers a range request with 200 and the whole file (1).
        case ignoreRange
        /// Answers a range request with 200 and no more than the range, with or without Content-Range (1).
        case partAsWhole(statesRange: Bool)
        /// Content-Range is shifted by this many bytes; the bytes sent are those asked for (2).
        case contentRangeShifted(by: Int64)
        /// Sends a range that is shifted by this many bytes, and states it (2).
        case rangeShifted(by: Int64)
        /// 206 without Content-Range (2).
        case noContentRange
        /// 206 with this Content-Range (2).
        case contentRange(String)
        /// 206, well-formed, for no more than this many bytes (3).
        case shortRange(bytes: Int64)
        /// This many bytes more than announced, on the same connection, which stays open (4, 28).
        case surplus(bytes: Int)
        /// 304 to every request, with this ETag.
        case unmodified(etag: String?)
        /// A Content-Length that is wrong by this many bytes; the body is correct, then the connection closes (5).
        case contentLengthOff(by: Int64)
        /// Serves this file in place of the one that it served (6).
        case replaced(with: File)
        /// Another size in Content-Range, while the bytes stay the same (6).
        case totalSize(Int64)
        /// This ETag; nil leaves it out (6, 11).
        case etag(String?)
        /// This Last-Modified; nil leaves it out (6).
        case lastModified(String?)
        /// Every request is served by one of these nodes, chosen by the seed, the path and the request's number (11).
        case nodes([Node], seed: UInt64)
        /// Every request is answered from one of these versions, chosen in the same way; a request with `Cache-Control:
        /// no-cache` from the last version, if that is heeded (29).
        case mixedCache([File], seed: UInt64, heedsNoCache: Bool)
        /// A multipart/byteranges body with the one range that was asked for (7).
        case multipartByteRanges
        /// A weak ETag, `W/` and the strong one (9).
        case weakETag
        /// Mistrusts every If-Range: 200 and the whole file (10).
        case mistrustIfRange
        /// This status for every If-Range (22a).
        case refuseIfRange(status: Int)
        /// Ignores If-Range: 206 even if the validator differs (8).
        case ignoreIfRange
        /// Ignores If-None-Match and If-Modified-Since: sends the file even if the client has it.
        case ignoreConditions
        /// Neither ETag nor Last-Modified (12).
        case noValidators
        /// This Date; nil leaves it out (9, 25).
        case date(String?)
        /// Says that the body has this Content-Encoding; the bytes are unchanged (13).
        case contentEncoding(String)
        /// Chunked transfer coding in place of Content-Length (14).
        case chunked
        /// The same, but closes without the last chunk after this many bytes (14).
        case chunkedUnterminated(afterBytes: Int64)
        /// Neither Content-Length nor chunks: the end of the connection ends the body (14).
        case closeDelimited
        /// Closes cleanly after this many bytes of the body (15).
        case truncated(afterBytes: Int64)
        /// Drops the connection after this many bytes of the body without TLS's closing alert (15).
        case uncleanClose(afterBytes: Int64)
        /// Resets the connection after this many bytes of the body (23, 24).
        case reset(afterBytes: Int64)
        /// RST_STREAM with this error code after this many bytes of the body (23).
        case resetStream(afterBytes: Int64, code: UInt32)
        /// GOAWAY after this many bytes of the body: either the response is still finished, or the connection closes (23).
        case goAway(afterBytes: Int64, isFinished: Bool)
        /// 416 with the true total size (16).
        case rangeNotSatisfiable
        /// 416 that states another total size, or none at all (16).
        case rangeNotSatisfiableStating(total: Int64?)
        /// 405 for HEAD (18).
        case refuseHead
        /// HEAD says this Content-Length (18).
        case lieInHead(contentLength: Int64)
        /// This Accept-Ranges (19).
        case acceptRanges(String)
        /// Redirects there with this status (20).
        case redirect(to: String, status: Int)
        /// Redirects this many times to itself, with a query that counts, before it serves the file (20).
        case redirectChain(hops: Int, status: Int)
        /// Sets a cookie and redirects to itself, until the cookie comes back (20).
        case redirectForCookie(name: String, value: String, status: Int)
        /// Redirects to a fresh signed URL of this path, see ``ScriptedOrigin/sign(_:lifetime:refusal:)`` (21, 22).
        case redirectToSigned(String, status: Int)
        /// This status with a small body (21, 24, 25, 26).
        case status(Int, retryAfter: String?)
        /// This status over the body that is sent anyway (22c).
        case statusOnly(Int)
        /// Refuses while this many responses for the path are under way (24).
        case limit(responses: Int, otherwise: Refusal)
        /// Drops the connection before a single byte of the response (24).
        case closeBeforeHeaders
        /// The same by a reset of the connection (24).
        case resetBeforeHeaders
        /// 200 with a page of HTML, whatever was asked for (27).
        case htmlErrorPage
        /// Two Content-Length fields that disagree (31).
        case conflictingContentLengths
        /// A negative Content-Length (31).
        case negativeContentLength
        /// Both Transfer-Encoding and Content-Length; the body is chunked (31).
        case transferEncodingAndContentLength
        /// In place of a response, these bytes, and a close (31).
        case garbage(String)
        /// This many bytes at a time, with a pause after each piece (32).
        case drip(bytes: Int, every: Duration)
        /// Takes the request, and never answers (33).
        case hangBeforeHeaders
        /// Stops after this many bytes of the body, and keeps the connection open (32, 33).
        case hang(afterBytes: Int64)
        /// The byte at this offset of the file is altered (29, 35).
        case corruptByte(at: Int64)
        /// Further fields (34, 35).
        case headers([Header])
        /// An interim response of this status first, such as 103.
        case interim(Int)
        /// 401 unless the request meets this (38).
        case requires(Requirement)
    }

    /// One of the machines behind an origin's name: the same bytes, other validators (11).
    public struct Node: Sendable, Hashable {
        /// Its ETag; nil leaves it out.
        public var etag: String?
        /// Its Last-Modified; nil leaves it out.
        public var lastModified: String?

        /// Makes a node.
        public init(etag: String?, lastModified: String? = "Wed, 01 Jan 2020 00:00:00 GMT") {
            self.etag = etag
            self.lastModified = lastModified
        }
    }

    /// What a request must contain (38).
    public enum Requirement: Sendable, Hashable {
        /// `Authorization: Basic` with this user and password.
        case basic(user: String, password: String)
        /// A field with this value.
        case header(Header)
        /// A cookie with this value.
        case cookie(name: String, value: String)
        /// A certificate of the client; the origin has to ask for it, see ``ClientCertificates``.
        case clientCertificate
    }

    /// How a connection or a request is refused (24, 33).
    public enum Refusal: Sendable, Hashable, ExpressibleByIntegerLiteral {
        /// This status; a connection is closed after it.
        case status(Int, retryAfter: String?)
        /// A clean close.
        case close
        /// A reset.
        case reset
        /// Nothing, not even a handshake.
        case hang

        /// A status, without Retry-After.
        public init(integerLiteral status: Int) { self = .status(status, retryAfter: nil) }
    }
}
