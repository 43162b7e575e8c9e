import Glibc

/// Lets a command that has done nothing yet end by Ctrl-C or SIGTERM as it ends later: with its last line and its exit code. What it does first may
/// wait for long, as for a manifest from standard input, and can't be cancelled.
enum EarlyInterruption {
    /// What is said of a `get` that was stopped.
    static var stopped: StaticString { "stopped; run the same command again to go on" }

    /// Ends the process at a signal, until `SignalledRun` or `Interruption` traps them for itself. Nothing is begun by then that would have to be
    /// brought to an end.
    static func endsProcess() {
        for number in [SIGINT, SIGTERM] {
            // Nothing but what POSIX allows in a handler: write and _exit.
            signal(number) { number in
                let (text, end): (StaticString, StaticString) = (EarlyInterruption.stopped, "\n")
                _ = write(STDERR_FILENO, text.utf8Start, text.utf8CodeUnitCount)
                _ = write(STDERR_FILENO, end.utf8Start, end.utf8CodeUnitCount)
                _exit(128 + number)
            }
        }
    }
}
