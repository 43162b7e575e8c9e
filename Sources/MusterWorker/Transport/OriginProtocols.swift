import MusterAPI
import MusterCurl
import Synchronization

/// Which origins keep resetting HTTP/2 streams, and are therefore asked in HTTP/1.1 (range contract, row 23), and which origins don't speak HTTP/1.1, or
/// refuse it. Without I/O.
struct ProtocolHistory: Sendable {
    /// What a transfer showed.
    enum Event: Sendable, Hashable {
        /// It came to its end.
        case served
        /// The stream was reset, or the connection went away under it.
        case reset
        /// A connection for which HTTP/2 was offered ended before an answer. As long as HTTP/2 has served nothing, that may be its fault.
        case unanswered
        /// It ended without a proof of its end; in HTTP/1.1, chunks prove it (row 14).
        case endless
        /// A TLS connection for HTTP/1.1 alone failed, or was refused what HTTP/2 serves: the origin may serve HTTP/2 alone. It is then offered both
        /// versions, so that an origin which serves both loses nothing.
        case refusedHTTP1
    }

    private struct Entry {
        var resetsInARow = 0
        var fellBack = false
        /// Whether HTTP/2 is offered to it with each request.
        var refusesHTTP1 = false
        /// How many transfers HTTP/2 has served since then.
        var servedSince = 0
        /// The versions in which it has served something.
        var serves: (http1: Bool, http2: Bool) = (false, false)
        /// How many requests in HTTP/1.1 failed in a way that may be due to the version, since one was served.
        var doubtsInARow = 0

        /// Whether a lasting property was learned, and not just a reset that may be an accident.
        var tellsMuch: Bool { fellBack || refusesHTTP1 }
    }

    /// After this many resets in a row, an origin is asked in HTTP/1.1.
    static let resetsBeforeFallback = 2
    /// After this many requests in a row that may have been refused for HTTP/1.1, an origin that has served HTTP/1.1 is believed to refuse it: it may have
    /// stopped.
    static let doubtsBeforeBelief = 2
    /// After this many transfers that HTTP/2 has served instead, HTTP/1.1 is tried once more: an outage may have been the reason for the refusal.
    static let servedBeforeRetry = 64
    /// How many origins are remembered; what is forgotten of an origin is learned again.
    static let originLimit = 1_024

    private var entries: [String: Entry] = [:]
    /// The origins of `entries` in the order in which they came in.
    private var order: [String] = []

    /// How many origins are remembered.
    var count: Int { entries.count }

    /// Whether an origin is asked in HTTP/1.1 from now on.
    func fellBack(_ origin: String) -> Bool { entries[origin]?.fellBack == true }

    /// Whether an origin is offered HTTP/2 with every request.
    func refusesHTTP1(_ origin: String) -> Bool { entries[origin]?.refusesHTTP1 == true }

    /// Whether an origin has served something in HTTP/2, and nothing in HTTP/1.1, or nothing lately: what it refuses in HTTP/1.1 may be refused for the
    /// version.
    func mayRefuseHTTP1(_ origin: String) -> Bool {
        guard let entry = entries[origin], entry.serves.http2, !entry.refusesHTTP1 else { return false }
        return !entry.serves.http1 || entry.doubtsInARow >= Self.doubtsBeforeBelief
    }

    /// Notes that a request in HTTP/1.1 failed in a way that may be due to the version.
    mutating func doubtHTTP1(_ origin: String) {
        if entries[origin] != nil { change(origin) { $0.doubtsInARow += 1 } }
    }

    /// Notes that an origin serves a file in a version, however the transfer ends.
    mutating func serves(in version: ResponseHead.Version, _ origin: String) {
        switch version {
        case .http2, .http3: change(origin) { $0.serves.http2 = true }
        case .http10, .http11:
            guard entries[origin] != nil else { return }
            change(origin) {
                $0.serves.http1 = true
                $0.refusesHTTP1 = false
                $0.doubtsInARow = 0
            }
        case .notHTTP: break
        }
    }

    /// Takes in what a transfer showed.
    mutating func note(_ event: Event, of origin: String) {
        switch event {
        case .served:
            // An origin that fell back may still answer on a stream that began before, which changes nothing any more.
            guard let entry = entries[origin], !entry.fellBack else { return }
            change(origin) { entry in
                entry.resetsInARow = 0
                guard entry.refusesHTTP1 else { return }
                entry.servedSince += 1
                if entry.servedSince >= Self.servedBeforeRetry { entry.refusesHTTP1 = false }
            }
        case .refusedHTTP1:
            change(origin) {
                ($0.resetsInARow, $0.doubtsInARow, $0.servedSince) = (0, 0, 0)
                ($0.fellBack, $0.refusesHTTP1) = (false, true)
            }
        case .unanswered where entries[origin]?.serves.http2 == true: break
        case .reset, .unanswered: fail(origin, times: 1)
        case .endless: fail(origin, times: Self.resetsBeforeFallback)
        }
    }

    private mutating func fail(_ origin: String, times: Int) {
        change(origin) { entry in
            entry.resetsInARow += times
            entry.fellBack = entry.resetsInARow >= Self.resetsBeforeFallback
            // The origin may accept HTTP/1.1 by now. If it does not, that is found out again.
            if entry.fellBack { (entry.refusesHTTP1, entry.serves.http1) = (false, false) }
        }
    }

    private mutating func change(_ origin: String, _ body: (inout Entry) -> Void) {
        if entries[origin] == nil {
            makeRoom()
            order.append(origin)
        }
        body(&entries[origin, default: Entry()])
    }

    private mutating func makeRoom() {
        guard entries.count >= Self.originLimit else { return }
        // Origins with a mere reset go first: most resets were accidents.
        if let oldest = order.first(where: { entries[$0]?.tellsMuch == false }) ?? order.first { forget(oldest) }
    }

    private mutating func forget(_ origin: String) {
        entries[origin] = nil
        order.removeAll { $0 == origin }
    }
}

/// The `ProtocolHistory` that all jobs of a worker share, for as long as it runs.
final class OriginProtocols: Sendable {
    private let history = Mutex(ProtocolHistory())

    /// An empty history.
    init() {}

    /// Whether an origin is asked in HTTP/1.1 from now on.
    func fellBack(_ origin: String) -> Bool { history.withLock { $0.fellBack(origin) } }

    /// Whether an origin is offered HTTP/2 with every request.
    func refusesHTTP1(_ origin: String) -> Bool { history.withLock { $0.refusesHTTP1(origin) } }

    /// Whether what an origin refuses in HTTP/1.1 may be refused for the version.
    func mayRefuseHTTP1(_ origin: String) -> Bool { history.withLock { $0.mayRefuseHTTP1(origin) } }

    /// Notes that a request in HTTP/1.1 failed in a way that may be due to the version.
    func doubtHTTP1(_ origin: String) { history.withLock { $0.doubtHTTP1(origin) } }

    /// Notes that an origin serves a file in a version.
    func serves(in version: ResponseHead.Version, _ origin: String) {
        history.withLock { $0.serves(in: version, origin) }
    }

    /// Takes in what a transfer showed.
    func note(_ event: ProtocolHistory.Event, of origin: String) {
        history.withLock { $0.note(event, of: origin) }
    }
}
