import MusterCore
import MusterCurl
import MusterSystem
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
    /// A request that is made at an origin.
    struct Visit: Sendable {
        /// Counts all requests.
        fileprivate let number: Int
        /// Whether others were under way when it was made.
        fileprivate let isShared: Bool
    }

    /// The requests that are under way at an origin.
    struct Asking {
        var count = 0
        /// Those of which nothing has come yet, by their numbers, and when each was made.
        var unanswered: [Int: Int64] = [:]
        /// The last one that was made.
        var last = 0
    }

    struct State {
        var running: [String: Int] = [:]
        var visits = 0
        var asking: [String: Asking] = [:]
        var rungs = OriginRungs()
        /// When something last came from origins, of late.
        var serving = Remembered<Int64>()
        /// Origins that have answered lately that something is there, or is as it was.
        var answering = Remembered<Void>()
        /// Origins that have refused since then what was asked for beside something else.
        var refusing = Remembered<Void>()
        /// Origins that were seen to serve what overlaps.
        var together = Remembered<Void>()
        /// How many files in a row were refused at origins that serve nobody, each of them alone, and the last one.
        var refusedAlone = Remembered<(count: Int, last: String)>()
        /// Origins that want credentials by Digest.
        var challenging = Remembered<Void>()
        /// How origins want to be asked.
        var manners = Remembered<Manner>()
        /// Origins of which what comes on connections that were used before is believed like any other answer.
        var trusted = Remembered<Void>()
        /// Origins that have served somebody who named a coding, or were asked without it in vain.
        var identified = Remembered<Void>()
        /// Origins of which a plain GET was seen to come much faster than a part of the same file.
        var faster = Remembered<Void>()
        /// Origins whose last answer took long.
        var lingering = Remembered<Void>()
        /// Origins that were seen to send a file from the position on that they are told.
        var positioned = Remembered<Void>()
        /// Origins that were silent lately, whatever they were asked for.
        var silent = Remembered<Void>()

        func isServing(_ origin: String, since earliest: Int64) -> Bool {
            running[origin] != nil || serving.value(of: origin, at: earliest).map { $0 > earliest } ?? false
        }

        func refusesAlone(_ origin: String, at moment: Int64) -> Bool {
            refusedAlone.value(of: origin, at: moment)?.count ?? 0 >= OriginConduct.aloneToBelieve
        }

        /// Whether many may ask at once.
        func isOpen(_ origin: String, at moment: Int64) -> Bool {
            if refusesAlone(origin, at: moment) { return true }
            guard refusing.value(of: origin, at: moment) == nil else { return false }
            return isServing(origin, since: moment - OriginConduct.servingMemory)
                || answering.value(of: origin, at: moment) != nil
        }

        /// A file is there.
        mutating func isThere(_ origin: String) {
            refusing.forget(origin)
            refusedAlone.forget(origin)
        }

        /// A request is answered with a body. One that was under way together with another one for long enough to have met it shows that what overlaps is served.
        mutating func answer(_ visit: Visit, of origin: String, at moment: Int64) {
            let latest = moment - OriginConduct.togetherTime
            guard let asked = asking[origin]?.unanswered.removeValue(forKey: visit.number), asked <= latest,
                asking[origin]?.unanswered.values.contains(where: { $0 <= latest }) == true
            else { return }
            together.note((), of: origin, until: moment + OriginConduct.mannerMemory)
        }

        mutating func ask(_ origin: String, at moment: Int64) -> Visit {
            visits += 1
            let number = visits
            // In place: a copy would be made for each request.
            return { asking in
                defer { asking.count += 1 }
                asking.unanswered[number] = moment
                asking.last = number
                return Visit(number: number, isShared: asking.count > 0)
            }(&asking[origin, default: Asking()])
        }
    }

    /// How long after its last answer an origin counts as one that serves, in nanoseconds, unless it refuses by a status that tells of shorter limits:
    /// limits are set for so many seconds.
    static let servingMemory: Int64 = 8_000_000_000
    /// How long a silence is remembered, in nanoseconds.
    private static let silenceMemory: Int64 = 300_000_000_000
    /// How long an answer of an origin may take that is never silent for `FetchJob.keptPatience`.
    private static let quickAnswer: Duration = .seconds(5)
    /// How long it is remembered how an origin wants to be asked, in nanoseconds: as long as its rungs.
    static let mannerMemory = OriginRungs.closedNanoseconds

    /// How long answers are waited for that others have asked for.
    private static let answerTime: Duration = .milliseconds(250)
    /// Requests that wait so long together for their answers have met at the origin, in nanoseconds: the network keeps none for as long.
    private static let togetherTime: Int64 = 250_000_000
    /// So many files that were refused alone show that others are refused for themselves, too.
    static let aloneToBelieve = 3

    let state = Mutex(State())
    /// Rung when a request is served, and when one is over.
    let bell = Bell()
    let now: @Sendable () -> Int64

    /// Nothing is known yet. `now` tells nanoseconds of a clock that never jumps.
    init(now: @escaping @Sendable () -> Int64 = MonotonicClock.now) {
        self.now = now
    }

    /// A request is about to be made, whatever else is asked of the origin.
    func ask(_ origin: String) -> Visit {
        let moment = now()
        return state.withLock { $0.ask(origin, at: moment) }
    }

    /// That request for the file at `url` is over. Returns whether another one was made at the same time.
    ///
    /// - Parameter isThere: whether the origin said that the file is there, whether or not it sent it; `nil` where it said nothing.
    func isOver(_ visit: Visit, _ origin: String, url: String = "", isThere: Bool? = nil) -> Bool {
        defer { bell.ring() }
        let moment = now()
        return state.withLock { state in
            guard var asking = state.asking.removeValue(forKey: origin) else { return false }
            asking.count -= 1
            asking.unanswered[visit.number] = nil
            if asking.count > 0 { state.asking[origin] = asking }
            let isShared = visit.isShared || asking.last != visit.number
            if isThere == true {
                state.answering.note((), of: origin, until: moment + Self.servingMemory)
                state.isThere(origin)
            } else if isThere == false, !isShared, !state.isServing(origin, since: moment - Self.servingMemory) {
                let known = state.refusedAlone.value(of: origin, at: moment) ?? (0, "")
                state.refusedAlone.note(
                    (known.count + (known.last == url ? 0 : 1), url), of: origin, until: moment + Self.servingMemory)
            }
            return isShared
        }
    }

    /// Waits until whatever is asked of the origin now is answered, for a moment at most. Returns whether it is, and nothing came of it, nor did lately: then
    /// a refusal is for no limit, as far as this worker sees.
    func servesNobody(_ origin: String, for control: LeaseControl) async -> Bool {
        let last = state.withLock(\.visits)
        let deadline = ContinuousClock.now + Self.answerTime
        while true {
            let rings = bell.rings
            let waits = state.withLock { $0.asking[origin]?.unanswered.keys.contains { $0 <= last } ?? false }
            guard waits else { return !isServing(origin) }
            let rest = deadline - ContinuousClock.now
            guard rest > .zero, await control.wait(at: bell, since: rings, limit: rest) else { return false }
        }
    }

    /// Whether a refusal of an origin that serves nobody is for its file: it was asked for alone, or enough others were.
    func isRefusedForItself(_ origin: String, isShared: Bool) -> Bool {
        let moment = now()
        return !isShared || state.withLock { $0.refusesAlone(origin, at: moment) }
    }

    /// Whether no job asks anything of the origin.
    func isIdle(_ origin: String) -> Bool {
        state.withLock { $0.asking[origin] == nil }
    }

    /// The body of a transfer begins to come, as the answer to a request.
    func enter(_ origin: String, _ visit: Visit? = nil) {
        let moment = now()
        state.withLock { state in
            state.running[origin, default: 0] += 1
            state.isThere(origin)
            if let visit { state.answer(visit, of: origin, at: moment) }
        }
        if visit != nil { bell.ring() }
    }

    /// That transfer is over.
    func leave(_ origin: String) {
        let moment = now()
        state.withLock { state in
            let others = (state.running[origin] ?? 1) - 1
            state.running[origin] = others > 0 ? others : nil
            state.serving.note(moment, of: origin, until: moment + Self.servingMemory)
        }
    }

    /// Whether the origin is serving anybody. One that is may refuse for that; one that refuses everybody has another reason (row 24).
    func isBusy(_ origin: String) -> Bool {
        state.withLock { $0.running[origin] != nil }
    }

    /// Whether something comes from the origin, or did lately.
    func isServing(_ origin: String) -> Bool { isServing(origin, despite: nil) }

    /// Whether something comes from the origin, or did so lately that a refusal with this status may be for too much at once.
    func isServing(_ origin: String, despite status: Int?) -> Bool {
        let moment = now()
        let limit = Int64(FailureKind.longestLimit(status: status) / .nanoseconds(1))
        return state.withLock { $0.isServing(origin, since: moment - min(Self.servingMemory, limit)) }
    }

    /// The origin refused credentials that were sent unasked, and wants them by Digest (RFC 7616).
    func challenged(by origin: String) {
        state.withLock { $0.challenging.note((), of: origin) }
    }

    /// How credentials are shown to the origin.
    func authentication(at origin: String) -> Authentication {
        state.withLock { $0.challenging.value(of: origin, at: 0) } != nil ? .onChallenge : .preemptive
    }

    /// The origin served what it had refused when it was asked in another manner.
    func wants(_ manner: Manner, _ origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { $0.manners.note(manner, of: origin, until: until) }
    }

    /// In which manner the origin is asked.
    func manner(of origin: String) -> Manner {
        let moment = now()
        return state.withLock { $0.manners.value(of: origin, at: moment) } ?? Manner()
    }

    /// A new connection brought the same refusal as one that was used before.
    func trustKept(of origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { $0.trusted.note((), of: origin, until: until) }
    }

    /// Whether a refusal on a connection that was used before may be due to that.
    func doubtsKept(of origin: String) -> Bool {
        let moment = now()
        return state.withLock { $0.trusted.value(of: origin, at: moment) } == nil
    }

    /// What says `identity` is no reason for the origin to refuse: it has served that.
    func trustIdentity(of origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { $0.identified.note((), of: origin, until: until) }
    }

    /// Whether the origin may refuse for `identity`. A job that is told so asks without it, and it alone: for ten minutes no other job is told so.
    func doubtsIdentity(of origin: String) -> Bool {
        let moment = now()
        return state.withLock { state in
            guard state.identified.value(of: origin, at: moment) == nil else { return false }
            state.identified.note((), of: origin, until: moment + Self.mannerMemory)
            return true
        }
    }

    /// A plain GET came much faster than a part of the same file.
    func servedPlainlyFaster(_ origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { $0.faster.note((), of: origin, until: until) }
    }

    /// Whether a plain GET was seen to come much faster than a part.
    func isFasterPlainly(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock { $0.faster.value(of: origin, at: moment) } != nil
    }

    /// Whether the origin's last answer took long.
    func lingers(_ origin: String) -> Bool {
        state.withLock { $0.lingering.value(of: origin, at: 0) } != nil
    }

    /// The origin did not answer in time.
    func silent(_ origin: String) {
        let until = now() + Self.silenceMemory
        state.withLock { $0.silent.note((), of: origin, until: until) }
    }

    /// The origin answered, after so long.
    func answered(_ origin: String, after time: Duration = .zero) {
        state.withLock { state in
            if time < .seconds(1) { state.silent.forget(origin) }
            if time >= Self.quickAnswer {
                state.lingering.note((), of: origin)
            } else {
                state.lingering.forget(origin)
            }
        }
    }

    /// Whether the origin was silent lately.
    func isSilent(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock { $0.silent.value(of: origin, at: moment) } != nil
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
    func first(of origin: String, isToldToWait: Bool = false) -> Rung {
        let moment = now()
        return state.withLock { $0.rungs.first(of: origin, isToldToWait: isToldToWait, now: moment) }
    }
}
