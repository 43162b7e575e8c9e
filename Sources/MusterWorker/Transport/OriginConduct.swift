import MusterCore
import MusterCurl
import MusterSystem
import Synchronization

/// The manner in which an origin is asked, besides the rung of the ladder. Some origins refuse what they serve to curl, which uses each connection once and
/// does not mention codings.
struct Manner: Sendable, Hashable {
    /// Whether each request gets a connection of its own (range contract, rows 22b and 28).
    var isAlone = false
    /// Whether requests ask for the content without a coding (row 13).
    var saysIdentity = true
}

/// What all jobs of a worker know of the origins, for as long as the worker runs: how many bodies come from each origin, which rungs of the ladder it has
/// contradicted, and whether it wants credentials by Digest.
final class OriginConduct: Sendable {
    /// A request that is made at an origin.
    struct Visit: Sendable {
        /// The number of the request, among all requests of the worker.
        fileprivate let number: Int
        /// Whether other requests were under way when it was made.
        fileprivate let isShared: Bool
        /// When it was made.
        let begin: Int64
    }

    /// The requests that are under way at an origin.
    struct Asking {
        var count = 0
        /// The requests of which nothing has come yet, by number, with the time when each was made.
        var unanswered: [Int: Int64] = [:]
        /// The number of the last request.
        var last = 0
    }

    struct State {
        var running: [String: Int] = [:]
        var visits = 0
        var asking: [String: Asking] = [:]
        var rungs = OriginRungs()
        /// When something last came from an origin.
        var serving = Remembered<Int64>()
        /// Origins that have answered lately that a file is there, or is unchanged.
        var answering = Remembered<Void>()
        /// Origins that have refused a request made beside another one, and have not shown a file since.
        var refusing = Remembered<Void>()
        /// Origins that were seen to serve overlapping requests.
        var together = Remembered<Void>()
        /// How many files in a row were refused at origins that serve nothing, each asked for alone, and the last one of
        /// them.
        var refusedAlone = Remembered<(count: Int, last: String)>()
        /// Origins that want credentials by Digest.
        var challenging = Remembered<Void>()
        /// How origins want to be asked.
        var manners = Remembered<Manner>()
        /// Origins whose refusals on connections that were used before are believed like any others.
        var trusted = Remembered<Void>()
        /// Origins that have served a request which names `identity`, or were asked without it already.
        var identified = Remembered<Void>()
        /// Origins at which a plain GET was seen to be much faster than a part of the same file.
        var faster = Remembered<Void>()
        /// Origins whose last answer took long.
        var lingering = Remembered<Void>()
        /// Origins that were seen to send a file from the position that they are told.
        var positioned = Remembered<Void>()
        /// What origins have served lately.
        var served = Remembered<ServedAtOnce>()
        /// Of the requests that origins have answered, the last one that was made: when it was made, and how long its answer took.
        var answered = Remembered<(begin: Int64, time: Int64)>()
        var repeating = Remembered<Void>()
        /// Origins that were silent lately, whatever they were asked for.
        var silent = Remembered<Void>()

        func isServing(_ origin: String, since earliest: Int64) -> Bool {
            running[origin] != nil || serving.value(of: origin, at: earliest).map { $0 > earliest } ?? false
        }

        func refusesAlone(_ origin: String, at moment: Int64) -> Bool {
            refusedAlone.value(of: origin, at: moment)?.count ?? 0 >= OriginConduct.aloneToBelieve
        }

        /// Whether many requests may be made at once.
        func isOpen(_ origin: String, at moment: Int64) -> Bool {
            if refusesAlone(origin, at: moment) { return true }
            guard refusing.value(of: origin, at: moment) == nil else { return false }
            return isServing(origin, since: moment - OriginConduct.servingMemory)
                || answering.value(of: origin, at: moment) != nil
        }

        /// Notes that a file is there.
        mutating func isThere(_ origin: String) {
            refusing.forget(origin)
            refusedAlone.forget(origin)
        }

        /// Notes that a request is answered with a body. If it was under way beside another one for so long that both have met at the origin, the origin
        /// serves overlapping requests.
        mutating func answer(_ visit: Visit, of origin: String, at moment: Int64) {
            if answered.value(of: origin, at: moment).map({ $0.begin <= visit.begin }) ?? true {
                answered.note((visit.begin, moment - visit.begin), of: origin)
            }
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
                return Visit(number: number, isShared: asking.count > 0, begin: moment)
            }(&asking[origin, default: Asking()])
        }
    }

    /// How long after its last answer an origin counts as serving, in nanoseconds: limits are set for about that long. A refusal with a status that tells of
    /// shorter limits shortens this.
    static let servingMemory: Int64 = 8_000_000_000
    /// How long a silence is remembered, in nanoseconds.
    private static let silenceMemory: Int64 = 300_000_000_000
    /// An origin that answers within this time is taken never to be silent for `FetchJob.keptPatience`.
    private static let quickAnswer: Duration = .seconds(5)
    /// How long the manner of asking an origin is remembered, in nanoseconds: as long as its rungs.
    static let mannerMemory = OriginRungs.closedNanoseconds

    /// How long to wait for answers that other jobs have asked for.
    private static let answerTime: Duration = .milliseconds(250)
    /// Two requests that have both waited this long for their answers have met at the origin, in nanoseconds: the network delays none for as long.
    static let togetherTime: Int64 = 250_000_000
    /// After this many files that were refused alone, other files are taken to be refused for themselves, too.
    static let aloneToBelieve = 3

    let state = Mutex(State())
    /// Rung when a request is served, and when one is over.
    let bell = Bell()
    let now: @Sendable () -> Int64

    /// Begins without knowledge. `now` returns the nanoseconds of a clock that never jumps.
    init(now: @escaping @Sendable () -> Int64 = MonotonicClock.now) {
        self.now = now
    }

    /// Notes that a request is about to be made, whatever else is asked of the origin.
    func ask(_ origin: String) -> Visit {
        let moment = now()
        return state.withLock { $0.ask(origin, at: moment) }
    }

    /// Notes that the request for the file at `url` is over. Returns whether another one was made at the same time.
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

    /// Waits until the present requests to the origin are answered, for a moment at most. Returns whether they are, and nothing comes from the origin, nor
    /// did lately: then a refusal is not due to a limit, as far as this worker sees.
    func servesNobody(_ origin: String, for control: LeaseControl) async -> Bool {
        let last = state.withLock(\.visits)
        let deadline = SteadyClock.now + Self.answerTime
        while true {
            let rings = bell.rings
            let waits = state.withLock { $0.asking[origin]?.unanswered.keys.contains { $0 <= last } ?? false }
            guard waits else { return !isServing(origin) }
            let rest = deadline - SteadyClock.now
            guard rest > .zero, await control.wait(at: bell, since: rings, limit: rest) else { return false }
        }
    }

    /// Whether a refusal of an origin that serves nothing is due to the file: it was asked for alone, or enough other
    /// files were.
    func isRefusedForItself(_ origin: String, isShared: Bool) -> Bool {
        let moment = now()
        return !isShared || state.withLock { $0.refusesAlone(origin, at: moment) }
    }

    /// Whether no job asks anything of the origin.
    func isIdle(_ origin: String) -> Bool {
        state.withLock { $0.asking[origin] == nil }
    }

    /// Notes that the body of a transfer begins to come, as the answer to a request.
    func enter(_ origin: String, _ visit: Visit? = nil) {
        let moment = now()
        state.withLock { state in
            state.running[origin, default: 0] += 1
            state.isThere(origin)
            if let visit { state.answer(visit, of: origin, at: moment) }
        }
        if visit != nil { bell.ring() }
    }

    /// Notes that the transfer is over.
    func leave(_ origin: String) {
        let moment = now()
        state.withLock { state in
            let others = (state.running[origin] ?? 1) - 1
            state.running[origin] = others > 0 ? others : nil
            state.serving.note(moment, of: origin, until: moment + Self.servingMemory)
        }
    }

    /// Whether the origin is serving anything. If it is, it may refuse for that reason; if it refuses everything, it has another reason (row 24).
    func isBusy(_ origin: String) -> Bool {
        state.withLock { $0.running[origin] != nil }
    }

    /// Whether something comes from the origin, or did lately.
    func isServing(_ origin: String) -> Bool { isServing(origin, despite: nil) }

    /// Whether something comes from the origin, or came so lately that a refusal with this status may mean too much at once.
    func isServing(_ origin: String, despite status: Int?) -> Bool {
        let moment = now()
        let limit = Int64(FailureKind.longestLimit(status: status) / .nanoseconds(1))
        return state.withLock { $0.isServing(origin, since: moment - min(Self.servingMemory, limit)) }
    }

    /// Notes that the origin refused credentials that were sent unasked, and wants them by Digest (RFC 7616).
    func challenged(by origin: String) {
        state.withLock { $0.challenging.note((), of: origin) }
    }

    /// How credentials are sent to the origin.
    func authentication(at origin: String) -> Authentication {
        state.withLock { $0.challenging.value(of: origin, at: 0) } != nil ? .onChallenge : .preemptive
    }

    /// Notes the manner in which the origin served what it had refused in another one.
    func wants(_ manner: Manner, _ origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { $0.manners.note(manner, of: origin, until: until) }
    }

    /// The manner in which the origin is asked.
    func manner(of origin: String) -> Manner {
        let moment = now()
        return state.withLock { $0.manners.value(of: origin, at: moment) } ?? Manner()
    }

    /// Notes that a new connection brought the same refusal as one that was used before.
    func trustKept(of origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { $0.trusted.note((), of: origin, until: until) }
    }

    /// Whether a refusal on a connection that was used before may be due to the reuse.
    func doubtsKept(of origin: String) -> Bool {
        let moment = now()
        return state.withLock { $0.trusted.value(of: origin, at: moment) } == nil
    }

    /// Notes that the origin has served a request which names `identity`: that is no reason for it to refuse.
    func trustIdentity(of origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { $0.identified.note((), of: origin, until: until) }
    }

    /// Whether the origin may refuse because of `identity`. A job that is told so asks without it. Only that job does: for ten minutes no other job is told
    /// so.
    func doubtsIdentity(of origin: String) -> Bool {
        let moment = now()
        return state.withLock { state in
            guard state.identified.value(of: origin, at: moment) == nil else { return false }
            state.identified.note((), of: origin, until: moment + Self.mannerMemory)
            return true
        }
    }

    /// Notes that a plain GET was much faster than a part of the same file.
    func servedPlainlyFaster(_ origin: String) {
        let until = now() + Self.mannerMemory
        state.withLock { $0.faster.note((), of: origin, until: until) }
    }

    /// Whether a plain GET was seen to be much faster than a part.
    func isFasterPlainly(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock { $0.faster.value(of: origin, at: moment) } != nil
    }

    /// Whether the origin's last answer took long.
    func lingers(_ origin: String) -> Bool {
        state.withLock { $0.lingering.value(of: origin, at: 0) } != nil
    }

    /// Notes that the origin did not answer in time.
    func silent(_ origin: String) {
        let until = now() + Self.silenceMemory
        state.withLock { $0.silent.note((), of: origin, until: until) }
    }

    /// Notes that the origin answered, after `time`.
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

    /// Notes that the path of a source has contradicted a rung.
    func contradicted(_ rung: Rung, by source: SourceURL) {
        let moment = now()
        state.withLock { $0.rungs.contradicted(rung, by: source.path, of: source.origin, now: moment) }
    }

    /// Notes that the origin has served a path on a rung.
    func served(_ rung: Rung, by origin: String) {
        state.withLock { $0.rungs.served(rung, by: origin) }
    }

    /// The rung on which a source of the origin begins of which nothing is known.
    func first(of origin: String, isToldToWait: Bool = false) -> Rung {
        let moment = now()
        return state.withLock { $0.rungs.first(of: origin, isToldToWait: isToldToWait, now: moment) }
    }
}
