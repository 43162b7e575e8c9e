import MusterCore
import MusterCurl

extension TransferError {
    /// The kind under which a failed transfer is reported.
    var failureKind: FailureKind {
        switch self {
        case .dns: .dns
        case .proxy: .proxy
        case .connect, .noSocket, .truncated, .reset, .streamReset, .sendFailed, .other: .network
        case .tls: .tls
        case .connectTimeout, .firstByteTimeout, .deadline: .timeout
        case .tooSlow: .tooSlow
        // The origin keeps answering with a redirect that leads nowhere: another source may do better.
        case .tooManyRedirects, .malformedURL: .httpStatus(302)
        case .unsupportedScheme, .refusedAddress, .refusedRedirect: .refusedAddress
        // The caller's own fields can't be sent: what a server would call a bad request.
        case .invalidRequest: .httpStatus(400)
        case .protocolViolation: .badRange
        }
    }
}

extension TransferError {
    /// Whether what came instead of a head may be the rest of an earlier answer on a reused connection (range contract, row 28).
    func isOfOtherAnswer(_ statistics: TransferStatistics) -> Bool {
        if case .protocolViolation = self { statistics.connectionReused } else { false }
    }
}
