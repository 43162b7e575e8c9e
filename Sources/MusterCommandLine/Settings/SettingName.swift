/// Everything that can be set on the command line, in the environment and in a configuration file.
///
/// The raw value is the option's long name and the key in the file; the environment variable is `MUSTER_` and the same
/// in capitals, with underscores.
enum SettingName: String, CaseIterable, Sendable {
    /// The coordinators that a client or a worker talks to.
    case server
    /// The token of administrators.
    case token
    /// The token of workers.
    case workerToken = "worker-token"
    /// Results as JSON.
    case json
    /// What is logged.
    case logLevel = "log-level"
    /// The directory of `get`.
    case directory
    /// The list of tasks.
    case manifest
    /// The digest that is expected of a single file.
    case digest
    /// The number of workers of `get` and `up`.
    case workers
    /// The directory of `up`.
    case data
    /// Where a coordinator listens.
    case listen
    /// Sinks of a worker (`NAME=DIR`), or the sink of a group (`NAME`).
    case sink
    /// The connection string of PostgreSQL.
    case database
    /// The name of a worker.
    case name
    /// The transfers that a worker runs at once.
    case slots
    /// Whether a group stays open.
    case open
    /// The priority of a group.
    case priority
    /// Whether `add` waits for the group.
    case wait
    /// Whether `status` goes on showing.
    case watch
    /// The state by which tasks are chosen.
    case state
    /// How long `wait` waits.
    case timeout
    /// The position after which events are read.
    case after
    /// The group whose events are read.
    case group
    /// Whether `events` goes on reading.
    case follow
    /// What becomes of the files of what is removed.
    case files
    /// How long a session lives without a sync.
    case sessionTTL = "session-ttl"
    /// The most connections of the fleet to an origin.
    case maxConnectionsPerOrigin = "max-connections-per-origin"
    /// The connections of a coordinator to its database.
    case databaseConnections = "database-connections"
    /// The smallest chunk.
    case minimumChunk = "minimum-chunk"
    /// The largest chunk.
    case maximumChunk = "maximum-chunk"
    /// Whether `work` ends with the process that started it.
    case exitWithParent = "exit-with-parent"

    /// The option as it is typed.
    var option: String { "--\(rawValue)" }

    /// The environment variable.
    var variable: String {
        "MUSTER_" + rawValue.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
    }

    /// Whether its value must never be shown.
    var isSecret: Bool {
        switch self {
        case .token, .workerToken, .database: true
        case .server, .json, .logLevel, .directory, .manifest, .digest, .workers, .data, .listen, .sink, .name, .slots,
            .open, .priority, .wait, .watch, .state, .timeout, .after, .group, .follow, .files, .sessionTTL,
            .maxConnectionsPerOrigin, .databaseConnections, .minimumChunk, .maximumChunk, .exitWithParent:
            false
        }
    }

    /// Whether it has several values.
    var isList: Bool { self == .sink }
}
