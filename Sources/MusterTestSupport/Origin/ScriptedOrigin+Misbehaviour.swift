extension ScriptedOrigin {
    /// What an origin can do wrong, or at least unexpectedly. The numbers are the rows of the range contract.
    public enum Misbehaviour: Sendable, Hashable {
        /// Answers a range request with 200 and the whole file (1).
        case ignoreRange
        /// Says that the range starts and ends so many bytes elsewhere; the bytes sent are those asked for (2).
        case contentRangeShifted(by: Int64)
        /// Sends the bytes from so many bytes elsewhere, and says so (2).
        case rangeShifted(by: Int64)
        /// 206 without Content-Range (2).
        case noContentRange
        /// 206 with this Content-Range (2).
        case contentRange(String)
        /// 206, well-formed, for no more than so many bytes (3).
        case shortRange(bytes: Int64)
        /// So many bytes more than announced, on the same connection, which stays open (4, 28).
        case surplus(bytes: Int)
        /// A Content-Length that is so much off; the body is as it should be, then the connection closes (5).
        case contentLengthOff(by: Int64)
        /// Serves this file in place of the one that it served (6).
        case replaced(with: File)
        /// Another size in Content-Range, while the bytes stay the same (6).
        case totalSize(Int64)
        /// This ETag; nil leaves it out (6, 11).
        case etag(String?)
        /// This Last-Modified; nil leaves it out (6).
        case lastModified(String?)
        /// A multipart/byteranges body with the one range that was asked for (7).
        case multipartByteRanges
        /// A weak ETag, `W/` and the strong one (9).
        case weakETag
        /// Mistrusts every If-Range: 200 and the whole file (10).
        case mistrustIfRange
        /// Does not look at If-Range: 206 even if the validator is another (8).
        case ignoreIfRange
        /// Neither ETag nor Last-Modified (12).
        case noValidators
        /// Says that the body has this Content-Encoding; the bytes are as ever (13).
        case contentEncoding(String)
        /// Chunked transfer coding in place of Content-Length (14).
        case chunked
        /// The same, but closes without the last chunk after so many bytes (14).
        case chunkedUnterminated(afterBytes: Int64)
        /// Neither Content-Length nor chunks: the end of the connection ends the body (14).
        case closeDelimited
        /// Closes cleanly after so many bytes of the body (15).
        case truncated(afterBytes: Int64)
        /// Resets the connection after so many bytes of the body (23, 24).
        case reset(afterBytes: Int64)
        /// 416 with the true total size (16).
        case rangeNotSatisfiable
        /// 405 for HEAD (18).
        case refuseHead
        /// HEAD says this Content-Length (18).
        case lieInHead(contentLength: Int64)
        /// This Accept-Ranges (19).
        case acceptRanges(String)
        /// Redirects there with this status (20).
        case redirect(to: String, status: Int)
        /// This status with a small body (21, 24, 25, 26).
        case status(Int, retryAfter: String?)
        /// Drops the connection before a single byte of the response (24).
        case closeBeforeHeaders
        /// 200 with a page of HTML, whatever was asked for (27).
        case htmlErrorPage
        /// Two Content-Length fields that disagree (31).
        case conflictingContentLengths
        /// A negative Content-Length (31).
        case negativeContentLength
        /// Both Transfer-Encoding and Content-Length; the body is chunked (31).
        case transferEncodingAndContentLength
        /// So many bytes at a time, with a pause after each (32).
        case drip(bytes: Int, every: Duration)
        /// Takes the request, and never says a word (33).
        case hangBeforeHeaders
        /// Stops after so many bytes of the body, and keeps the connection open (32, 33).
        case hang(afterBytes: Int64)
        /// The byte at this offset of the file is another one (29, 35).
        case corruptByte(at: Int64)
        /// Further fields (34, 35).
        case headers([Header])
        /// An interim response of this status first, such as 103.
        case interim(Int)
    }

    /// To which requests of a file a misbehaviour applies.
    public struct Condition: Sendable, Hashable {
        /// The numbers of the requests, counting those of the file from 0; nil is all.
        public var requests: Range<Int>?
        /// Only requests whose range starts here.
        public var rangeStart: Int64?
        /// Only requests with, or without, a Range field.
        public var hasRange: Bool?

        /// Makes a condition; everything that is named has to hold.
        public init(requests: Range<Int>? = nil, rangeStart: Int64? = nil, hasRange: Bool? = nil) {
            self.requests = requests
            self.rangeStart = rangeStart
            self.hasRange = hasRange
        }

        /// Every request.
        public static let always = Condition()
        /// The first so many requests.
        public static func first(_ count: Int) -> Condition { Condition(requests: 0..<count) }
        /// All but the first so many requests.
        public static func after(_ count: Int) -> Condition { Condition(requests: count..<Int.max) }
        /// Requests whose range starts here.
        public static func range(startingAt offset: Int64) -> Condition { Condition(rangeStart: offset) }
        /// Requests with a Range field.
        public static let ranged = Condition(hasRange: true)

        func holds(number: Int, range: OriginRange) -> Bool {
            if let requests, !requests.contains(number) { return false }
            if let rangeStart, range.start != rangeStart { return false }
            if let hasRange, hasRange != (range != .none) { return false }
            return true
        }
    }

    struct Rule: Sendable {
        let misbehaviour: Misbehaviour
        let condition: Condition
    }
}
