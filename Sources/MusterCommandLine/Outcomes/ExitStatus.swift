import MusterAPI
import MusterCore

/// The exit codes of the command line; scripts rely on them.
enum ExitStatus: Int32, Sendable, CaseIterable {
    /// All that was asked for was done.
    case success = 0
    /// The group failed, or something else did for which there is no code of its own.
    case failure = 1
    /// The command line, the environment or the configuration file is wrong.
    case usage = 2
    /// No coordinator answered.
    case unreachable = 3
    /// The time that was given ran out.
    case timedOut = 4
    /// The group was cancelled.
    case cancelled = 5
    /// The coordinator refused; its problem document was printed.
    case refused = 6
    /// Ended by Ctrl-C after a graceful stop: 128 + SIGINT, as shells count.
    case interrupted = 130
    /// The reader of standard output is gone: 128 + SIGPIPE.
    case outputClosed = 141
    /// Ended by SIGTERM after a graceful stop of a command that had not done its work: 128 + SIGTERM.
    case terminated = 143

    /// The exit code that tells how a group ended; `nil` while it has not.
    static func result(of state: GroupState) -> ExitStatus? {
        switch state {
        case .open, .sealed: nil
        case .succeeded: .success
        case .failed: .failure
        case .cancelled: .cancelled
        }
    }
}
