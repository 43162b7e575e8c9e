import MusterAPI
import MusterCore

/// A failure that is followed by another try: what went wrong, and what happens next.
struct TroubleText: Hashable, Sendable {
    /// `503 Service Unavailable`.
    let reason: String
    /// `try 3 of 8 in 4s`, `next try when a connection is free`, or `next try in 4s, given up in 1m 50s at the earliest`; the reason for the next try may
    /// come first.
    let next: String

    /// The trouble of a task; `nil` for a task without a failure, or one that has ended.
    init?(_ task: TaskDocument) {
        guard let failure = task.failure, let retry = task.retry else { return nil }
        let isAnswer = if case .httpStatus = failure.kind { true } else { failure.status ?? 0 >= 400 }
        reason = TextWidth.escaped(
            failure.kind.text(
                status: failure.status, source: nil, detail: isAnswer ? "" : failure.detail, isDecided: false))
        let when =
            retry.inSeconds.map { "in \(DurationNotation.format(.seconds($0)))" }
            ?? (task.state == .queued ? "when a connection is free" : "now")
        // A failure that would otherwise end the task is tried again since the next source may have the file, or since the origin served other requests
        // at the same time (range contract, row 24).
        let why =
            failure.kind.rule != .nextSource
            ? "" : task.urls.count > 1 ? "another source may have it: " : "there may be too many connections: "
        next = why + (["\(retry.count ?? "next try") \(when)", retry.end].compactMap { $0 }).joined(separator: ", ")
    }

    /// `503 Service Unavailable, try 3 of 8 in 4s`.
    var line: String { "\(reason), \(next)" }
}
