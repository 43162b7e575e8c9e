public import MusterCore

/// How a coordinator runs. Plain values; the program that starts the coordinator reads them from wherever they come.
public struct CoordinatorConfiguration: Sendable {
    /// The database: a libpq connection string or URI; may hold a password.
    public var database: String
    /// The address to listen on.
    public var listenHost = "127.0.0.1"
    /// The port to listen on; 0 takes any free one.
    public var listenPort = 7300
    /// Names and addresses, beside that to listen on, under which it is asked: behind a reverse proxy, or by workers of other machines.
    public var hosts: [String] = []
    /// The token that allows everything; a secret.
    public var adminToken: String?
    /// The token that allows what workers do, and no more; a secret.
    public var workerToken: String?
    /// How long a session lives without a sync.
    public var sessionTimeToLive: Duration = .seconds(30)
    /// How long a sync or a reader of events may wait, at the most.
    public var longPoll: Duration = Limits.longPoll
    /// The most connections to one origin in the whole fleet, where the origin has no cap of its own.
    public var maxConnectionsPerOrigin: Int32 = 8
    /// How many bytes per second the whole fleet may fetch; as many as come when absent. Every coordinator of a database must be
    /// given the same.
    public var maxBytesPerSecond: Int64?
    /// Networks that workers may fetch from although they are not of the public Internet (range contract, row 39).
    public var allowedAddresses: [AddressRange] = []
    /// Whether all others of those are refused although the coordinator listens on loopback alone, as one behind a reverse proxy
    /// does. Where others reach it directly, they always are.
    public var guardsAddresses = false
    /// The bound on the first wait after a failure; it doubles with every further one.
    public var retryBase: Duration = .seconds(1)
    /// The bound on every wait after a failure.
    public var retryMaximum: Duration = .seconds(300)
    /// The smallest chunk, and the one that is leased before a file's size is known.
    public var minimumChunk: ByteCount = Limits.chunk.lowerBound
    /// The largest chunk.
    public var maximumChunk: ByteCount = Limits.chunk.upperBound
    /// Connections to the database. The background rounds take half of them at the most (`RoundTable`), those who only read a quarter (`ReadersShare`), the
    /// other requests the rest; one more, which is not of these, listens for hints.
    public var databaseConnections = 8
    /// How long a lease may go without progress although its session lives.
    public var stallLimit: Duration = .seconds(600)
    /// Whether every worker of this database is a child of this coordinator's process: then no session can have outlived the
    /// start, and what earlier ones held is taken back at once.
    public var ownsFleet = false
    /// What else this coordinator's process does.
    public var ownProcess = OwnProcess()
    /// How long events are kept: a reader that comes back later is told what it has missed.
    public var eventRetention: Duration = .seconds(30 * 86_400)
    /// How often a chunk is tried without progress.
    public var attempts: Int32 = Limits.attempts
    /// How often a chunk is tried where nobody is reached of an origin that has not served lately, nobody answers in time, or a directory is closed to the
    /// worker.
    public var unreachedAttempts: Int32 = Limits.attempts
    /// Whether the same process starts the database, and says what becomes of it.
    public var ownsDatabase = false
    /// Whether a file for which there is no room is tried again until there is.
    public var waitsForRoom = false
    /// How many connections there may be, and how long their peers may keep it waiting.
    var connections = ConnectionLimits.ofThisProcess
    /// How much those may have who only read; as much as goes with the connections when absent.
    var readers: ReaderLimits?
    /// How events are delivered to subscriptions.
    var delivery = DeliveryPolicy()
    /// Changes the table of rounds, for tests: one that fails, one that hangs, none at all.
    var adjustRounds: @Sendable ([Round]) -> [Round] = { $0 }

    /// The defaults, on a database.
    public init(database: String) {
        self.database = database
    }

    /// Whether only this machine can reach the coordinator.
    public var isLoopback: Bool {
        HostName(listening: listenHost)?.isLoopback ?? false
    }

    /// Which addresses workers may fetch from, and events may be delivered to: a person who reaches the coordinator from elsewhere must
    /// not reach what lies behind it.
    public var addressGuard: AddressGuard {
        AddressGuard(refusesPrivate: guardsAddresses || !isLoopback, allowed: allowedAddresses)
    }

    /// Throws what is impossible or unsafe about the configuration.
    public func check() throws(ConfigurationRefusal) {
        guard isLoopback || (adminToken != nil && workerToken != nil) else {
            throw ConfigurationRefusal(
                """
                refusing to listen on \(listenHost) without tokens: anybody who reaches it could write to your sinks. \
                Set MUSTER_TOKEN and MUSTER_WORKER_TOKEN, or listen on 127.0.0.1
                """)
        }
        for host in hosts where HostName(host) == nil {
            throw ConfigurationRefusal(
                "\"\(host)\" is not a host: give a name or an address, without a scheme and a port")
        }
        for token in [adminToken, workerToken] {
            if let token, token.utf8.count < 16 {
                throw ConfigurationRefusal("a token must have at least 16 characters")
            }
        }
        guard adminToken == nil || adminToken != workerToken else {
            throw ConfigurationRefusal("the worker token must differ from the admin token: it allows less")
        }
        guard workerToken == nil || adminToken != nil else {
            throw ConfigurationRefusal("MUSTER_WORKER_TOKEN needs MUSTER_TOKEN beside it")
        }
        guard Limits.sessionTimeToLive.contains(sessionTimeToLive) else {
            throw ConfigurationRefusal("the session's time to live must be between 1s and 10m")
        }
        guard minimumChunk <= maximumChunk, minimumChunk.bytes >= 1 << 20, maximumChunk <= Limits.chunk.upperBound
        else {
            throw ConfigurationRefusal("chunks must be between 1MiB and \(Limits.chunk.upperBound), the smallest first")
        }
        guard maxConnectionsPerOrigin > 0 else {
            throw ConfigurationRefusal("the connections per origin must be positive")
        }
        guard maxBytesPerSecond.map(Limits.bytesPerSecond.contains) ?? true else {
            throw ConfigurationRefusal("the fleet's rate must be within \(Limits.bytesPerSecond) bytes per second")
        }
        guard retryBase > .zero, retryBase <= retryMaximum else {
            throw ConfigurationRefusal(
                "the waits after a failure must be positive, the first no longer than the longest")
        }
        guard Limits.attemptsAllowed.contains(attempts) else {
            throw ConfigurationRefusal("the tries of a file must be \(Limits.attemptsAllowed)")
        }
        guard eventRetention > .zero, eventRetention <= Limits.eventRetention.upperBound else {
            throw ConfigurationRefusal("events must be kept for some time, at most 3650d")
        }
        // Nobody floods a port that nobody knows.
        guard listenPort == 0 || connections.descriptors >= ConnectionLimits.leastDescriptors else {
            throw ConfigurationRefusal(
                "this process may open \(connections.descriptors) files, and a coordinator needs "
                    + "\(ConnectionLimits.leastDescriptors): raise the limit (ulimit -n)")
        }
        guard (2...1_000).contains(databaseConnections) else {
            throw ConfigurationRefusal("the connections to the database must be 2 to 1000")
        }
    }
}

extension CoordinatorConfiguration: CustomStringConvertible, CustomReflectable {
    /// Where it listens, and no secret: a configuration that is printed shows this.
    public var description: String { "CoordinatorConfiguration(\(listenHost):\(listenPort))" }
    /// Shows no members, so that nothing that reflects shows a token or the database's password.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A configuration that a coordinator refuses to start with.
public struct ConfigurationRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong, and what to do.
    public let description: String

    /// A refusal.
    public init(_ description: String) {
        self.description = description
    }
}
