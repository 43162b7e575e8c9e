import MusterAPI
import MusterCore

/// A failure that is not the end: what went wrong, and how it goes on.
struct TroubleText: Hashable, Sendable {
    /// `503 Service Unavailable`.
    let reason: String
    /// `try 3 of 8 in 4s`, `next try when a connection is free`, or `it has served lately: try 3 of 8 in 4s`, with why it is tried again.
    let next: String

    /// The trouble of a task; `nil` for one that is well, or has ended.
    init?(_ task: TaskDocument) {
        guard let failure = task.failure, let retry = task.retry else { return nil }
        let isAnswer = if case .httpStatus = failure.kind { true } else { failure.status ?? 0 >= 400 }
        reason = TextWidth.escaped(
            failure.kind.text(status: failure.status, source: nil, detail: isAnswer ? "" : failure.detail))
        let when =
            retry.inSeconds.map { "in \(DurationNotation.format(.seconds($0)))" }
            ?? (task.state == .queued ? "when a connection is free" : "now")
        // The first one has been: it does not count where the origin only said that there was too much at once.
        let count = retry.limit.flatMap { retry.number > 1 ? "try \(retry.number) of \($0)" : nil }
        let why: String? =
            if retry.outage == true {
                "it has served lately"
            } else if failure.kind.rule == .nextSource {
                // What is given up otherwise is tried again since others were served beside it (range contract, row 24).
                "there may be too many connections"
            } else {
                nil
            }
        next = (why.map { "\($0): " } ?? "") + "\(count ?? "next try") \(when)"
    }

    /// `503 Service Unavailable, try 3 of 8 in 4s`.
    var line: String { "\(reason), \(next)" }
}
