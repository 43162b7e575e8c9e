import MusterCore
import MusterCurl
import Synchronization

/// In which manner an origin is asked besides the rung of the ladder: some refuse what curl, which uses each connection once and says nothing of
/// codings, is served.
struct Manner: Sendable, Hashable {
    /// Whether each request gets a connection of its own (range contract, rows 22b and 28).
    var isAlone = false
    /// Whether requests say that the content is wanted as it is (row 13).
    var saysIdentity = true
}

/// What all jobs of a worker know of the origins together, for as long as it runs: how many bodies come from there, which rungs of the
/// ladder they have contradicted, and who wants credentials by Digest.
final class OriginConduct: Sendable {
    private struct State {
        var running: [String: Int] = [:]
        var rungs = OriginRungs()
        var challenging: Set<String> = []
        /// How origins want to be asked, and until when that is believed, in nanoseconds.
        var manners: [String: (manner: Manner, until: Int64)] = [:]
        /// Until when what comes on connections that were used before is believed like any other answer.
        var trusted: [String: Int64] = [:]
        /// Until when the speed of an origin's parts is not doubted.
        var doubted: [String: Int64] = [:]
        /// Origins that have served another request for a file.
        var servingAgain: Set<String> = []
        /// Origins whose last answer took long.
        var lingering: Set<String> = []
        /// When an origin was silent last, whatever it was asked for, in nanoseconds.
        var silences: [String: Int64] = [:]
    }

    /// How many origins are known to want Digest, and to be silent; what is forgotten is found out again.
    private static let mostRemembered = 1_024
    /// How long a silence is remembered, in nanoseconds.
    private static let silenceMemory: Int64 = 300_000_000_000
    /// How long an answer of an origin may take that is never silent for `FetchJob.keptPatience`.
    private static let quickAnswer: Duration = .seconds(5)
    /// How long it is remembered how an origin wants to be asked, in nanoseconds: as long as its rungs.
    private static let mannerMemory = OriginRungs.closedNanoseconds

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

    /// The origin served what it had refused when it was asked in another manner.
    func wants(_ manner: Manner, _ origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { state in
            if state.manners.count >= Self.mostRemembered { state.manners = [:] }
            state.manners[origin] = (manner, until)
        }
    }

    /// In which manner the origin is asked.
    func manner(of origin: String) -> Manner {
        let moment = now()
        return state.withLock { state in
            state.manners[origin].flatMap { $0.until > moment ? $0.manner : nil } ?? Manner()
        }
    }

    /// A new connection brought the same refusal as one that was used before.
    func trustKept(of origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { state in
            if state.trusted.count >= Self.mostRemembered { state.trusted = [:] }
            state.trusted[origin] = until
        }
    }

    /// Whether a refusal on a connection that was used before may be due to that.
    func doubtsKept(of origin: String) -> Bool {
        let moment = now()
        return state.withLock { state in state.trusted[origin].map { $0 <= moment } ?? true }
    }

    /// Whether the speed of the origin's parts may be doubted. Whoever is told so looks how a plain GET comes, alone: for ten minutes nobody else is
    /// told so, unless it comes faster.
    func doubtsSpeed(of origin: String) -> Bool {
        let moment = now()
        return state.withLock { state in
            guard state.doubted[origin].map({ $0 <= moment }) ?? true else { return false }
            if state.doubted.count >= Self.mostRemembered { state.doubted = [:] }
            state.doubted[origin] = moment + Self.mannerMemory
            return true
        }
    }

    /// A plain GET came much faster than a part.
    func speedWasRightlyDoubted(of origin: String) {
        state.withLock { $0.doubted[origin] = nil }
    }

    /// The origin has served another request for a file.
    func servedAgain(_ origin: String) {
        state.withLock { state in
            if state.servingAgain.count >= Self.mostRemembered { state.servingAgain = [] }
            state.servingAgain.insert(origin)
        }
    }

    /// Whether the origin is known to serve a file more than once.
    func servesAgain(_ origin: String) -> Bool {
        state.withLock { $0.servingAgain.contains(origin) }
    }

    /// Whether the origin's last answer took long.
    func lingers(_ origin: String) -> Bool {
        state.withLock { $0.lingering.contains(origin) }
    }

    /// The origin did not answer in time.
    func silent(_ origin: String) {
        let moment = now()
        state.withLock { state in
            if state.silences.count >= Self.mostRemembered { state.silences = [:] }
            state.silences[origin] = moment
        }
    }

    /// The origin answered, after so long.
    func answered(_ origin: String, after time: Duration = .zero) {
        state.withLock { state in
            if time < .seconds(1), !state.silences.isEmpty { state.silences[origin] = nil }
            guard time >= Self.quickAnswer else {
                if !state.lingering.isEmpty { state.lingering.remove(origin) }
                return
            }
            if state.lingering.count >= Self.mostRemembered { state.lingering = [] }
            state.lingering.insert(origin)
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
