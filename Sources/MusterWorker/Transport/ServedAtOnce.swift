import MusterCore
import Synchronization

/// The requests of an origin that were served lately, and how many of them it has served at once.
struct ServedAtOnce: Sendable {
    private struct Request: Sendable {
        let begin: Int64
        let end: Int64
    }

    /// How long a request counts after its end, in nanoseconds: an origin may allow less later than it did before.
    static let memory: Int64 = 10_000_000_000
    private static let most = 256

    /// By their ends.
    private var requests: [Request] = []

    /// Notes a request that was served, at its end. Both times are in nanoseconds.
    mutating func note(from begin: Int64, to end: Int64) {
        // Half of them at a time, so that hardly any note moves the others.
        if requests.count >= Self.most { requests.removeFirst(Self.most / 2) }
        requests.append(Request(begin: begin, end: end))
    }

    /// How many of the requests that ended after a moment were under way together.
    func count(since moment: Int64) -> Int {
        let recent = requests.filter { $0.end > moment }
        let changes = recent.map { (at: $0.begin, by: 1) } + recent.map { (at: $0.end, by: -1) }
        var (count, most) = (0, 0)
        // At the same moment, ends come first.
        for change in changes.sorted(by: { ($0.at, $0.by) < ($1.at, $1.by) }) {
            count += change.by
            most = max(most, count)
        }
        return most
    }
}

extension OriginConduct {
    /// Notes that all bytes of a request have come.
    func served(_ visit: Visit, of origin: String) {
        let moment = now()
        state.withLock { state in
            state.served.change(
                of: origin, at: moment, until: moment + ServedAtOnce.memory, from: ServedAtOnce()
            ) { $0.note(from: visit.begin, to: moment) }
        }
    }

    /// How many requests the origin has served at once within the last ten seconds: it allows at least that many (row 24).
    func servedAtOnce(_ origin: String) -> Int {
        let moment = now()
        return state.withLock { $0.served.value(of: origin, at: moment) }?.count(since: moment - ServedAtOnce.memory)
            ?? 0
    }
}
