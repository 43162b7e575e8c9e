import MusterAPI
import MusterCore
import MusterCurl

/// The facts of an answer that are kept for the report of a failure: enough to ask the origin's operator about it.
struct OriginAnswer: Sendable, Hashable {
    /// The status of the final response.
    var status: Int?
    /// The origin's own name for the request.
    var requestID: String?
    /// Numeric address of the peer.
    var address: String?
    /// The origin that redirects led to; `nil` when there were none.
    var redirectedTo: String?

    /// Where origins name their requests; the first that is there counts.
    private static let requestFields = [
        "X-Request-Id", "X-Amz-Request-Id", "X-Amz-Cf-Id", "CF-Ray", "X-Trace-Id", "X-Guploader-Uploadid",
        "X-Ms-Request-Id", "X-Correlation-Id",
    ]
    /// The most bytes of a request's name.
    private static let requestIDBytes = 200

    /// Whether no server was reached at all.
    var wasUnreached = false
    /// Whether the connection ended before an answer.
    var wasUnanswered = false

    /// What the end of a transfer tells, with the head if one came.
    init(_ head: ResponseHead?, _ outcome: TransferOutcome) {
        self.init(head, outcome.statistics)
        switch outcome {
        case .failed(.dns, _), .failed(.connect, _), .failed(.proxy, _): wasUnreached = true
        case .failed(.reset, _), .failed(.truncated, _): wasUnanswered = head == nil
        case .failed, .completed, .refused, .stopped, .cancelled: break
        }
        // The origin itself was reached, and redirected the request.
        if head == nil, outcome.statistics.redirectCount > 0 {
            status = 302
            redirectedTo = (try? SourceURL(validating: outcome.statistics.effectiveURL))?.origin
        }
    }

    /// The same facts, from the transfer's figures alone.
    init(_ head: ResponseHead?, _ statistics: TransferStatistics) {
        status = head?.status
        redirectedTo = head.flatMap {
            $0.redirectCount > 0 ? (try? SourceURL(validating: $0.effectiveURL))?.origin : nil
        }
        requestID = head.flatMap { Self.requestID(in: $0.headers) }
        let numeric = head.map(\.remoteAddress) ?? ""
        address = [numeric, statistics.remoteAddress].first { !$0.isEmpty }
    }

    /// The request's name, printable and cut to a maximum length; `nil` when no field has one.
    static func requestID(in headers: HeaderList) -> String? {
        for name in requestFields {
            guard let value = headers[name], !value.isEmpty, value.utf8.allSatisfy({ (0x20...0x7e).contains($0) })
            else {
                continue
            }
            return String(value.prefix(requestIDBytes))
        }
        return nil
    }
}

extension TransferOutcome {
    /// Whether the connection ended too soon.
    var isBrokenOff: Bool {
        switch self {
        case .failed(.reset, _), .failed(.truncated, _): true
        case .failed, .completed, .refused, .stopped, .cancelled: false
        }
    }
}

extension Report.Failure {
    /// The same failure with what the last answer tells.
    func following(_ answer: OriginAnswer?) -> Report.Failure {
        var failure = self
        failure.status = answer?.status
        failure.requestID = answer?.requestID
        failure.address = answer?.address
        failure.unreached = answer?.wasUnreached == true ? true : nil
        failure.unanswered = answer?.wasUnanswered == true ? true : nil
        return failure
    }
}
