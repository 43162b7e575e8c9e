/// What is observed of a task.
///
/// `queued` → `active` → `finalizing` → `succeeded` | `failed` | `cancelled`; `paused` from the first two.
public enum TaskState: String, Sendable, Codable, CaseIterable {
    /// None of its chunks is leased. Leaves by a claim (`active`), pause, cancel, or a failure without a source left.
    case queued
    /// At least one chunk is leased. Back to `queued` when the last lease is given back or lost.
    case active
    /// The user has paused it; its bytes are kept and no chunk of it is leased. Leaves by resume (`queued`) or cancel.
    case paused
    /// Every chunk is done, and the file is being verified and put in place. Leaves to `succeeded` or `failed`, or back to `queued` if the
    /// content has changed.
    case finalizing
    /// The file stands at its path, verified (I8). Terminal.
    case succeeded
    /// It was given up; `failure` says why. Terminal until it is retried.
    case failed
    /// It was cancelled; nothing unfinished is left of it. Terminal.
    case cancelled

    /// Whether nothing more happens to the task unless a request asks for it.
    public var isTerminal: Bool {
        switch self {
        case .succeeded, .failed, .cancelled: true
        case .queued, .active, .paused, .finalizing: false
        }
    }
}

/// What is observed of a group.
public enum GroupState: String, Sendable, Codable, CaseIterable {
    /// Tasks may still be added; never completes. Leaves by `seal` or `cancel`.
    case open
    /// The number of its tasks is final. Leaves when every task is terminal.
    case sealed
    /// Sealed and every task succeeded. Terminal for this generation.
    case succeeded
    /// Sealed, every task terminal, at least one failed. Terminal for this generation.
    case failed
    /// Cancelled as a whole. Terminal for this generation.
    case cancelled

    /// Whether this generation's completion event has been written (I7).
    public var isTerminal: Bool {
        switch self {
        case .succeeded, .failed, .cancelled: true
        case .open, .sealed: false
        }
    }
}
