public import MusterCore

/// The body of `POST /v1/checks`: what is checked (adr/0048).
public struct CheckRequest: Hashable, Sendable, Codable {
    /// Whether finished files are read, and compared with their checksums.
    public var deep: Bool?
    /// Whether what is safe is repaired.
    public var repair: Bool?
    /// The sinks; all of them when absent.
    public var sinks: [String]?

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case deep, repair, sinks
    }

    /// A check.
    public init(deep: Bool? = nil, repair: Bool? = nil, sinks: [String]? = nil) {
        self.deep = deep
        self.repair = repair
        self.sinks = sinks
    }

    /// Reads a check; refuses unknown fields.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
        deep = try container.decodeIfPresent(Bool.self, forKey: .deep)
        repair = try container.decodeIfPresent(Bool.self, forKey: .repair)
        sinks = try container.decodeIfPresent([String].self, forKey: .sinks)
    }

    /// The most sinks that `options` names.
    private static let namedSinks = 8

    /// The options of `muster fsck` that ask for it. Of many sinks the first ones are named.
    public var options: String {
        let names = sinks ?? []
        var words = [deep == true ? "--deep" : nil, repair == true ? "--repair" : nil].compactMap { $0 }
        words += names.prefix(Self.namedSinks).map { "--sink \($0)" }
        if names.count > Self.namedSinks { words.append("and \(names.count - Self.namedSinks) sinks more") }
        return words.joined(separator: " ")
    }
}

/// A check of the database against the sinks, and how far it is.
public struct CheckDocument: Hashable, Sendable, Codable {
    /// How far a check is in a sink.
    public struct Sink: Hashable, Sendable, Codable {
        /// The sink's name.
        public var name: String
        /// What is looked at: `files`, `parts`, `names`, or `done`.
        public var phase: String
        /// The worker that looks; absent if none does.
        public var worker: String?
        /// How many live workers can look at the sink.
        public var workersReaching: Int64
        /// Finished files that were looked at.
        public var files: Int64
        /// Parts that were looked at.
        public var parts: Int64
        /// Bytes of files that were read.
        public var bytes: Int64
        /// Files of a deep check that have no known checksum.
        public var unproven: Int64

        /// A sink of a check.
        public init(
            name: String, phase: String, worker: String?, workersReaching: Int64, files: Int64, parts: Int64,
            bytes: Int64, unproven: Int64
        ) {
            self.name = name
            self.phase = phase
            self.worker = worker
            self.workersReaching = workersReaching
            self.files = files
            self.parts = parts
            self.bytes = bytes
            self.unproven = unproven
        }
    }

    /// Its number.
    public var id: Int64
    /// Whether finished files are read.
    public var deep: Bool
    /// Whether what is safe is repaired.
    public var repair: Bool
    /// `running`, `finished`, or `stopped`.
    public var state: String
    /// Whether the rows of the database were looked at.
    public var rowsDone: Bool
    /// Why the rows of the database could not be looked at.
    public var failure: String?
    /// The sinks, by their names.
    public var sinks: [Sink]
    /// How many findings are left as they are, without notes.
    public var found: Int64
    /// How many findings are repaired, or about to be.
    public var repaired: Int64
    /// How many findings are notes: nothing is wrong because of them.
    public var notes: Int64
    /// Whether there may be more findings than are kept.
    public var isCut: Bool
    /// When it was asked for.
    public var begunAt: Timestamp
    /// When it ended; absent while it has not.
    public var finishedAt: Timestamp?

    /// A check that has found nothing yet.
    public init(id: Int64, deep: Bool, repair: Bool, state: String, begunAt: Timestamp) {
        self.id = id
        self.deep = deep
        self.repair = repair
        self.state = state
        self.begunAt = begunAt
        rowsDone = false
        sinks = []
        found = 0
        repaired = 0
        notes = 0
        isCut = false
    }
}

/// Something that a check has found.
public struct FindingDocument: Hashable, Sendable, Codable {
    /// Its number, in the order of the findings.
    public var number: Int64
    /// What it is.
    public var kind: FindingKind
    /// `found`, `repairing`, or `repaired`.
    public var outcome: String
    /// Whether it is only told: nothing is wrong because of it.
    public var isNote: Bool
    /// The sink; absent for the database.
    public var sink: String?
    /// A path below the sink, a name below `.muster/<installation>`, or what the rows are about.
    public var subject: String
    /// The group of the task.
    public var group: String?
    /// The key of the task.
    public var key: String?
    /// What was seen.
    public var detail: String

    /// A finding.
    public init(number: Int64, kind: FindingKind, outcome: String, sink: String?, subject: String, detail: String) {
        self.number = number
        self.kind = kind
        self.outcome = outcome
        isNote = kind.isNote
        self.sink = sink
        self.subject = subject
        self.detail = detail
    }
}
