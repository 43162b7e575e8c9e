/// Everything that can be set on the command line, in the environment and in a configuration file.
///
/// The raw value is the option's long name and the key in the file. The environment variable, if there is one, is `MUSTER_` and the raw
/// value in capitals, with underscores.
enum SettingName: String, CaseIterable, Sendable {
    /// The coordinators that a client or a worker talks to.
    case server
    /// The token of administrators.
    case token
    /// The token of workers.
    case workerToken = "worker-token"
    /// Results as JSON.
    case json
    /// The level of the log.
    case logLevel = "log-level"
    /// The directory of `get`.
    case directory
    /// The list of tasks.
    case manifest
    /// The digest that is expected of a single file.
    case digest
    /// The name of a single file.
    case output
    /// The number of workers of `get` and `up`.
    case workers
    /// What `get` does when the disk is full.
    case onFull = "on-full"
    /// The directory of `up`.
    case data
    /// Where a coordinator listens.
    case listen
    /// Further host names of a coordinator.
    case host
    /// Sinks of a worker (`NAME=DIR`), or the sink of a group (`NAME`).
    case sink
    /// The connection string of PostgreSQL.
    case database
    /// Whether a coordinator brings its database's schema up to date first.
    case migrate
    /// Sinks whose directory replaces the previous one.
    case newDirectory = "new-directory"
    /// The name of a worker.
    case name
    /// The transfers that a worker runs at once.
    case slots
    /// Whether a group stays open.
    case open
    /// Whether a group that is sealed or finished is opened again.
    case reopen
    /// The priority of a group.
    case priority
    /// The share of a group among those of its priority.
    case weight
    /// The bytes per second of a group, an origin or a worker.
    case rate
    /// When a group may run at all.
    case between
    /// The time zone of `between` and of `rate-between`.
    case timeZone = "tz"
    /// The bytes per second of a group in parts of the day.
    case rateBetween = "rate-between"
    /// How long a group may take.
    case deadline
    /// What happens at the deadline.
    case onDeadline = "on-deadline"
    /// Whether `add` waits for the group, or `remove` for files to be gone.
    case wait
    /// Whether `status` keeps showing the state.
    case watch
    /// The state by which tasks or deliveries are selected.
    case state
    /// How long `wait` waits.
    case timeout
    /// The position after which events are read, or the groups that a group waits for.
    case after
    /// The group whose events are read.
    case group
    /// Whether `events` keeps reading new events.
    case follow
    /// What happens to the files of a removed group or task.
    case files
    /// Whether a check reads finished files.
    case deep
    /// Whether a check repairs what is safe.
    case repair
    /// The groups whose events a subscription gets, as a pattern.
    case groups
    /// The types of events that a subscription or a command gets.
    case types
    /// The file with the secret of a subscription.
    case secretFile = "secret-file"
    /// The subscription whose deliveries are listed.
    case subscription
    /// The name under which a command's place in the log is kept.
    case consumer
    /// How long a session lives without a sync.
    case sessionTTL = "session-ttl"
    /// The most connections of the fleet to an origin.
    case maxConnectionsPerOrigin = "max-connections-per-origin"
    /// The bytes per second of the whole fleet.
    case maxRate = "max-rate"
    /// How long events are kept.
    case eventRetention = "event-retention"
    /// The connections of a coordinator to its database.
    case databaseConnections = "database-connections"
    /// The smallest chunk.
    case minimumChunk = "minimum-chunk"
    /// The largest chunk.
    case maximumChunk = "maximum-chunk"
    /// Networks outside the public Internet that may be fetched from.
    case allowAddress = "allow-address"
    /// Whether addresses outside the public Internet are refused even if only this machine reaches the coordinator.
    case guardAddresses = "guard-addresses"
    /// How often a file is tried without progress.
    case tries
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
    /// The private key of the client certificate.
    case key
    /// Known hosts of sftp.
    case knownHosts = "known-hosts"
    /// A private key for sftp.
    case privateKey = "private-key"
    /// Whether header fields, cookies and the password follow redirects to other origins.
    case locationTrusted = "location-trusted"
    /// Whether compressed bodies are decompressed.
    case decode
    /// Which HTTP version is offered.
    case httpVersion = "http-version"
    /// What happens to a task whose file exists already.
    case ifExists = "if-exists"
    /// Whether files get the origin's time.
    case keepTime = "keep-time"
    /// Whether files get the names that origins suggest.
    case suggestedNames = "suggested-names"
    /// Whether bodies without any length count as complete at the first read.
    case acceptUnframed = "accept-unframed"
    /// Which differences of validators mean a change.
    case validators
    /// Whether existing files are used again.
    case reuse
    /// The resolver of fresh URLs.
    case resolver
    /// Environment variables that a worker may read secrets from.
    case secretVariable = "secret-variable"
    /// Directories that a worker may read secrets from.
    case secretDirectory = "secret-directory"
    /// The cap on connections of a group, or to an origin.
    case maxConnections = "max-connections"
    /// Until when an origin is paused.
    case pauseUntil = "pause-until"
    /// Whether `work` ends with the process that started it.
    case exitWithParent = "exit-with-parent"

    /// The option as it is typed.
    var option: String { "--\(rawValue)" }

    /// The environment variable of a setting for a command; `nil` if there is none.
    ///
    /// Settings that choose or change a thing have none: a variable that is set for one command would silently apply to another. The sinks
    /// of a worker are not the sink of a group.
    func variable(for command: String) -> String? {
        let namesSink = ["add", FsckCommand.section].contains(command)
        guard !Self.withoutVariable.contains(self), self != .sink || !namesSink else { return nil }
        return "MUSTER_" + rawValue.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
    }

    /// Settings that choose or change a thing: which thing, its place, what it may use, what happens to it.
    private static let withoutVariable: Set<SettingName> = [
        .manifest, .digest, .output, .onFull, .group, .groups, .types, .state, .subscription, .consumer, .after,
        .priority,
        .weight,
        .rate,
        .maxConnections, .between, .timeZone, .rateBetween, .deadline, .onDeadline, .open, .reopen, .files, .deep,
        .repair,
        .pauseUntil,
        .secretFile, .locationTrusted, .acceptUnframed, .newDirectory,
    ]

    /// Settings whose values must never be shown.
    static let secrets: Set<SettingName> = [
        .token, .workerToken, .database, .header, .proxy, .cookie, .user, .resolver,
    ]
    /// Settings that have several values.
    static let lists: Set<SettingName> = [
        .sink, .newDirectory, .host, .allowAddress, .header, .cookie, .secretVariable, .secretDirectory, .rateBetween,
        .after, .types,
    ]
    /// Lists whose values stand on separate lines in the environment, since the values may contain commas.
    static let listsOfLines: Set<SettingName> = [.header, .cookie]

    /// Whether its value must never be shown.
    var isSecret: Bool { Self.secrets.contains(self) }
    /// Whether it has several values.
    var isList: Bool { Self.lists.contains(self) }
    /// Whether its values stand on separate lines in the environment.
    var isListOfLines: Bool { Self.listsOfLines.contains(self) }
}
