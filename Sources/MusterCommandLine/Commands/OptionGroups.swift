import ArgumentParser

/// Options of every command.
struct GlobalOptions: ParsableArguments {
    @Flag(help: "Print the result as JSON on standard output, and nothing else there. (MUSTER_JSON)")
    var json = false

    @Option(help: ArgumentHelp("A JSON file with values for options. (MUSTER_CONFIG)", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "What is logged on standard error: trace, debug, info, notice, warning, error, critical. (MUSTER_LOG_LEVEL)",
            valueName: "level"
        )
    )
    var logLevel: String?
}

/// Options of commands that talk to a coordinator.
struct ClientOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Base URL of the coordinator, or several, separated by commas. (MUSTER_SERVER; default: \(Self.defaultServer))",
            valueName: "url"
        )
    )
    var server: String?

    @Option(
        help: ArgumentHelp(
            "The token, if the coordinator asks for one. Better set MUSTER_TOKEN: arguments can be seen by everybody.",
            valueName: "token"
        )
    )
    var token: String?

    /// The base URL of the coordinator if none is given.
    static let defaultServer = "http://127.0.0.1:7300"
}

/// Options that tune a coordinator.
struct CoordinatorOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How long a worker may be silent before its work goes to others. (MUSTER_SESSION_TTL; default: 30s; get: 5s)",
            valueName: "duration"
        )
    )
    var sessionTTL: String?

    @Option(
        help: ArgumentHelp(
            "The most connections of the whole fleet to one origin. (MUSTER_MAX_CONNECTIONS_PER_ORIGIN; default: 8; get: its slots)",
            valueName: "n"
        )
    )
    var maxConnectionsPerOrigin: String?

    @Option(
        help: ArgumentHelp(
            "The most bytes per second of the whole fleet, such as 100MiB/s. (MUSTER_MAX_RATE; default: no limit)",
            valueName: "rate"
        )
    )
    var maxRate: String?

    @Option(
        help: ArgumentHelp(
            """
            A network that may be fetched from although it is private, such as 10.0.0.0/8; may be repeated. \
            (MUSTER_ALLOW_ADDRESS, separated by commas)
            """,
            valueName: "cidr"
        )
    )
    var allowAddress: [String] = []

    @Flag(
        help: ArgumentHelp(
            "Refuse private addresses also where only this machine reaches the coordinator. (MUSTER_GUARD_ADDRESSES)"
        )
    )
    var guardAddresses = false

    @Option(
        help: ArgumentHelp(
            """
            How often a file is tried without any progress until it is given up, 1 to 100; with mirrors so often at each. (MUSTER_TRIES; default: 8; get: 3 \
            where an origin that has not served lately takes no connection or does not answer in time, or a directory may not be \
            written to)
            """,
            valueName: "n"
        )
    )
    var tries: String?

    @Option(
        help: ArgumentHelp(
            "The first wait after a failure; it doubles with each further one. (MUSTER_RETRY_BASE; default: 1s)",
            valueName: "duration"
        )
    )
    var retryBase: String?

    @Option(
        help: ArgumentHelp(
            "The longest wait after a failure. (MUSTER_RETRY_MAXIMUM; default: 5m)",
            valueName: "duration"
        )
    )
    var retryMaximum: String?

    @Option(
        help: ArgumentHelp(
            "Connections to the database. (MUSTER_DATABASE_CONNECTIONS; default: 8)",
            valueName: "n"
        )
    )
    var databaseConnections: String?

    @Option(
        help: ArgumentHelp("The smallest chunk of a file. (MUSTER_MINIMUM_CHUNK; default: 8MiB)", valueName: "size")
    )
    var minimumChunk: String?

    @Option(
        help: ArgumentHelp("The largest chunk of a file. (MUSTER_MAXIMUM_CHUNK; default: 256MiB)", valueName: "size")
    )
    var maximumChunk: String?

    /// The options that were given.
    var given: [SettingName: [String]] {
        Given.values([
            .sessionTTL: sessionTTL, .maxConnectionsPerOrigin: maxConnectionsPerOrigin,
            .databaseConnections: databaseConnections, .minimumChunk: minimumChunk, .maximumChunk: maximumChunk,
            .retryBase: retryBase, .retryMaximum: retryMaximum, .maxRate: maxRate,
            .tries: tries,
        ]).merging(Given.lists([.allowAddress: allowAddress])) { $1 }
            .merging(Given.flags([.guardAddresses: guardAddresses])) { $1 }
    }
}

/// How long the log of a coordinator goes back.
struct RetentionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How long events are kept, 1h to 3650d. (MUSTER_EVENT_RETENTION; default: 30d)",
            valueName: "duration"
        )
    )
    var eventRetention: String?

    /// The options that were given.
    var given: [SettingName: [String]] { Given.values([.eventRetention: eventRetention]) }
}

/// Which secrets a worker reads for the groups that name them.
struct SecretOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            An environment variable that groups may name in secrets, and the origin that may receive it (* is any); may be \
            repeated. (MUSTER_SECRET_VARIABLE, separated by commas)
            """,
            valueName: "name=origin"
        )
    )
    var secretVariable: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            A directory below which groups may name files of secrets, keys and certificates, and the origin that may \
            receive them; may be repeated. (MUSTER_SECRET_DIRECTORY, separated by commas)
            """,
            valueName: "dir=origin"
        )
    )
    var secretDirectory: [String] = []

    /// The options that were given.
    var given: [SettingName: [String]] {
        Given.lists([.secretVariable: secretVariable, .secretDirectory: secretDirectory])
    }
}

/// Brings parsed options into the form of settings.
enum Given {
    /// The options that were given.
    static func values(_ options: [SettingName: String?]) -> [SettingName: [String]] {
        options.compactMapValues { $0.map { [$0] } }
    }

    /// The flags that were given.
    static func flags(_ flags: [SettingName: Bool]) -> [SettingName: [String]] {
        flags.filter(\.value).mapValues { _ in ["true"] }
    }

    /// The options that may be repeated and were given.
    static func lists(_ options: [SettingName: [String]]) -> [SettingName: [String]] {
        options.filter { !$0.value.isEmpty }
    }
}
