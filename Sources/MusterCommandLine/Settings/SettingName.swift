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
    /// Networks that may be fetched from although they are not of the public Internet.
    case allowAddress = "allow-address"
    /// Whether addresses that are not of the public Internet are refused although only this machine reaches the coordinator.
    case guardAddresses = "guard-addresses"
    /// The first wait after a failure.
    case retryBase = "retry-base"
    /// The longest wait after a failure.
    case retryMaximum = "retry-maximum"
    /// Header fields of requests to the sources.
    case header
    /// The proxy.
    case proxy
    /// Cookies.
    case cookie
    /// A file of cookies.
    case cookieFile = "cookie-file"
    /// User and password.
    case user
    /// A netrc file.
    case netrc
    /// Authorities to trust.
    case caFile = "ca-file"
    /// A client certificate.
    case certificate
    /// Its private key.
    case key
    /// Known hosts of sftp.
    case knownHosts = "known-hosts"
    /// A private key for sftp.
    case privateKey = "private-key"
    /// Which HTTP version is offered.
    case httpVersion = "http-version"
    /// What becomes of a task whose file is there already.
    case ifExists = "if-exists"
    /// Whether files get the origin's time.
    case keepTime = "keep-time"
    /// Whether files get the names that origins suggest.
    case suggestedNames = "suggested-names"
    /// Which differences of validators mean a change.
    case validators
    /// Who knows fresh URLs.
    case resolver
    /// Environment variables that a worker may read secrets from.
    case secretVariable = "secret-variable"
    /// The directory that a worker may read secrets from.
    case secretDirectory = "secret-directory"
    /// The cap on connections to an origin.
    case maxConnections = "max-connections"
    /// Until when an origin is left alone.
    case pauseUntil = "pause-until"
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
        case .token, .workerToken, .database, .header, .proxy, .cookie, .user, .resolver: true
        case .server, .json, .logLevel, .directory, .manifest, .digest, .workers, .data, .listen, .sink, .name, .slots,
            .open, .priority, .wait, .watch, .state, .timeout, .after, .group, .follow, .files, .sessionTTL,
            .maxConnectionsPerOrigin, .databaseConnections, .minimumChunk, .maximumChunk, .allowAddress,
            .guardAddresses, .retryBase,
            .retryMaximum, .cookieFile, .netrc, .caFile, .certificate, .key, .knownHosts, .privateKey, .httpVersion,
            .ifExists, .keepTime, .suggestedNames, .validators, .secretVariable, .secretDirectory, .maxConnections,
            .pauseUntil, .exitWithParent:
            false
        }
    }

    /// Whether it has several values.
    var isList: Bool {
        switch self {
        case .sink, .allowAddress, .header, .cookie, .secretVariable: true
        case .server, .token, .workerToken, .json, .logLevel, .directory, .manifest, .digest, .workers, .data, .listen,
            .database, .name, .slots, .open, .priority, .wait, .watch, .state, .timeout, .after, .group, .follow,
            .files,
            .sessionTTL, .maxConnectionsPerOrigin, .databaseConnections, .minimumChunk, .maximumChunk, .guardAddresses,
            .retryBase,
            .retryMaximum, .proxy, .cookieFile, .user, .netrc, .caFile, .certificate, .key, .knownHosts, .privateKey,
            .httpVersion, .ifExists, .keepTime, .suggestedNames, .validators, .resolver, .secretDirectory,
            .maxConnections, .pauseUntil, .exitWithParent:
            false
        }
    }

    /// Whether its values stand on lines of their own in the environment, since they may have commas in them.
    var isListOfLines: Bool { self == .header || self == .cookie }
}
