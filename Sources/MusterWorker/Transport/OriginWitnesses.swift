import MusterCore
import MusterCurl
import Synchronization

/// Files that origins have served: by asking for them again a job tells whether a refusal is for its file alone or for too much at once (range
/// contract, row 24; adr/0033).
final class OriginWitnesses: Sendable {
    /// A file that was served, as it is asked for again: for its first byte, and whatever its content is by now.
    struct Witness: Sendable {
        /// The request.
        let request: TransferRequest
        /// Whether its URL may work once, so that a refusal says nothing.
        let mayBeUsedUp: Bool
        /// From when on it may be asked for, in nanoseconds.
        fileprivate let usableFrom: Int64
    }

    /// What an origin has shown of its refusals with one status.
    private enum Meaning: Sendable {
        /// So many files were refused each for itself.
        case files(Int)
        /// A file that it had served was refused as well.
        case limit
    }

    private struct State {
        /// By origin and part.
        var witnesses = Remembered<[String: Witness]>()
        var meanings = Remembered<Meaning>()
        /// Origins that have served a witness once more.
        var servingAgain = Remembered<Void>()
        /// How many jobs have waited at an origin for a witness.
        var waits = Remembered<Int>()
    }

    /// How often a witness has to be served between two refusals of a file.
    static let turns = 6
    /// The same where other files were refused for themselves already.
    static let fewTurns = 2
    /// So many files make few turns enough.
    private static let filesToBelieve = 3
    /// How long a witness is good for, and when it is replaced by a newer one, in nanoseconds.
    private static let memory: Int64 = 600_000_000_000
    private static let freshness: Int64 = 5_000_000_000
    /// How long a file is left alone of which one request brings all, as long as that runs, in nanoseconds.
    private static let rest: Int64 = 2_000_000_000
    /// How long a job waits for a first witness, and how many jobs of an origin do.
    private static let firstWait: Duration = .milliseconds(250)
    private static let mostWaits = 16
    /// How many parts of an origin have a witness.
    private static let mostParts = 8

    private let state = Mutex(State())
    private let now: @Sendable () -> Int64

    /// Nothing is known yet. `now` tells nanoseconds of a clock that never jumps.
    init(now: @escaping @Sendable () -> Int64 = MonotonicClock.now) {
        self.now = now
    }

    /// A source was served by this request.
    ///
    /// - Parameters:
    ///   - mayBeUsedUp: whether its URL may work once.
    ///   - isOver: whether all that is to come has come.
    func served(_ request: TransferRequest, of source: SourceURL, mayBeUsedUp: Bool, isOver: Bool) {
        guard request.url.hasPrefix("http"), request.redirectAllowed == nil else { return }
        let (part, moment) = (Self.part(source), now())
        let usableFrom = mayBeUsedUp && !isOver ? moment + Self.rest : moment
        state.withLock { state in
            var witnesses = state.witnesses.value(of: source.origin, at: moment) ?? [:]
            if let known = witnesses[part] {
                let isBetter = known.mayBeUsedUp && !mayBeUsedUp || known.usableFrom > usableFrom
                guard isBetter || known.usableFrom < usableFrom - Self.freshness else { return }
            } else if witnesses.count >= Self.mostParts,
                let oldest = witnesses.min(by: { $0.value.usableFrom < $1.value.usableFrom })
            {
                witnesses[oldest.key] = nil
            }
            witnesses[part] = Witness(
                request: request.forItsFirstByte, mayBeUsedUp: mayBeUsedUp, usableFrom: usableFrom)
            state.witnesses.note(witnesses, of: source.origin, until: moment + Self.memory)
        }
    }

    /// An origin has served a witness once more: no URL of its is used up.
    func servedAgain(_ origin: String) {
        let moment = now()
        state.withLock { $0.servingAgain.note((), of: origin, until: moment + Self.memory) }
    }

    /// Whether it did so lately.
    func servesAgain(_ origin: String) -> Bool {
        let moment = now()
        return state.withLock { $0.servingAgain.value(of: origin, at: moment) } != nil
    }

    /// The witness to ask for a file in its turn of that number, once it may be asked for: that of its own part, or each of the others one after the other.
    /// `nil` when there is none. At an origin of which nothing is known, one is waited for: other requests may have been made at the same time.
    func witness(
        for source: SourceURL, turn: Int, while isWanted: () -> Bool = { true }
    ) async -> Witness? {
        if witnesses(for: source).isEmpty, mayWait(source) { try? await Task.sleep(for: Self.firstWait) }
        while isWanted() {
            let witnesses = witnesses(for: source)
            guard let next = witnesses.min(by: { $0.usableFrom < $1.usableFrom }) else { return nil }
            let moment = now()
            let usable = witnesses.filter { $0.usableFrom <= moment }
            guard usable.isEmpty else { return usable[turn % usable.count] }
            let rest = min(next.usableFrom - moment, 100_000_000)
            guard (try? await Task.sleep(for: .nanoseconds(rest))) != nil else { return nil }
        }
        return nil
    }

    /// The one of its own part, or all others.
    private func witnesses(for source: SourceURL) -> [Witness] {
        let moment = now()
        let known = state.withLock { $0.witnesses.value(of: source.origin, at: moment) } ?? [:]
        return known[Self.part(source)].map { [$0] } ?? known.sorted { $0.key < $1.key }.map(\.value)
    }

    private func mayWait(_ source: SourceURL) -> Bool {
        let moment = now()
        return state.withLock { state in
            let count = state.waits.value(of: source.origin, at: moment) ?? 0
            guard count < Self.mostWaits else { return false }
            state.waits.note(count + 1, of: source.origin, until: moment + Self.memory)
            return true
        }
    }

    /// How often the witness has to be served before a refusal with this status counts as one of the file.
    func turns(of source: SourceURL, status: Int) -> Int {
        let (key, moment) = (Self.key(source, status), now())
        guard case .files(Self.filesToBelieve...) = state.withLock({ $0.meanings.value(of: key, at: moment) }) else {
            return Self.turns
        }
        return Self.fewTurns
    }

    /// It has been told what a refusal with this status was for.
    func told(isLimit: Bool, _ source: SourceURL, status: Int) {
        let (key, moment) = (Self.key(source, status), now())
        state.withLock { state in
            switch (state.meanings.value(of: key, at: moment), isLimit) {
            case (_, true): state.meanings.note(.limit, of: key)
            case (.limit, false): break
            case (.files(let count), false): state.meanings.note(.files(count + 1), of: key)
            case (nil, false): state.meanings.note(.files(1), of: key)
            }
        }
    }

    private static func key(_ source: SourceURL, _ status: Int) -> String { "\(status) \(source.origin)" }

    /// The part of an origin that a limit may be set for: files of one extension below one first directory.
    private static func part(_ source: SourceURL) -> String {
        let segments = source.path.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: true)
        let directory = segments.count > 1 ? segments[0] : ""
        let name = segments.last ?? ""
        let ending = name.lastIndex(of: ".").map { name[$0...].lowercased() } ?? ""
        return "\(directory)/*\(ending)"
    }
}

extension TransferRequest {
    /// The same request for one byte, without a condition on the content.
    fileprivate var forItsFirstByte: TransferRequest {
        var request = self
        if range != nil { request.range = RangeSpec(first: 0, last: 0) }
        for name in ["If-Range", "If-None-Match", "If-Modified-Since"] { request.headers.remove(name) }
        request.budgets = []
        request.lowSpeed = nil
        request.keptFirstByteTimeout = nil
        request.firstByteTimeout = min(firstByteTimeout, .seconds(10))
        return request
    }
}
