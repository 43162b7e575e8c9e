import Glibc
import Logging

/// What the processes of a history log: nothing, or everything on standard error if `MUSTER_SIMULATION_TRACE` is set.
enum SimulatedLog {
    private static let isWanted = getenv("MUSTER_SIMULATION_TRACE") != nil

    /// The log of a process.
    static func logger(_ name: String) -> Logger {
        var logger = Logger(label: name) { label -> any LogHandler in
            guard isWanted else { return SwiftLogNoOpLogHandler() }
            return StreamLogHandler.standardError(label: label)
        }
        logger.logLevel = isWanted ? .debug : .critical
        return logger
    }
}
