/// Finds transfers that have waited for an answer so long that their origin may serve no other connection before an idle
/// one is closed (range contract, row 22b).
struct StallWatch {
    /// How long a transfer may wait before its handler is told; the handler is told again each time that this has passed.
    static let patienceNanoseconds: UInt64 = 1_000_000_000

    /// When to look next, in monotonic nanoseconds.
    private(set) var earliest = UInt64.max
    /// For each origin whose idle connections are to be closed, the transfers that had waited there for too long at the last look.
    private var waiting: [URLOrigin: [TransferID]] = [:]
    /// The origins whose idle connections are being closed.
    private var closing: Set<URLOrigin> = []

    /// Whether it is time to look.
    var isDue: Bool { earliest != .max && monotonicNanoseconds() >= earliest }

    /// The wait for an answer of an origin began at `moment`.
    mutating func arm(_ moment: UInt64) {
        earliest = min(earliest, moment &+ Self.patienceNanoseconds)
    }

    /// Looks at all transfers, and tells the handler of one transfer for each origin that has left some without an answer
    /// for too long. Returns the requests for which idle connections are to be closed.
    mutating func look(at transfers: some Sequence<Transfer>) -> [TransferRequest] {
        let now = monotonicNanoseconds()
        var told: [URLOrigin: Bool] = [:]
        earliest = .max
        waiting = [:]
        var unserved: [TransferRequest] = []
        for transfer in transfers where !transfer.closesIdle && transfer.fileScheme == nil {
            guard let since = transfer.unansweredSince else { continue }
            guard now >= since &+ Self.patienceNanoseconds else {
                arm(since)
                continue
            }
            arm(now)
            guard let origin = URLOrigin(transfer.request.url) else { continue }
            if told[origin] == nil {
                let closes = transfer.handler.stalled()
                told[origin] = closes
                if closes { unserved.append(transfer.request) }
            }
            if told[origin] == true { waiting[origin, default: []].append(transfer.id) }
        }
        return unserved
    }

    /// The transfers that waited at the origin of a request. Some may have their answer by now, or be over.
    func waiting(like request: TransferRequest) -> [TransferID] {
        waiting.isEmpty ? [] : URLOrigin(request.url).flatMap { waiting[$0] } ?? []
    }

    /// Notes that idle connections are about to be closed; false if that is under way already.
    mutating func closes(_ request: TransferRequest) -> Bool {
        URLOrigin(request.url).map { closing.insert($0).inserted } ?? false
    }

    /// Notes that the transfer that closes an idle connection is over.
    mutating func closed(_ request: TransferRequest) {
        if let origin = URLOrigin(request.url) { closing.remove(origin) }
    }
}

/// The handler of a transfer that only closes an idle connection.
final class IdleCloser: TransferHandler {
    func head(_ head: ResponseHead) -> HeadVerdict { .refuse }

    func body(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict { .stop }

    func finished(_ outcome: TransferOutcome) {}
}
