import Glibc

/// Lets Ctrl-C or SIGTERM end a command that has done nothing yet as it ends it later: with the last line and the exit code. The first step
/// of a command may wait for long, as for a manifest from standard input, and can't be cancelled.
enum EarlyInterruption {
    /// The last line of a `get` that was stopped.
    static var stopped: StaticString { "stopped; run the same command again to go on" }

    /// Makes a signal end the process, until `SignalledRun` or `Interruption` traps the signals. Until then nothing has begun that would
    /// have to be stopped in order.
    static func endsProcess() {
        for number in [SIGINT, SIGTERM] {
            // Only functions that POSIX allows in a handler: write and _exit.
            signal(number) { number in
                let (text, end): (StaticString, StaticString) = (EarlyInterruption.stopped, "\n")
                _ = write(STDERR_FILENO, text.utf8Start, text.utf8CodeUnitCount)
                _ = write(STDERR_FILENO, end.utf8Start, end.utf8CodeUnitCount)
                _exit(128 + number)
            }
        }
    }
}
