import Glibc

/// Everything about one response, before a byte of it is sent. What a correct origin would send is planned first; each
/// misbehaviour then changes the plan.
struct ResponsePlan: Sendable {
    typealias Header = ScriptedOrigin.Header

    /// A piece of the body.
    enum Segment: Sendable {
        case content(ScriptedOrigin.Content, Range<Int64>)
        case literal([UInt8])

        var count: Int64 {
            switch self {
            case .content(_, let range): range.upperBound - range.lowerBound
            case .literal(let bytes): Int64(bytes.count)
            }
        }
    }

    /// How the end of the body is marked.
    enum Framing: Sendable, Hashable {
        /// By these Content-Length fields; a correct response has one.
        case length([String])
        /// By chunks, with these Content-Length fields in addition.
        case chunked(lengths: [String], terminated: Bool)
        /// By the end of the connection.
        case close
    }

    /// What comes after the body, or after the part of it that is sent.
    enum Ending: Sendable, Hashable {
        /// The next request.
        case keepAlive
        /// A clean close; over HTTP/2 the end of the stream.
        case close
        /// A reset of the connection; over HTTP/2 of the stream.
        case reset
        /// Silence, until the client leaves.
        case hang
        /// The end of the connection without TLS's closing alert.
        case unclean
        /// RST_STREAM with this error code.
        case resetStream(UInt32)
    }

    /// The value of the Date field.
    enum DateField: Sendable, Hashable {
        case now
        case fixed(String?)
    }

    var interim: [Int] = []
    var status = 200
    var headers: [Header] = []
    var segments: [Segment] = []
    var surplus = 0
    var framing = Framing.length([])
    var ending = Ending.keepAlive
    var stopsAfterBytes: Int64?
    /// The ending that takes the place of a response.
    var instead: Ending?
    /// Bytes in place of a response.
    var garbage: String?
    /// GOAWAY after `afterBytes` bytes of the body.
    var goAway: (afterBytes: Int64, isFinished: Bool)?
    var date = DateField.now
    /// Whether the path's gate holds back this response; refusals pass it.
    var isGated = true
    var pace: (bytes: Int, every: Duration)?
    var corruptOffsets: [Int64] = []
    /// HEAD: the headers alone.
    var omitsBody = false

    var bodyLength: Int64 { segments.reduce(0) { $0 + $1.count } }
    /// Whether the body stops before its end. Then no terminator is sent: a client that read one could not notice the cut.
    var isCut: Bool { stopsAfterBytes.map { $0 < bodyLength } == true }
    /// How many surplus bytes are sent. None after a body that was cut: a client could not tell them from the missing bytes.
    var sentSurplus: Int { isCut ? 0 : surplus }

    /// Sets a field, in place of those of that name; nil removes them.
    mutating func set(_ name: String, _ value: String?) {
        headers.removeAll { $0.name.lowercased() == name.lowercased() }
        if let value { headers.append(Header(name, value)) }
    }

    /// A small body of another kind than the file.
    mutating func replaceBody(status: Int, contentType: String, text: String) {
        self.status = status
        set("Content-Type", contentType)
        for name in ["Content-Range", "ETag", "Last-Modified", "Accept-Ranges"] { set(name, nil) }
        segments = [.literal(Array(text.utf8))]
        framing = .length(["\(text.utf8.count)"])
    }

    /// Refuses the request.
    mutating func refuse(_ refusal: ScriptedOrigin.Refusal) {
        isGated = false
        switch refusal {
        case .status(let status, let retryAfter):
            replaceBody(status: status, contentType: "text/plain", text: "too many\n")
            set("Retry-After", retryAfter)
        case .close: instead = .close
        case .reset: instead = .reset
        case .hang: instead = .hang
        }
    }

    /// The fields that do not depend on the version of HTTP.
    var fields: [Header] {
        var fields = [Header("Server", "scripted-origin")] + headers
        switch date {
        case .now: fields.insert(Header("Date", Self.date(time(nil))), at: 0)
        case .fixed(let value?): fields.insert(Header("Date", value), at: 0)
        case .fixed(nil): break
        }
        return fields
    }

    /// The status line and the fields of HTTP/1.1.
    func head() -> String {
        var text = interim.map { "HTTP/1.1 \($0) Interim\r\n\r\n" }.joined()
        text += "HTTP/1.1 \(status) \(Self.reason(status))\r\n"
        var fields = fields
        switch framing {
        case .length(let lengths):
            fields += lengths.map { Header("Content-Length", $0) }
        case .chunked(let lengths, _):
            fields.append(Header("Transfer-Encoding", "chunked"))
            fields += lengths.map { Header("Content-Length", $0) }
        case .close:
            fields.append(Header("Connection", "close"))
        }
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        return text + "\r\n"
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 307: "Temporary Redirect"
        case 304: "Not Modified"
        case 308: "Permanent Redirect"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 410: "Gone"
        case 416: "Range Not Satisfiable"
        case 429: "Too Many Requests"
        case 500: "Internal Server Error"
        case 503: "Service Unavailable"
        default: "Status"
        }
    }

    /// An IMF-fixdate (RFC 9110 §5.6.7).
    static func date(_ seconds: Int) -> String {
        var seconds = time_t(seconds)
        var parts = tm()
        _ = gmtime_r(&seconds, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let two: (Int32) -> String = { $0 < 10 ? "0\($0)" : "\($0)" }
        return "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) "
            + "\(parts.tm_year + 1900) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }
}
