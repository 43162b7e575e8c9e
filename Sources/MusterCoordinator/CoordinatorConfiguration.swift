public import MusterCore

/// The configuration of a coordinator: plain values, which the program that starts the coordinator fills in.
public struct CoordinatorConfiguration: Sendable {
    /// The database: a libpq connection string or URI; may hold a password.
    public var database: String
    /// The address to listen on.
    public var listenHost = "127.0.0.1"
    /// The port to listen on; 0 takes any free one.
    public var listenPort = 7300
    /// Names and addresses under which clients reach the coordinator, in addition to the address to listen on: behind a
    /// reverse proxy, or from workers on other machines.
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
    /// The rate of the whole fleet, in bytes per second; unlimited when absent. Every coordinator of a database must have
    /// the same value.
    public var maxBytesPerSecond: Int64?
    /// Networks that workers may fetch from although they are not of the public Internet (range contract, row 39).
    public var allowedAddresses: [AddressRange] = []
    /// Whether all other non-public networks are refused even if the coordinator listens on loopback only, as it does
    /// behind a reverse proxy. A coordinator that other machines reach directly always refuses them.
    public var guardsAddresses = false
    /// The bound on the first wait after a failure; it doubles with every further one.
    public var retryBase: Duration = .seconds(1)
    /// The bound on every wait after a failure.
    public var retryMaximum: Duration = .seconds(300)
    /// The smallest chunk, and the one that is leased before a file's size is known.
    public var minimumChunk: ByteCount = Limits.chunk.lowerBound
    /// The largest chunk.
    public var maximumChunk: ByteCount = Limits.chunk.upperBound
    /// Connections to the database. The background rounds take at most half of them (`RoundTable`), read-only requests a
    /// quarter (`ReadersShare`), and the other requests the rest. One additional connection listens for hints.
    public var databaseConnections = 8
    /// How long a lease may go without progress although its session lives.
    public var stallLimit: Duration = .seconds(600)
    /// Whether every worker of this database is a child of this coordinator's process. Then no session can have outlived
    /// the start, and the leases of earlier sessions are taken back at once.
    public var ownsFleet = false
    /// What this coordinator's process knows in addition to the database.
    public var ownProcess = OwnProcess()
    /// How long events are kept. A reader that comes back later is told what it has missed.
    public var eventRetention: Duration = .seconds(30 * 86_400)
    /// How often a chunk is tried without progress.
    public var attempts: Int32 = Limits.attempts
    /// How often a chunk is tried while an origin that has not served lately can't be reached, no answer comes in time, or
    /// the worker may not enter a directory.
    public var unreachedAttempts: Int32 = Limits.attempts
    /// Whether the same process starts the database, and reports its state.
    public var ownsDatabase = false
    /// Whether a file for which there is no room is tried again until there is.
    public var waitsForRoom = false
    /// The limits on the number of connections, and on how long their peers may keep the coordinator waiting.
    var connections = ConnectionLimits.ofThisProcess
    /// The limits of requests that only read; derived from the number of connections when absent.
    var readers: ReaderLimits?
    /// How events are delivered to subscriptions.
    var delivery = DeliveryPolicy()
    /// Changes the table of rounds, for tests: a round that fails, a round that hangs, no rounds at all.
    var adjustRounds: @Sendable ([Round]) -> [Round] = { $0 }

    /// A configuration with the default values, for this database.
    public init(database: String) {
        self.database = database
    }

    /// Whether only this machine can reach the coordinator.
    public var isLoopback: Bool {
        HostName(listening: listenHost)?.isLoopback ?? false
    }

    /// Which addresses workers may fetch from, and events may be delivered to. A user who reaches the coordinator from
    /// another machine must not reach, through it, the private networks behind it.
    public var addressGuard: AddressGuard {
        AddressGuard(refusesPrivate: guardsAddresses || !isLoopback, allowed: allowedAddresses)
    }

    /// Rejects an impossible or unsafe configuration.
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
        // Port 0 takes a port that no other process knows, so it is not flooded.
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
    /// The listening address, without secrets: a printed configuration shows only this.
    public var description: String { "CoordinatorConfiguration(\(listenHost):\(listenPort))" }
    /// Shows no members, so that reflection shows neither a token nor the database's password.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A configuration that a coordinator refuses to start with.
public struct ConfigurationRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong, and what to do.
    public let description: String

    /// A refusal with this description.
    public init(_ description: String) {
        self.description = description
    }
}
