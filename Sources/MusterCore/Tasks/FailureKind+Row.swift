extension FailureKind {
    /// What happens to a chunk after a failure of this kind.
    public enum Rule: String, Sendable, Hashable, CaseIterable {
        /// Try again after a backoff, rotating through the sources.
        case retry
        /// No other source helps, but time may: try again after a backoff, behind all other work of the group.
        case setBack
        /// This source will not do; take the next one at once, or fail the task if it was the last.
        case nextSource
        /// No source can help: the task fails.
        case giveUp
        /// The representation changed: drop what there is and start over with the next content version.
        case startOver
        /// The worker's storage is at fault: the chunk goes back untouched.
        case returnChunk
    }

    /// Whether an answer may mean that there were too many connections at once (range contract, row 24).
    public enum LimitSignal: String, Sendable, Hashable, CaseIterable {
        /// It has nothing to do with that.
        case none
        /// Some origins limit in this way; it counts only if others of the fleet are at work on the same origin.
        case possible
        /// It says so, or was seen to be one (adr/0033).
        case certain
        /// It was seen to be none (adr/0033).
        case refuted
        /// The origin serves the worker nothing: it counts only if it serves other workers.
        case unserved
    }

    /// The answers that something is said of.
    private enum Answers {
        /// None.
        case none
        /// Every one, and that there was none.
        case all
        /// Those with this status alone.
        case status(Int)

        func includes(_ status: Int?) -> Bool {
            switch self {
            case .none: false
            case .all: true
            case .status(let wanted): status == wanted
            }
        }
    }

    /// All that is done about a kind.
    private struct Row {
        var rule: Rule
        /// What `limiting` answers say about the origin's limits (row 24).
        var signal = LimitSignal.none
        var limiting = Answers.none
        /// Answers which say that a URL that worked before may have expired (row 21). A proxy's 407 says nothing about the URL, and
        /// no status at all is a secret that the worker could not read.
        var expiring = Answers.none
    }

    /// The table: range contract, rows 2, 6, 21–26, 36.
    private var row: Row {
        switch self {
        case .network: Row(rule: .retry, signal: .possible, limiting: .all)
        case .tls: Row(rule: .nextSource)
        case .dns, .proxy: Row(rule: .retry)
        case .timeout: Row(rule: .retry)
        case .tooSlow: Row(rule: .retry)
        case .httpStatus(let status): Self.row(status: status)
        case .badRange: Row(rule: .nextSource)
        case .changed: Row(rule: .startOver)
        case .digestMismatch: Row(rule: .startOver)
        case .sizeMismatch: Row(rule: .nextSource)
        case .refusedAddress: Row(rule: .nextSource)
        case .authentication: Row(rule: .nextSource, expiring: .status(401))
        case .notFound: Row(rule: .nextSource, signal: .possible, limiting: .status(404), expiring: .status(410))
        case .storageFull: Row(rule: .returnChunk)
        case .noSpace: Row(rule: .setBack)
        case .noPermission: Row(rule: .setBack)
        case .storage: Row(rule: .giveUp)
        case .poison: Row(rule: .giveUp)
        case .deadline: Row(rule: .giveUp)
        case .unreadable: Row(rule: .giveUp)
        }
    }

    /// The row of a status that has no kind of its own. It is the kind's, whatever is said of the answer besides.
    private static func row(status: Int) -> Row {
        let rule: Rule = isTransient(status: status) ? .retry : .nextSource
        return switch status {
        case 429, 503: Row(rule: rule, signal: .certain, limiting: .all)
        case 200: Row(rule: rule, signal: .possible, limiting: .status(200))
        case 400: Row(rule: rule, signal: .possible, limiting: .status(400))
        case 403: Row(rule: rule, signal: .possible, limiting: .status(403), expiring: .all)
        default: Row(rule: rule)
        }
    }

    /// The retry rule of the kind.
    public var rule: Rule { row.rule }

    /// What a failure of this kind says about the origin's limits (row 24). `status` is that of the answer, for the
    /// kinds that stand for several; `nil` when there was none.
    public func limitSignal(status: Int?) -> LimitSignal {
        // Where a redirect led to is another origin.
        if let status, (300..<400).contains(status) { return .none }
        return row.limiting.includes(status) ? row.signal : .none
    }

    /// Whether a URL that worked before may have expired (row 21): 401, 403 and 410.
    public func isExpiry(status: Int?) -> Bool {
        row.expiring.includes(status)
    }
}
