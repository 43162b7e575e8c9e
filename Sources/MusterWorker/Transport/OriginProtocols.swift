import MusterAPI
import MusterCurl
import Synchronization

/// Which origins keep resetting HTTP/2 streams, and are asked in HTTP/1.1 for it (range contract, row 23), and which ones don't speak that; without
/// I/O.
struct ProtocolHistory: Sendable {
    /// What a transfer over HTTP/2 told.
    enum Event: Sendable, Hashable {
        /// It came to its end.
        case served
        /// The stream was reset, or the connection went away under it.
        case reset
        /// It ended without anything that proves its end; in HTTP/1.1 chunks prove it (row 14).
        case endless
        /// A connection over TLS for HTTP/1.1 alone came to nothing: the origin may speak HTTP/2 alone. Where the choice is its own, it loses nothing.
        case refusedHTTP1
    }

    private struct Entry {
        var resetsInARow: Int
        var fellBack: Bool
        /// Whether it is offered HTTP/2 with each request.
        var refusesHTTP1 = false
    }

    /// After so many resets in a row an origin is asked in HTTP/1.1.
    static let resetsBeforeFallback = 2
    /// How many origins with resets are remembered; a forgotten one shows itself again.
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

    /// Takes in what a transfer told.
    mutating func note(_ event: Event, of origin: String) {
        switch event {
        case .served:
            // One that fell back has answered over a stream that began before: that changes nothing any more.
            guard let entry = entries[origin], !entry.fellBack else { return }
            if entry.refusesHTTP1 { entries[origin]?.resetsInARow = 0 } else { forget(origin) }
        case .refusedHTTP1:
            if entries[origin] == nil {
                makeRoom()
                order.append(origin)
            }
            entries[origin] = Entry(resetsInARow: 0, fellBack: false, refusesHTTP1: true)
        case .reset: fail(origin, times: 1)
        case .endless: fail(origin, times: Self.resetsBeforeFallback)
        }
    }

    private mutating func fail(_ origin: String, times: Int) {
        if entries[origin] == nil {
            makeRoom()
            order.append(origin)
        }
        var entry = entries[origin] ?? Entry(resetsInARow: 0, fellBack: false)
        entry.resetsInARow += times
        entry.fellBack = entry.resetsInARow >= Self.resetsBeforeFallback
        // It may take HTTP/1.1 by now. Otherwise that is found out once more.
        if entry.fellBack { entry.refusesHTTP1 = false }
        entries[origin] = entry
    }

    private mutating func makeRoom() {
        guard entries.count >= Self.originLimit else { return }
        // Those that only met one reset first: most of them were accidents.
        if let oldest = order.first(where: { entries[$0]?.fellBack == false }) ?? order.first { forget(oldest) }
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

    /// Takes in what a transfer told.
    func note(_ event: ProtocolHistory.Event, of origin: String) {
        history.withLock { $0.note(event, of: origin) }
    }
}
