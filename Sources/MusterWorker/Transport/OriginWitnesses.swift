import MusterCore
import MusterCurl
import MusterSystem
import Synchronization

/// Files that origins have served, called witnesses. By asking for one again, a job learns whether a refusal is for its file alone, or for too much at once
/// (range contract, row 24; adr/0033).
final class OriginWitnesses: Sendable {
    /// A file that was served, with the request that asks for it again: for its first byte, whatever its content is by
    /// now.
    struct Witness: Sendable {
        /// The request.
        let request: TransferRequest
        /// Whether its URL may work only once, so that a refusal says nothing.
        let mayBeUsedUp: Bool
        /// How its answer looked.
        fileprivate let look: Appearance
        /// Whether it is in another part than the file, although the file's own part has witnesses: nothing comes from that part any more.
        fileprivate(set) var isElsewhere = false
        /// The path of its source.
        fileprivate let path: String
        /// The time from which it may be asked for, in nanoseconds.
        fileprivate let usableFrom: Int64

        /// Whether an answer to the request brings something else than came before.
        func isOther(_ head: ResponseHead) -> Bool { look.isReplaced(in: ResponseFacts(head)) }
    }

    /// What an origin has shown of its refusals with one status.
    private enum Meaning: Sendable {
        /// How many times a file was refused again after a witness had been served.
        case files(turns: Int)
        /// A witness was refused as well.
        case limit
    }

    private struct State {
        /// By origin, part, and kind of path.
        var witnesses = Remembered<[String: [String: Witness]]>()
        var meanings = Remembered<Meaning>()
        /// Origins that have served a witness once more.
        var servingAgain = Remembered<Void>()
        /// How many files of an origin have come with their first request.
        var files = Remembered<Int>()
        /// By origin and path, until when a file takes the turns that others learn from.
        var leading = Remembered<[String: Int64]>()

        /// Ends the turns of a file. Returns whether it took turns.
        mutating func leave(_ source: SourceURL, at moment: Int64) -> Bool {
            guard var files = leading.value(of: source.origin, at: moment),
                files.removeValue(forKey: source.path) != nil
            else { return false }
            leading.note(files, of: source.origin)
            return true
        }
    }

    /// These stand for the status when there was no answer in time, and when the answer was no HTTP.
    static let silence = 0
    static let noHTTP = 1
    /// How often a witness has to be served between two refusals of a file.
    static let turns = 6
    /// The same once files of the origin have taken ``turnsToBelieve``: `fewTurns` while others are served, whose connections may be the ones too many, and
    /// `oneTurn` while none are served.
    static let fewTurns = 2
    static let oneTurn = 1
    /// After this many turns of all files, few turns of each file are enough.
    static let turnsToBelieve = 9
    /// How many files take turns at the same time.
    private static let filesToBelieve = 3
    /// How long a witness is valid, and after which time a newer one replaces it, in nanoseconds.
    private static let memory: Int64 = 600_000_000_000
    private static let freshness: Int64 = 5_000_000_000
    /// How long a file is not asked for again while the one request runs that brings all of it, in nanoseconds.
    private static let rest: Int64 = 2_000_000_000
    /// The most parts of an origin that have witnesses, and the most kinds of paths in such a part that have one.
    private static let mostParts = 8
    /// After this many files, it is worth a request to learn whether their origin serves a file more than once.
    private static let filesToTryAgain = 4

    /// Requests for witnesses that several files wait for.
    let shared = SharedTestimonies()

    private let state = Mutex(State())
    /// Rung when other files may take turns: a file has ended its own, or it was decided what refusals are for.
    private let bell = Bell()
    private let turnTime: Int64
    private let now: @Sendable () -> Int64

    /// Begins without knowledge.
    ///
    /// - Parameters:
    ///   - turnTime: how long a file keeps others from taking turns beside it, counted from its last turn, in nanoseconds.
    ///   - now: returns the nanoseconds of a clock that never jumps.
    init(turnTime: Int64 = 10_000_000_000, now: @escaping @Sendable () -> Int64 = MonotonicClock.now) {
        self.turnTime = turnTime
        self.now = now
    }

    /// Notes that a source was served by this request.
    ///
    /// - Parameters:
    ///   - look: how its answer looks.
    ///   - mayBeUsedUp: whether its URL may work only once.
    ///   - isOver: whether the answer has come completely.
    func served(_ request: TransferRequest, of source: SourceURL, _ look: Appearance, mayBeUsedUp: Bool, isOver: Bool) {
        guard request.url.hasPrefix("http"), request.redirectAllowed == nil else { return }
        let (part, kind, moment) = (Self.part(source), Self.kind(source), now())
        let usableFrom = mayBeUsedUp && !isOver ? moment + Self.rest : moment
        state.withLock { state in
            var witnesses = state.witnesses.value(of: source.origin, at: moment) ?? [:]
            var own = witnesses[part] ?? [:]
            if let known = own[kind] {
                let isBetter = known.mayBeUsedUp && !mayBeUsedUp || known.usableFrom > usableFrom
                guard isBetter || known.usableFrom < usableFrom - Self.freshness else { return }
            } else if own.count >= Self.mostParts {
                own.forgetOldest { $0.usableFrom }
            }
            own[kind] = Witness(
                request: request.forItsFirstByte, mayBeUsedUp: mayBeUsedUp, look: look, path: source.path,
                usableFrom: usableFrom)
            if witnesses[part] == nil, witnesses.count >= Self.mostParts {
                witnesses.forgetOldest { $0.values.map(\.usableFrom).max() ?? 0 }
            }
            witnesses[part] = own
            state.witnesses.note(witnesses, of: source.origin, until: moment + Self.memory)
        }
    }

    /// Counts a file that came with its first request. Returns the witness to ask for once more, to see whether the origin serves a file more than once:
    /// after a few files, or the first one if many other requests wait for answers, and each time after twice as many, until a witness was served.
    func fileCame(_ source: SourceURL, besideOthers: Bool = false) -> Witness? {
        let moment = now()
        let count = state.withLock { state in
            let count = (state.files.value(of: source.origin, at: moment) ?? 0) + 1
            state.files.note(count, of: source.origin)
            return count
        }
        guard besideOthers || count >= Self.filesToTryAgain, count & (count - 1) == 0, !servesAgain(source.origin)
        else { return nil }
        return witnesses(for: source) { _ in true }.first { $0.usableFrom <= moment }
    }

    /// Notes that an origin has served a file once more: none of its URLs works only once.
    func servedAgain(_ origin: String) {
        state.withLock { $0.servingAgain.note((), of: origin) }
    }

    /// Whether the origin has served a file once more.
    func servesAgain(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock { $0.servingAgain.value(of: origin, at: moment) } != nil
    }

    /// The witness for a file's turn of that number, once it may be asked for. The turns go through the witnesses nearest to the file, or through one witness
    /// of each other part. `nil` when there is none. `isServing` tells for the key of a part whether something comes from there.
    func witness(
        for source: SourceURL, turn: Int, isServing: (String) -> Bool, while isWanted: () -> Bool
    ) async -> Witness? {
        while isWanted() {
            let witnesses = witnesses(for: source, isServing)
            guard let next = witnesses.min(by: { $0.usableFrom < $1.usableFrom }) else { return nil }
            let moment = now()
            let usable = witnesses.filter { $0.usableFrom <= moment }
            guard usable.isEmpty else { return usable[turn % usable.count] }
            let rest = min(next.usableFrom - moment, 100_000_000)
            guard (try? await MonotonicClock.sleep(for: .nanoseconds(rest))) != nil else { return nil }
        }
        return nil
    }

    /// The witnesses of the file's own part whose paths share the most with its path, or else one witness of each other part. If nothing comes from the own
    /// part while something comes from other parts, the witnesses of those: the whole own part may be refused for another reason than a limit.
    private func witnesses(for source: SourceURL, _ isServing: (String) -> Bool) -> [Witness] {
        let moment = now()
        let known = state.withLock { $0.witnesses.value(of: source.origin, at: moment) } ?? [:]
        let part = Self.part(source)
        let serving = known.filter { $0.key != part && isServing(Self.key(source.origin, $0.key)) }
        guard let own = known[part], serving.isEmpty || isServing(Self.key(ofPart: source)) else {
            let others = known[part] == nil ? known : serving
            return others.sorted { $0.key < $1.key }.compactMap {
                var witness = $0.value.values.max { $0.usableFrom < $1.usableFrom }
                witness?.isElsewhere = known[part] != nil
                return witness
            }
        }
        let shared = own.values.map { $0.path.commonPrefix(with: source.path) }
        let most = shared.max() ?? 0
        return zip(own.values, shared).filter { $0.1 == most }.map(\.0)
    }

    /// Waits until a file may take turns: as long as too little is known of a status, three files take turns. Files that are refused beside them learn from
    /// them, and need few turns.
    func waitForTurns(of source: SourceURL, status: Int, for control: LeaseControl) async {
        while true {
            let rings = bell.rings
            guard let wait = takeTurns(source, status) else { return }
            guard await control.wait(at: bell, since: rings, limit: .nanoseconds(wait)) else { return }
        }
    }

    /// Takes the turns if that is possible now; otherwise returns the nanoseconds until they are free at the latest.
    private func takeTurns(_ source: SourceURL, _ status: Int) -> Int64? {
        let (key, moment) = (Self.key(source, status), now())
        return state.withLock { state in
            switch state.meanings.value(of: key, at: moment) {
            case .limit, .files(Self.turnsToBelieve...): return nil
            case .files, nil: break
            }
            var leading = (state.leading.value(of: source.origin, at: moment) ?? [:]).filter { $0.value > moment }
            guard leading[source.path] != nil || leading.count < Self.filesToBelieve else {
                return (leading.values.min() ?? moment) - moment
            }
            leading[source.path] = moment + turnTime
            state.leading.note(leading, of: source.origin)
            return nil
        }
    }

    /// Ends the turns of a file.
    func leave(_ source: SourceURL) {
        let moment = now()
        if state.withLock({ $0.leave(source, at: moment) }) { bell.ring() }
    }

    /// How often the witness has to be served before a refusal with this status counts as a refusal of the file; `isBusy` while others are served.
    func turns(of source: SourceURL, status: Int, isBusy: Bool) -> Int {
        let (key, moment) = (Self.key(source, status), now())
        guard case .files(Self.turnsToBelieve...) = state.withLock({ $0.meanings.value(of: key, at: moment) }) else {
            return Self.turns
        }
        return isBusy ? Self.fewTurns : Self.oneTurn
    }

    /// Whether the origin was seen to signal a limit by silence.
    func isSilentAtLimit(_ origin: String) -> Bool { isLimit(Self.silence, of: origin) }

    /// Whether the origin was seen to signal a limit by this status.
    func isLimit(_ status: Int, of origin: String) -> Bool {
        let moment = now()
        guard case .limit = state.withLock({ $0.meanings.value(of: "\(status) \(origin)", at: moment) }) else {
            return false
        }
        return true
    }

    /// Notes what a refusal with this status was for. A limit that was seen is withdrawn if a part of the origin serves nothing to any job, while other parts
    /// do serve (`isPartClosed`).
    func told(isLimit: Bool, _ source: SourceURL, status: Int, isPartClosed: Bool = false) {
        let (key, moment) = (Self.key(source, status), now())
        state.withLock { state in
            _ = state.leave(source, at: moment)
            switch (state.meanings.value(of: key, at: moment), isLimit) {
            case (_, true): state.meanings.note(.limit, of: key)
            case (.limit, false) where isPartClosed: state.meanings.note(.files(turns: Self.turnsToBelieve), of: key)
            case (_, false): break
            }
        }
        bell.ring()
    }

    /// Notes that a file was refused again with this status, after a witness had been served.
    func tookTurn(_ source: SourceURL, status: Int) {
        let (key, moment) = (Self.key(source, status), now())
        let turns: Int? = state.withLock { state in
            let meaning = state.meanings.value(of: key, at: moment)
            if case .limit = meaning { return nil }
            let turns = if case .files(let turns) = meaning { turns + 1 } else { 1 }
            state.meanings.note(.files(turns: turns), of: key)
            return turns
        }
        if turns == Self.turnsToBelieve { bell.ring() }
    }

    /// Forgets the turns of a file that was refused with this status and is served now: they say nothing, and the turns
    /// of other files say less.
    func forgetTurns(_ source: SourceURL, status: Int) {
        let (key, moment) = (Self.key(source, status), now())
        state.withLock { state in
            if case .files = state.meanings.value(of: key, at: moment) { state.meanings.forget(key) }
        }
    }

    private static func key(_ source: SourceURL, _ status: Int) -> String { "\(status) \(source.origin)" }

    /// The key of the part of an origin that a file is in.
    static func key(ofPart source: SourceURL) -> String { key(source.origin, part(source)) }

    private static func key(_ origin: String, _ part: String) -> String { "\(origin) \(part)" }

    /// The part of an origin that a limit may be set for: files of one extension below one first directory.
    private static func part(_ source: SourceURL) -> String {
        let segments = source.path.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: true)
        let directory = segments.count > 1 ? segments[0] : ""
        let name = segments.last ?? ""
        let ending = name.lastIndex(of: ".").map { name[$0...].lowercased() } ?? ""
        return "\(directory)/*\(ending)"
    }

    /// The form that the paths of numbered files have in common.
    private static func kind(_ source: SourceURL) -> String {
        source.path.prefix { $0 != "?" }.filter { !$0.isNumber }
    }
}

extension Dictionary {
    /// Forgets the value with the earliest moment.
    fileprivate mutating func forgetOldest(_ moment: (Value) -> Int64) {
        guard let oldest = self.min(by: { moment($0.value) < moment($1.value) }) else { return }
        self[oldest.key] = nil
    }
}

extension String {
    /// How many bytes two texts share at their beginning.
    fileprivate func commonPrefix(with other: String) -> Int {
        zip(utf8, other.utf8).prefix { $0 == $1 }.count
    }
}

extension TransferRequest {
    /// The same request for one byte, without a condition on the content.
    fileprivate var forItsFirstByte: TransferRequest {
        var request = self
        if range != nil { request.range = RangeSpec(first: 0, last: 0) }
        for name in ["If-Range", "If-None-Match", "If-Modified-Since"] { request.headers.remove(name) }
        request.budgets = []
        request.keptFirstByteTimeout = nil
        request.firstByteTimeout = min(firstByteTimeout, .seconds(10))
        // An answer whose body never begins, or never ends, says nothing.
        request.lowSpeed = .bringing(1, within: request.firstByteTimeout)
        return request
    }
}
