public import MusterCore

/// A check of the database against the sinks, and how far it is (adr/0048).
public struct CheckRecord: Sendable, Hashable {
    /// How far a check is in a sink.
    public struct Walk: Sendable, Hashable {
        /// The sink.
        public let sink: String
        /// What is looked at: `files`, `parts`, `names` or `done`.
        public let phase: String
        /// The worker that looks; `nil` if none does.
        public let worker: String?
        /// The number of live sessions that can look at the sink.
        public let workersReaching: Int64
        /// Finished files that were looked at.
        public let files: Int64
        /// Parts that were looked at.
        public let parts: Int64
        /// Bytes of files that were read.
        public let bytes: Int64
        /// Files of a deep check of which no checksum is known.
        public let unproven: Int64
    }

    /// Its number.
    public let id: Int64
    /// Whether finished files are read.
    public let isDeep: Bool
    /// Whether what is safe is repaired.
    public let repairs: Bool
    /// Whether the rows of the database were looked at twice.
    public let areRowsDone: Bool
    /// Why the rows could not be looked at.
    public let failure: String?
    /// Whether it was ended before it was complete.
    public let isStopped: Bool
    /// When it was asked for.
    public let begunAt: Timestamp
    /// When it ended; `nil` while it has not.
    public let finishedAt: Timestamp?
    /// The number of findings that are left as they are, without notes.
    public let found: Int64
    /// The number of findings that are repaired, or are to be.
    public let repaired: Int64
    /// The number of notes.
    public let notes: Int64
    /// Whether there may be more findings than are kept.
    public let isCut: Bool
    /// Its sinks, by their names.
    public let walks: [Walk]
}

/// The check that is under way.
public struct RunningCheck: Sendable, Hashable {
    /// Its number.
    public let id: Int64
    /// Whether finished files are read.
    public let isDeep: Bool
    /// Whether what is safe is repaired.
    public let repairs: Bool
    /// Its sinks, by their names.
    public let sinks: [String]
    /// How long ago it was asked for, in whole seconds, by the clock of the database.
    public let age: Duration
}

/// The walk of a check through a sink, which has not ended.
public struct OpenWalk: Sendable, Hashable {
    /// The sink.
    public let sink: String
    /// The live session that holds it; `nil` if it waits for one.
    public let holder: SessionID?

    /// A walk.
    public init(sink: String, holder: SessionID?) {
        self.sink = sink
        self.holder = holder
    }
}

/// Something that a check has found.
public struct FindingRecord: Sendable, Hashable {
    /// What is done about a finding.
    public enum Outcome: String, Sendable, Hashable {
        /// It is left as it is.
        case found
        /// It is to be repaired.
        case pending
        /// It was repaired, or its repair is ordered like any other work.
        case repaired
    }

    /// Its number, in the order of the findings.
    public let serial: Int64
    /// What it is.
    public let kind: FindingKind
    /// The sink; empty for the database.
    public let sink: String
    /// A path below the sink, a name below `.muster/<installation>`, or what the rows are about.
    public let subject: String
    /// The group of the task.
    public let group: String?
    /// The key of the task.
    public let key: String?
    /// What was seen.
    public let detail: String
    /// What is done about it.
    public let outcome: Outcome
}
