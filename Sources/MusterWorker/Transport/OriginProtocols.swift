import MusterAPI
import MusterCurl
import Synchronization

/// Which origins keep resetting HTTP/2 streams, and are asked in HTTP/1.1 for it (range contract, row 23), and which ones don't speak that, or refuse it;
/// without I/O.
struct ProtocolHistory: Sendable {
    /// What a transfer over HTTP/2 told.
    enum Event: Sendable, Hashable {
        /// It came to its end.
        case served
        /// The stream was reset, or the connection went away under it.
        case reset
        /// It ended without anything that proves its end; in HTTP/1.1 chunks prove it (row 14).
        case endless
        /// A connection over TLS for HTTP/1.1 alone came to nothing, or was refused what HTTP/2 serves: the origin may serve HTTP/2 alone. Where the choice
        /// is its own, it loses nothing.
        case refusedHTTP1
    }

    private struct Entry {
        var resetsInARow = 0
        var fellBack = false
        /// Whether it is offered HTTP/2 with each request.
        var refusesHTTP1 = false
        /// How many transfers HTTP/2 has served since.
        var servedSince = 0
        /// In which versions it has served something.
        var serves: (http1: Bool, http2: Bool) = (false, false)
        /// How many requests in HTTP/1.1 have met what may be meant for that version, since one was served.
        var doubtsInARow = 0

        /// Whether something was learned that is worth more than an accident.
        var tellsMuch: Bool { fellBack || refusesHTTP1 }
    }

    /// After so many resets in a row an origin is asked in HTTP/1.1.
    static let resetsBeforeFallback = 2
    /// After so many requests in a row that may have been refused for HTTP/1.1, that is believed of an origin which has served it as well: it may have stopped.
    static let doubtsBeforeBelief = 2
    /// After so many transfers that HTTP/2 has served instead, HTTP/1.1 is tried once more: what refused it may have been an outage.
    static let servedBeforeRetry = 64
    /// How many origins are remembered; a forgotten one shows itself again.
    static let originLimit = 1_024

    private var entries: [String: Entry] = [:]
    /// The origins of `entries` in the order in which they came in.
    private var order: [String] = []

    /// How many origins are remembered.
    var count: Int { entries.count }

    /// Whether an origin is asked in HTTP/1.1 from now on.
    func fellBack(_ origin: String) -> Bool { entries[origin]?.fellBack == true }

    /// Whether an origin is offered HTTP/2 whatever it is asked for.
    func refusesHTTP1(_ origin: String) -> Bool { entries[origin]?.refusesHTTP1 == true }

    /// Whether an origin has served something in HTTP/2, and nothing in HTTP/1.1, or nothing lately: what it refuses in that, it may refuse for that.
    func mayRefuseHTTP1(_ origin: String) -> Bool {
        guard let entry = entries[origin], entry.serves.http2, !entry.refusesHTTP1 else { return false }
        return !entry.serves.http1 || entry.doubtsInARow >= Self.doubtsBeforeBelief
    }

    /// Takes in that a request in HTTP/1.1 met what may be meant for that version.
    mutating func doubtHTTP1(_ origin: String) {
        if entries[origin] != nil { change(origin) { $0.doubtsInARow += 1 } }
    }

    /// Takes in that an origin serves a file in a version, whatever becomes of the transfer.
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

    /// Takes in what a transfer told.
    mutating func note(_ event: Event, of origin: String) {
        switch event {
        case .served:
            // One that fell back has answered over a stream that began before: that changes nothing any more.
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
        case .reset: fail(origin, times: 1)
        case .endless: fail(origin, times: Self.resetsBeforeFallback)
        }
    }

    private mutating func fail(_ origin: String, times: Int) {
        change(origin) { entry in
            entry.resetsInARow += times
            entry.fellBack = entry.resetsInARow >= Self.resetsBeforeFallback
            // It may take HTTP/1.1 by now. Otherwise that is found out once more.
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
        // Those that only met one reset first: most of them were accidents.
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

    /// Whether an origin is offered HTTP/2 whatever it is asked for.
    func refusesHTTP1(_ origin: String) -> Bool { history.withLock { $0.refusesHTTP1(origin) } }

    /// Whether what an origin refuses in HTTP/1.1 may be refused for that.
    func mayRefuseHTTP1(_ origin: String) -> Bool { history.withLock { $0.mayRefuseHTTP1(origin) } }

    /// Takes in that a request in HTTP/1.1 met what may be meant for that version.
    func doubtHTTP1(_ origin: String) { history.withLock { $0.doubtHTTP1(origin) } }

    /// Takes in that an origin serves a file in a version.
    func serves(in version: ResponseHead.Version, _ origin: String) {
        history.withLock { $0.serves(in: version, origin) }
    }

    /// Takes in what a transfer told.
    func note(_ event: ProtocolHistory.Event, of origin: String) {
        history.withLock { $0.note(event, of: origin) }
    }
}
