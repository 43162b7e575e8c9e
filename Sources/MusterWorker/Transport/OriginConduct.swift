import MusterCore
import MusterCurl
import Synchronization

/// What all jobs of a worker know of the origins together, for as long as it runs: how many bodies come from there, which rungs of the
/// ladder they have contradicted, and who wants credentials by Digest.
final class OriginConduct: Sendable {
    private struct State {
        var running: [String: Int] = [:]
        var rungs = OriginRungs()
        var challenging: Set<String> = []
        /// When an origin was silent last, whatever it was asked for, in nanoseconds.
        var silences: [String: Int64] = [:]
    }

    /// How many origins are known to want Digest, and to be silent; what is forgotten is found out again.
    private static let mostRemembered = 1_024
    /// How long a silence is remembered, in nanoseconds.
    private static let silenceMemory: Int64 = 300_000_000_000

    private let state = Mutex(State())
    private let now: @Sendable () -> Int64

    /// Nothing is known yet. `now` tells nanoseconds of a clock that never jumps.
    init(now: @escaping @Sendable () -> Int64 = MonotonicClock.now) {
        self.now = now
    }

    /// The body of a transfer begins to come.
    func enter(_ origin: String) {
        state.withLock { $0.running[origin, default: 0] += 1 }
    }

    /// That transfer is over.
    func leave(_ origin: String) {
        state.withLock { state in
            let others = (state.running[origin] ?? 1) - 1
            state.running[origin] = others > 0 ? others : nil
        }
    }

    /// Whether the origin is serving anybody. One that is may refuse for that; one that refuses everybody has another reason (row 24).
    func isBusy(_ origin: String) -> Bool {
        state.withLock { $0.running[origin] != nil }
    }

    /// The origin refused credentials that were sent unasked, and wants them by Digest (RFC 7616).
    func challenged(by origin: String) {
        state.withLock { state in
            if state.challenging.count >= Self.mostRemembered { state.challenging = [] }
            state.challenging.insert(origin)
        }
    }

    /// How credentials are shown to the origin.
    func authentication(at origin: String) -> Authentication {
        state.withLock { $0.challenging.contains(origin) } ? .onChallenge : .preemptive
    }

    /// The origin did not answer in time.
    func silent(_ origin: String) {
        let moment = now()
        state.withLock { state in
            if state.silences.count >= Self.mostRemembered { state.silences = [:] }
            state.silences[origin] = moment
        }
    }

    /// The origin answered, and soon.
    func answered(_ origin: String) {
        state.withLock { state in
            if !state.silences.isEmpty { state.silences[origin] = nil }
        }
    }

    /// Whether the origin was silent lately.
    func isSilent(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock { state in state.silences[origin].map { moment - $0 < Self.silenceMemory } ?? false }
    }

    /// A path has contradicted a rung.
    func contradicted(_ rung: Rung, by source: SourceURL) {
        let moment = now()
        state.withLock { $0.rungs.contradicted(rung, by: source.path, of: source.origin, now: moment) }
    }

    /// A path was served on a rung.
    func served(_ rung: Rung, by origin: String) {
        state.withLock { $0.rungs.served(rung, by: origin) }
    }

    /// Where a source of which nothing is known begins.
    func first(of origin: String) -> Rung {
        let moment = now()
        return state.withLock { $0.rungs.first(of: origin, now: moment) }
    }
}
