extension FailureKind {
    /// What happens to a chunk after a failure of this kind.
    public enum Rule: String, Sendable, Hashable, CaseIterable {
        /// Try again after a backoff, rotating through the sources.
        case retry
        /// No other source helps, but time may: try again after a backoff, behind all other work of the group.
        case setBack
        /// This source is unusable: take the next one at once, or fail the task if it was the last.
        case nextSource
        /// No source can help: the task fails.
        case giveUp
        /// The representation changed: drop what there is and start over with the next content version.
        case startOver
        /// The worker's storage is at fault: the chunk goes back untouched.
        case returnChunk
    }

    /// Whether an answer may mean that too many connections were open at once (range contract, row 24).
    public enum LimitSignal: String, Sendable, Hashable, CaseIterable {
        /// The answer has nothing to do with a limit.
        case none
        /// Some origins limit in this way; it counts only if other connections of the fleet to the same origin are in use.
        case possible
        /// The answer names a limit, or was seen to be caused by a limit (adr/0033).
        case certain
        /// The answer was seen not to be caused by a limit (adr/0033).
        case refuted
        /// The origin serves nothing to the worker: it counts only if the origin serves other workers.
        case unserved
    }

    /// The answers to which an entry of the table applies.
    private enum Answers {
        /// No answer.
        case none
        /// Every answer, and the lack of an answer.
        case all
        /// Only answers with this status.
        case status(Int)

        func includes(_ status: Int?) -> Bool {
            switch self {
            case .none: false
            case .all: true
            case .status(let wanted): status == wanted
            }
        }
    }

    /// The table's entries for a kind.
    private struct Row {
        var rule: Rule
        /// What the `limiting` answers say about the origin's limits (row 24).
        var signal = LimitSignal.none
        var limiting = Answers.none
        /// Answers which say that a URL that worked before may have expired (row 21). A proxy's 407 says nothing about the URL, and a
        /// missing status means a secret that the worker could not read.
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

    /// The row of a status that has no kind of its own. It depends on the status in the kind alone.
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

    /// What a failure of this kind says about the origin's limits (row 24). `status` is that of the answer, for kinds that stand for
    /// several statuses; `nil` when there was no answer.
    public func limitSignal(status: Int?) -> LimitSignal {
        // A redirect leads to another origin, so it says nothing about the limits of this one.
        if let status, (300..<400).contains(status) { return .none }
        return row.limiting.includes(status) ? row.signal : .none
    }

    /// Whether a URL that worked before may have expired (row 21): 401, 403 and 410.
    public func isExpiry(status: Int?) -> Bool {
        row.expiring.includes(status)
    }
}
