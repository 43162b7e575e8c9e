import MusterAPI
import MusterCore

/// A failure that is not the end: what went wrong, and how it goes on.
struct TroubleText: Hashable, Sendable {
    /// `503 Service Unavailable`.
    let reason: String
    /// `try 3 of 8 in 4s`, or `next try when a connection is free`.
    let next: String

    /// The trouble of a task; `nil` for one that is well, or has ended.
    init?(_ task: TaskDocument) {
        guard let failure = task.failure, let retry = task.retry else { return nil }
        reason = TextWidth.escaped(Self.reason(failure))
        let when =
            retry.inSeconds.map { "in \(DurationNotation.format(.seconds($0)))" }
            ?? (task.state == .queued ? "when a connection is free" : "now")
        // The first one has been: it does not count where the origin only said that there was too much at once.
        let count = retry.limit.flatMap { retry.number > 1 ? "try \(retry.number) of \($0)" : nil }
        next = "\(count ?? "next try") \(when)"
    }

    /// The answer's status if there was one, and otherwise the kind and what was seen.
    static func reason(_ failure: FailureDocument) -> String {
        let status = if case .httpStatus(let status) = failure.kind { Optional(status) } else { failure.status }
        // An answer that was no error of the origin's says nothing of what is wrong.
        if let status, status >= 400 {
            return "\(status)" + (phrase(status).map { " \($0)" } ?? " (\(failure.detail))")
        }
        return "\(failure.kind.rawValue): \(failure.detail)"
    }

    /// A kind as it is counted: `503 Service Unavailable`, `network`.
    static func kind(_ kind: FailureKind) -> String {
        guard case .httpStatus(let status) = kind else { return kind.rawValue }
        return "\(status)" + (phrase(status).map { " \($0)" } ?? "")
    }

    /// What a status means, for those that an origin answers with when something is wrong (RFC 9110 §15, RFC 6585, RFC 8470).
    private static func phrase(_ status: Int) -> String? {
        switch status {
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 410: "Gone"
        case 412: "Precondition Failed"
        case 416: "Range Not Satisfiable"
        case 425: "Too Early"
        case 429: "Too Many Requests"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 511: "Network Authentication Required"
        default: nil
        }
    }

    /// `503 Service Unavailable, try 3 of 8 in 4s`.
    var line: String { "\(reason), \(next)" }
}
