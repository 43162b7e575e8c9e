public import Logging

/// A log that keeps what is written into it, for a test that looks at it.
public struct RecordedLog: Sendable {
    private let written = Observed<[LogEvent]>([])

    /// Makes an empty log.
    public init() {}

    /// What was written, in that order.
    public var events: [LogEvent] { written.value }

    /// A logger that records every level.
    public var logger: Logger { Logger(label: "test") { _ in Handler(written: written) } }

    private struct Handler: LogHandler {
        let written: Observed<[LogEvent]>
        var metadata: Logger.Metadata = [:]
        var logLevel: Logger.Level = .trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { written.update { $0.append(event) } }
    }
}
