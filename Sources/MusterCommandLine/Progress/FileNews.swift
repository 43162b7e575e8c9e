import MusterAPI
import MusterCore

/// What an event says about one file, for the lines that are printed as files finish.
struct FileNews: Hashable, Sendable {
    /// How the task ended.
    enum Outcome: Hashable, Sendable {
        /// The file is at its path. It is unchanged, and nothing was fetched, when its origin said that the existing file is still the same.
        case finished(size: Int64, isUnchanged: Bool)
        /// The task was given up.
        case failed(reason: String)
    }

    /// The path of the task's file.
    let name: String
    /// How it ended.
    let outcome: Outcome

    /// Reads an event; `nil` unless it says that a task succeeded or failed.
    init?(_ payload: EventPayload?, at time: Timestamp) {
        switch payload {
        case .taskSucceeded(let facts):
            name = facts.path
            outcome = .finished(size: facts.size, isUnchanged: facts.reusedFrom == facts.path)
        case .taskFailed(let facts):
            name = facts.path
            let failure = facts.failure
            let document = TaskFailure(
                kind: failure.kind, detail: failure.detail, at: time, status: failure.status, source: failure.source,
                requestID: failure.requestID)
            outcome = .failed(reason: FailureText.text(document, isDecided: true))
        case .groupEnded, .groupRemoved, .groupOverdue, .taskCancelled, .taskChanged, nil: return nil
        }
    }

    /// The line to print.
    var line: String {
        let name = TextWidth.escaped(name)
        switch outcome {
        case .finished(let size, let isUnchanged):
            return "\(isUnchanged ? "unchanged" : "finished"): \(name) (\(ByteCount(bytes: size)))"
        case .failed(let reason): return "failed: \(name): \(TextWidth.escaped(reason))"
        }
    }
}
