public import MusterAPI

/// A sink that a worker reaches.
public struct SinkConfiguration: Sendable, Hashable {
    /// The sink's name, as groups and coordinators use it.
    public var name: String
    /// The directory on this host. It is never created: a missing one is most likely a file system that is not mounted.
    public var path: String
    /// How the worker knows that it is the right directory (adr/0034).
    public enum Identity: Sendable, Hashable {
        /// It is the directory that the database remembers, if it remembers any.
        case remembered
        /// It permanently replaces the directory that the database remembers.
        case replaced
        /// It contains the database itself, so no other directory can be meant.
        case holdsDatabase

        /// Bytes of its file system that are kept free of files: a running private database needs them for a segment of
        /// its log (adr/0023).
        public var keptBytes: Int64 { self == .holdsDatabase ? 16 << 20 : 0 }
    }

    /// How the worker knows that it is the right directory.
    public var identity: Identity

    /// A sink.
    public init(name: String, path: String, identity: Identity = .remembered) {
        self.name = name
        self.path = path
        self.identity = identity
    }
}

/// What a worker is started with.
public struct WorkerConfiguration: Sendable {
    /// Base URLs of coordinators of one database, such as `http://127.0.0.1:7300`; at least one.
    public var servers: [String]
    /// The bearer tokens of workers; secrets, never logged.
    public var tokens: ServerTokens
    /// The worker's name; by `NameRule`. A restarted worker keeps its name and gets a new session.
    public var name: String
    /// The sinks that it reaches; at least one, each with a different name.
    public var sinks: [SinkConfiguration]
    /// How many transfers run at once, within `Limits.slots`; half as many more at the most for groups without a connection (adr/0051).
    public var slots: Int
    /// How many workers run in this process; they share the files that it may open.
    public var workersInProcess = 1
    /// How many transfer loops, each with a thread of its own; 0 for one per core, at most 4.
    public var loops: Int
    /// The maximum rate of all its transfers together, in bytes per second, within `Limits.bytesPerSecond`; `nil` for
    /// none. The worker's shares of the fleet's budgets apply in addition.
    public var bytesPerSecond: Int64?
    /// After this time received bytes are made durable and reported; doing so takes some time on top. A killed worker
    /// loses no more than that.
    public var progressInterval: Duration = .seconds(3)
    /// The same for an installation that may be killed as a whole at any time: only durable bytes survive that.
    public static let shortProgressInterval: Duration = .milliseconds(750)
    /// How soon a plain GET must deliver the bytes of its trial to be worth starting a file over (adr/0028).
    var trialTime: Duration = .seconds(5)
    /// The version of the program, told to coordinators and, in the User-Agent, to origins.
    public var version: String
    /// Labels of the operator's choosing.
    public var labels: [String: String]
    /// A PEM file of certificate authorities to trust for origins instead of the system's.
    public var caFile: String?
    /// Secrets, certificates and similar files that options may refer to, and which origins may receive them.
    public var secrets: SecretGrants
    /// Called for each numeric address before a request is sent to it, including redirects, in addition to the
    /// coordinator's own guard; `false` refuses the source (range contract, row 39). `nil` leaves it to the guard. Called
    /// on the threads of the loops.
    public var addressAllowed: (@Sendable (_ numericAddress: String) -> Bool)?

    /// A configuration with 16 slots and as many loops as there are cores, at most 4.
    public init(
        servers: [String],
        tokens: ServerTokens = .common(nil),
        name: String,
        sinks: [SinkConfiguration],
        slots: Int = 16,
        loops: Int = 0,
        bytesPerSecond: Int64? = nil,
        version: String,
        labels: [String: String] = [:],
        secrets: SecretGrants = SecretGrants()
    ) {
        self.servers = servers
        self.tokens = tokens
        self.name = name
        self.sinks = sinks
        self.slots = slots
        self.loops = loops
        self.bytesPerSecond = bytesPerSecond
        self.version = version
        self.labels = labels
        self.secrets = secrets
    }
}

/// Why a worker can't be started as it was configured.
public enum WorkerRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// No coordinator was named.
    case noServer
    /// No sink was named.
    case noSink
    /// More sinks than `Limits.sinksPerWorker`.
    case tooManySinks
    /// Two sinks have this name.
    case duplicateSink(String)
    /// The name of the worker or of a sink breaks the rule.
    case badName(String)
    /// The number of slots is out of bounds.
    case badSlots(Int)
    /// The rate is out of bounds.
    case badRate(Int64)
    /// The system has no thread or descriptor left, or libcurl does not start.
    case outOfResources(String)

    /// The reason in words.
    public var description: String {
        switch self {
        case .noServer: "a worker needs the URL of at least one coordinator"
        case .noSink: "a worker needs at least one sink"
        case .tooManySinks: "a worker has too many sinks"
        case .duplicateSink(let name): "two sinks are called \"\(name)\""
        case .badName(let name): "\"\(name)\" is no name: it must be 1 to 200 characters of A-Z a-z 0-9 . _ -"
        case .badSlots(let slots): "\(slots) slots are out of bounds"
        case .badRate(let rate): "a rate of \(rate) bytes per second is out of bounds"
        case .outOfResources(let what): "the system has no room for a worker: \(what)"
        }
    }
}
