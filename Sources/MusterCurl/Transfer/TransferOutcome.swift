/// How the body of a completed transfer came to its end.
public enum BodyEnd: Sendable, Hashable {
    /// The body ended where its framing said (``BodyFraming/contentLength(_:)``, ``BodyFraming/chunked``), or there was none.
    case framed
    /// The peer closed the connection, which was the only possible sign of the end: the body may be cut.
    case connectionClosed
    /// The peer had more than the limit of ``HeadVerdict/accept(limit:lowSpeed:)``; exactly `limit` bytes were delivered.
    case surplus
}

/// How a transfer ended.
public enum TransferOutcome: Sendable {
    /// The final response was accepted and its body delivered up to its end or up to the limit.
    case completed(TransferStatistics, BodyEnd)
    /// The handler refused the head.
    case refused(TransferStatistics)
    /// The handler answered a piece of the body with `stop`.
    case stopped(TransferStatistics)
    /// ``CurlLoop/cancel(_:)`` was called, or the loop was shut down.
    case cancelled(TransferStatistics)
    /// The transfer failed; bytes that were delivered before stay valid (see ``TransferStatistics/bytesDelivered``).
    case failed(TransferError, TransferStatistics)

    /// The figures of the transfer, whatever its end.
    public var statistics: TransferStatistics {
        switch self {
        case .completed(let statistics, _), .refused(let statistics), .stopped(let statistics),
            .cancelled(let statistics), .failed(_, let statistics):
            statistics
        }
    }
}

/// Figures of one transfer. Times count from the start of the request that gave the final response.
public struct TransferStatistics: Sendable, Hashable {
    /// Body bytes given to the handler.
    public var bytesDelivered: Int64 = 0
    /// Body bytes sent.
    public var bytesUploaded: Int64 = 0
    /// Until the name was resolved.
    public var nameLookupTime: Duration = .zero
    /// Until the TCP connection was made; zero on a reused connection.
    public var connectTime: Duration = .zero
    /// Until the TLS handshake was over; zero without TLS or on a reused connection.
    public var tlsTime: Duration = .zero
    /// Until the first byte of the response.
    public var startTransferTime: Duration = .zero
    /// The whole transfer, redirects included.
    public var totalTime: Duration = .zero
    /// Whether no new connection was opened for it.
    public var connectionReused: Bool = false
    /// Whether the request was first meant for a reused connection on which the peer had sent surplus bytes, so that it
    /// went out on a new one (row 28).
    public var followsSurplus: Bool = false
    /// How many redirects were followed.
    public var redirectCount: Int = 0
    /// The last URL asked for, without credentials.
    public var effectiveURL: String = ""
    /// The peer's numeric address (the proxy's, if there is one), also of a transfer that failed; empty if there was no
    /// connection.
    public var remoteAddress: String = ""

    /// Figures of a transfer that never began.
    public init() {}
}
