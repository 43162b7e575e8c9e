/// Where one lease stands on the ladder, and what was tried on the way down (`docs/range-contract.md`, "The ladder").
///
/// Pure: each contradiction yields one move. The rung of a source is stored in the database, and contradictions of an origin as a whole in
/// `OriginRungs`.
public struct Ladder: Hashable, Sendable {
    /// What contradicts the way in which the source is asked.
    public enum Contradiction: Hashable, Sendable {
        /// An answer that can't be right, whatever it carries. Rungs above `to` need not be tried.
        case answer(String, to: Rung)
        /// The source refused, or nothing came. The Range may be the cause, or something else.
        case refusal(FailureKind, String, retryAfter: Int64?)
        /// A part came, and its body ended early.
        case ending(FailureKind, String, EarlyEnd)
    }

    /// Where the body of a part ended early.
    public struct EarlyEnd: Hashable, Sendable {
        /// The first byte of the part, from the beginning of the file.
        public var first: Int64
        /// How many bytes of it came.
        public var count: Int64
        /// The size of the file, if it is known.
        public var size: Int64?

        /// An early end.
        public init(first: Int64, count: Int64, size: Int64? = nil) {
            self.first = first
            self.count = count
            self.size = size
        }

        /// How many bytes of a plain GET have to come before it counts as better than such parts. It has to pass the offset where the part
        /// ended, since it may break off there too, and bring many times as many bytes from the start of the part on. A connection on which
        /// every body breaks off is thus no reason to give up the bytes that came.
        fileprivate var bytesToSee: Int64 { first + max(Ladder.leastToSee, count * Ladder.timesToSee) }
        /// Whether a few more such parts bring the rest of the file. A look then costs more than it is worth, unless each part ends in silence.
        fileprivate var isNearlyThere: Bool { size.map { $0 - first <= (count * Ladder.timesToSee) } ?? false }

        /// Whether a repeated request for the part brought hardly more bytes than this one.
        fileprivate func isLike(_ next: EarlyEnd) -> Bool { next.count <= max(Ladder.leastToSee, count * 2) }
    }

    /// Everything else that a move depends on.
    public struct Situation: Hashable, Sendable {
        /// Whether the request had a Range.
        public var hasRange: Bool
        /// Whether nothing of the content version is stored or known anywhere, so that the lease may start the version over on its own.
        public var isUntouched: Bool
        /// Whether the version has accepted a 206: then a refusal does not mean that ranges don't work.
        public var hasServedRange: Bool
        /// Whether other transfers run at the origin, which may be the reason for its refusal (row 24).
        public var isShared: Bool
        /// Whether the request was made by HTTP/2.
        public var isHTTP2: Bool
        /// Whether the range was all of the file, so that the rung below would ask for the same.
        public var asksForAll: Bool
        /// Whether silence may be caused by the Range alone: no other source is left untried, and the origin was not silent lately to other requests.
        public var mayBeSilent: Bool
        /// The failures after which the source may be asked plainly; `nil` for only those on which the ladder always moves.
        public var looks: Look?

        /// A situation.
        public init(
            hasRange: Bool, isUntouched: Bool, hasServedRange: Bool, isShared: Bool, isHTTP2: Bool = false,
            asksForAll: Bool = false, mayBeSilent: Bool = false, looks: Look? = nil
        ) {
            self.hasRange = hasRange
            self.isUntouched = isUntouched
            self.hasServedRange = hasServedRange
            self.isShared = isShared
            self.isHTTP2 = isHTTP2
            self.asksForAll = asksForAll
            self.mayBeSilent = mayBeSilent
            self.looks = looks
        }
    }

    /// The next step.
    public enum Move: Hashable, Sendable {
        /// Ask at once, on the rung and with the HTTP version that the ladder has now.
        case ask
        /// Look whether a plain GET is served, and report it by `looked()`: the bytes of the version would be given up for it.
        case look
        /// Bytes of the version are stored, or other leases may fetch some: the coordinator starts the version over on a lower rung.
        case startOver(String, on: Rung)
        /// No rung is left, or the failure has nothing to do with the way of asking.
        case fail(FailureKind, String, retryAfter: Int64?)
    }

    /// The rung on which the source is asked now.
    public private(set) var rung: Rung
    /// Whether it is asked in HTTP/1.1, because HTTP/2 was contradicted on the last rung.
    public private(set) var isHTTP1 = false
    /// Whether the request of a contradicted answer is being repeated.
    private var repeats = false
    /// Whether a plain GET was seen to be served.
    public private(set) var isServedPlainly = false
    /// The failure that a look was made for.
    private var refused: Contradiction?
    /// How many bytes of a plain GET have to come before it counts as served.
    public var bytesToSee: Int64 {
        guard case .ending(_, _, let end) = refused else { return 1 }
        return end.bytesToSee
    }
    fileprivate static let leastToSee: Int64 = 64 << 10
    private static let timesToSee: Int64 = 16
    /// A part that ended after more bytes than this advances its file, and a look would cost more than it is worth.
    public static let mostToDoubt: Int64 = 4 << 20
    /// The requests that were tried, and their outcomes.
    private var tried: [Trial] = []

    private struct Trial: Hashable, Sendable {
        let request: String
        let outcome: String
    }

    /// A ladder that begins on a rung.
    public init(from rung: Rung = .chunks) {
        self.rung = rung
    }

    /// Moves after a contradiction.
    public mutating func move(after contradiction: Contradiction, in situation: Situation) -> Move {
        switch contradiction {
        case .answer(let detail, let lowest):
            note(detail, situation)
            guard situation.isUntouched else {
                // One answer is no reason to give up a version that has bytes: one node of the origin may be at fault.
                if !repeats {
                    repeats = true
                    return .ask
                }
                guard let next = rung.next else { return .fail(.badRange, summary, retryAfter: nil) }
                return .startOver(summary, on: next)
            }
            return descend(to: lowest, situation) ? .ask : .fail(.badRange, summary, retryAfter: nil)
        case .refusal(let kind, let detail, let retryAfter):
            note(detail, situation)
            // The Range alone may cause a 400, which the next rung shows quickly while no byte has come; a 403 counts as a limit first (row 22a).
            let mayBeLimit =
                situation.isShared && kind.limitSignal(status: kind.ownStatus) != .none
                && !(situation.isUntouched && kind == .httpStatus(400))
            let isSilence = kind == .timeout && situation.mayBeSilent && situation.isUntouched
            // If the version has bytes, a source that asked to wait has been waited for by the time of such a look.
            let mayPass =
                isSilence
                || situation.looks == .failed && kind.mayNotBeForPlain
                    && (retryAfter == nil || !situation.isUntouched)
            if mayBeLimit {
                return .fail(kind, summary, retryAfter: retryAfter)
            } else if situation.isUntouched, !situation.hasServedRange {
                guard kind.mayBeForRange || mayPass, situation.hasRange || situation.isHTTP2,
                    descend(to: mayPass || situation.asksForAll ? .whole : .stream, situation)
                else { return .fail(kind, summary, retryAfter: retryAfter) }
                return .ask
            } else if situation.hasRange,
                // For a file that was there a moment ago, "not found" may apply to range requests alone.
                mayPass
                    || situation.looks != nil && (kind.mayBeForRange || kind == .notFound) && kind.rule == .nextSource
            {
                // The range was requested again in between, so the trouble is not transient.
                if isServedPlainly { return .startOver(summary, on: .whole) }
                refused = contradiction
                return .look
            }
            return .fail(kind, summary, retryAfter: retryAfter)
        case .ending(let kind, let detail, let end):
            note(detail, situation)
            let mayBeLimit = end.count == 0 && situation.isShared && kind.limitSignal(status: nil) != .none
            // The source is about to be given up, and its bodies may break off in HTTP/2 alone (row 23).
            if situation.isHTTP2, !isHTTP1, !mayBeLimit, kind == .network, situation.looks == .failed {
                isHTTP1 = true
                return .ask
            }
            guard situation.hasRange, !mayBeLimit, kind.mayNotBeForPlain, end.count <= Self.mostToDoubt,
                situation.looks == .failed || situation.looks == .ended && (kind != .network || !end.isNearlyThere)
            else { return .fail(kind, summary, retryAfter: nil) }
            if isServedPlainly {
                if case .ending(_, _, let before) = refused, !before.isLike(end) {
                    return .fail(kind, summary, retryAfter: nil)
                }
                return .startOver(summary, on: .whole)
            }
            refused = contradiction
            return .look
        }
    }

    /// Moves after a look. If a plain GET is served, the range is asked for once more, and a second refusal gives up the bytes of the
    /// version. If it is refused, for the given reason, the failure that caused the look stands.
    public mutating func looked(refused reason: String?) -> Move {
        guard let reason else {
            isServedPlainly = true
            return .ask
        }
        tried.append(Trial(request: Rung.whole.request, outcome: reason))
        switch refused {
        case .refusal(let kind, _, let retryAfter): return .fail(kind, summary, retryAfter: retryAfter)
        case .ending(let kind, _, _): return .fail(kind, summary, retryAfter: nil)
        case .answer, nil: return .fail(.badRange, summary, retryAfter: nil)
        }
    }

    /// Moves to the last rung within a lease: an answer that was stated to be the whole file may have been a part.
    public mutating func leaveForWhole(_ detail: String) {
        tried.append(Trial(request: rung.request, outcome: detail))
        rung = .whole
    }

    private mutating func descend(to lowest: Rung, _ situation: Situation) -> Bool {
        // A request without Range counts as the last rung's, whichever rung it was made on.
        if situation.hasRange, let next = rung.next {
            rung = max(next, lowest)
            return true
        }
        rung = .whole
        guard situation.isHTTP2, !isHTTP1 else { return false }
        isHTTP1 = true
        return true
    }

    private mutating func note(_ detail: String, _ situation: Situation) {
        let request = isHTTP1 ? "in HTTP/1.1" : situation.hasRange ? rung.request : Rung.whole.request
        let trial = Trial(request: request, outcome: detail)
        if tried.last != trial { tried.append(trial) }
    }

    /// What was tried, in words. A single trial gives its outcome alone; trials in a row with the same outcome are merged. Both kinds of
    /// range requests count as the same there.
    private var summary: String {
        guard tried.count > 1 else { return tried.first?.outcome ?? "" }
        var parts: [(requests: [String], outcome: String)] = []
        for trial in tried {
            guard let last = parts.last, last.outcome == trial.outcome else {
                parts.append(([trial.request], trial.outcome))
                continue
            }
            if last.requests == [Rung.chunks.request], trial.request == Rung.stream.request { continue }
            let request = trial.request == Rung.whole.request ? "without one" : trial.request
            parts[parts.count - 1].requests.append(request)
        }
        return parts.map { "\($0.requests.joined(separator: " and ")): \($0.outcome)" }.joined(separator: "; ")
    }
}

extension Ladder.Contradiction {
    /// Whether the Range that asked for the rest of a plain GET may be the cause: a request without it shows that at once. A source that
    /// asks to wait is waited for.
    public var mayBeForRest: Bool {
        switch self {
        case .answer: true
        case .refusal(let kind, _, let retryAfter):
            kind.mayNotBeForPlain && kind != .httpStatus(429) && retryAfter == nil
        case .ending(let kind, _, let end): kind.mayNotBeForPlain && end.count < Ladder.leastToSee
        }
    }
}

extension FailureKind {
    /// Whether If-Range alone may cause a refusal of this kind (row 22a): one request without it shows that.
    var mayBeForCondition: Bool {
        switch self {
        case .httpStatus(let status): status < 500 ? ![408, 425, 429].contains(status) : mayBeForRange
        case .notFound: true
        default: mayBeForRange
        }
    }

    /// Whether Range or If-Range alone may cause a refusal of this kind (row 22a).
    public var mayBeForRange: Bool {
        switch self {
        case .httpStatus(let status):
            // Statuses that say something about the file, or ask the client to wait, are believed.
            (400..<500).contains(status) && ![404, 408, 410, 425, 429, 451].contains(status)
                // A redirect that is left at this point led nowhere, or in a loop.
                || (300..<400).contains(status) || [500, 501, 505].contains(status)
        // Some origins serve whole files without credentials, but parts only with them.
        case .network, .authentication: true
        case .tls, .dns, .proxy, .timeout, .tooSlow, .badRange, .changed, .digestMismatch, .sizeMismatch,
            .refusedAddress,
            .notFound, .storageFull, .noSpace, .noPermission, .storage, .poison, .deadline, .unreadable:
            false
        }
    }

    /// Whether a plain GET may escape a failure that came repeatedly. Only failures that concern the file or the route to it are believed.
    var mayNotBeForPlain: Bool {
        switch self {
        case .httpStatus(let status): mayBeForRange || Self.isTransient(status: status)
        case .timeout, .tooSlow, .notFound: true
        default: mayBeForRange
        }
    }

    /// The status that the kind contains.
    fileprivate var ownStatus: Int? {
        if case .httpStatus(let status) = self { status } else { nil }
    }
}
