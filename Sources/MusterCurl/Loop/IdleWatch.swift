/// Finds origins with more connections than this loop needed lately. Their idle connections are closed: other workers may
/// use as many by now, and the cap of an origin counts connections, not transfers (I5).
struct IdleWatch {
    /// The connections to one origin.
    private struct Connections {
        /// A request that could reuse these connections; a transfer like it closes them.
        let request: TransferRequest
        /// How many transfers run.
        var running = 0
        /// The most transfers that ran at once since the last look.
        var peak = 0
        /// The most connections that may be open.
        var open = 0
    }

    /// In nanoseconds. An unused connection is closed after one to two of these spans.
    private let patience: UInt64
    /// When to look next, in monotonic nanoseconds.
    private(set) var earliest = UInt64.max
    private var origins: [URLOrigin: Connections] = [:]

    init(patience: Duration) {
        self.patience = UInt64(max(1, patience / .nanoseconds(1)))
    }

    /// A transfer begins at `now`.
    mutating func begin(_ request: TransferRequest, at now: UInt64) {
        guard let origin = URLOrigin(request.url) else { return }
        var connections = origins[origin] ?? Connections(request: request)
        connections.running += 1
        connections.peak = max(connections.peak, connections.running)
        connections.open = max(connections.open, connections.running)
        origins[origin] = connections
        if earliest == .max { earliest = now &+ patience }
    }

    /// A transfer is over.
    mutating func end(_ request: TransferRequest) {
        guard let origin = URLOrigin(request.url) else { return }
        origins[origin]?.running -= 1
    }

    /// Looks at all origins if it is time to, and returns a request for each that has too many connections.
    mutating func surplus(at now: UInt64) -> [TransferRequest] {
        guard now >= earliest else { return [] }
        var requests: [TransferRequest] = []
        for (origin, connections) in origins {
            if connections.open > connections.peak { requests.append(connections.request) }
            origins[origin]?.open = connections.peak
            origins[origin]?.peak = connections.running
            if connections.peak == 0 { origins[origin] = nil }
        }
        earliest = origins.isEmpty ? .max : now &+ patience
        return requests
    }
}
