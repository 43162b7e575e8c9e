/// Every bound on input from outside, in one place. Units are in the types or last in the names.
public enum Limits {
    /// Bytes of a request body, except the NDJSON stream of tasks, which has no length of its own.
    public static let requestBody = ByteCount.mebibytes(8)
    /// Levels of objects and arrays in a JSON document of a request.
    public static let jsonDepth = 64
    /// Connections to one coordinator, if it may have twice as many descriptors.
    public static let connections = 10_000
    /// Connections that wait to be accepted by a coordinator.
    public static let listenBacklog = 1_024
    /// How long the head of the first request of a connection may take.
    public static let firstHead = Duration.seconds(15)
    /// How long a connection is kept for a further request.
    public static let connectionIdle = Duration.seconds(75)
    /// How long `leastBodyPerWindow` of a request body may take, and how long a peer may leave an answer unread.
    public static let bodyWindow = Duration.seconds(30)
    /// The bytes of a request body that have to come in each window, at the least.
    public static let leastBodyPerWindow = ByteCount.kibibytes(1)
    /// How long a peer may go on sending bytes that are no longer wanted.
    public static let connectionFarewell = Duration.seconds(10)
    /// Bytes of one line of a manifest.
    public static let manifestLine = ByteCount.kibibytes(64)
    /// The size of a file, wherever it is stated: sums and chunk ends stay far from the end of 64 bits.
    public static let fileSize = ByteCount(bytes: 1 << 50)
    /// Bytes that one sync may report as received, for the display of speeds: more than any worker receives between two syncs.
    public static let receivedPerSync = ByteCount(bytes: 1 << 40)
    /// Bytes of an ETag or Last-Modified field; a longer one is ignored.
    public static let validatorBytes = 8_192
    /// Bytes of a host's name (RFC 1035 §2.3.4), so that an origin's key fits into an index.
    public static let hostBytes = 253
    /// Bytes of a URL.
    public static let urlBytes = 8_192
    /// Bytes of a task's path below its sink.
    public static let pathBytes = 1_024
    /// Bytes of one component of a path: what file systems allow.
    public static let pathComponentBytes = 255
    /// Bytes of a task's key.
    public static let keyBytes = 1_024
    /// Sources of a task.
    public static let sourcesPerTask = 20
    /// Headers of a task.
    public static let headersPerTask = 64
    /// Bytes of a header's name and value together.
    public static let headerBytes = 8_192
    /// Bytes of the metadata of a group or a task, as JSON.
    public static let metadataBytes = 16_384
    /// Characters of a group's or a sink's or a worker's name.
    public static let nameCharacters = 200
    /// Keys to which one verb may be narrowed.
    public static let keysPerRequest = 10_000
    /// Leases that one sync hands out.
    public static let leasesPerSync = 256
    /// Reports that one sync brings.
    public static let reportsPerSync = 1_024
    /// Leases that one sync may list as held.
    public static let heldPerSync = 4_096
    /// Files, parts or findings that one report on a check may have (adr/0048).
    public static let checkPage = 256
    /// Names that one report on a check may list.
    public static let checkNames = 512
    /// Names of parts that a worker keeps while a check lists them.
    public static let checkNamesKept = 65_536
    /// Other installations that one report on a check may name.
    public static let checkInstallations = 64
    /// Bytes per second that a check reads of a sink while its worker fetches.
    public static let checkReadBeside = ByteCount.mebibytes(4)
    /// Bytes per second that a check reads of a sink otherwise.
    public static let checkRead = ByteCount.mebibytes(256)
    /// Bytes that count as read for each file or part that a check looks at.
    public static let checkLook = ByteCount.kibibytes(16)
    /// How long a worker counts as fetching after bytes came in.
    public static let checkCalm = Duration.seconds(5)
    /// How long the rows of a database may be looked at for a check.
    public static let checkRows = Duration.seconds(600)
    /// Sinks of one worker.
    public static let sinksPerWorker = 64
    /// Items of one page of a listing.
    public static let pageSize = 1_000
    /// How many deliveries of a state are counted for a subscription, so that a listing stays cheap however many there are.
    public static let deliveriesCounted: Int64 = 1_000
    /// The slots of a worker.
    public static let slots = 1...1_024
    /// The session time to live that a coordinator may be given.
    public static let sessionTimeToLive: ClosedRange<Duration> = .seconds(1)...Duration.seconds(600)
    /// How long a sync or a reader of events may wait for something to happen.
    public static let longPoll = Duration.seconds(20)
    /// How long a command that follows the log waits for one coordinator, which may have stopped, before it asks another (I19).
    public static let followerPoll = Duration.seconds(4)
    /// Positions of the log that one query of the database searches for events that pass a filter.
    public static let eventPositions: Int64 = 20_000
    /// How long one answer searches the log for events that pass its filter.
    public static let eventSearch = Duration.seconds(5)
    /// The size of a chunk, in bytes.
    public static let chunk: ClosedRange<ByteCount> = .mebibytes(8)...ByteCount.mebibytes(256)
    /// How often a task may start over because its content changed (range contract, row 6).
    public static let contentVersions: Int32 = 8
    /// How often a chunk is tried without progress before its task fails (I12).
    public static let attempts: Int32 = 8
    /// The range that the number of attempts may be set to.
    public static let attemptsAllowed: ClosedRange<Int32> = 1...100
    /// How many sessions may die with a chunk, without progress, before it counts as poison (I12).
    public static let deaths: Int32 = 5
    /// The longest deadline of a task.
    public static let deadline = Duration.seconds(365 * 86_400)
    /// The deadline of a group, counted from when it is set.
    public static let groupDeadline: ClosedRange<Duration> = .seconds(1)...Duration.seconds(3_650 * 86_400)
    /// Any cap on bytes per second.
    public static let bytesPerSecond: ClosedRange<Int64> = 1...(1 << 50) - 1
    /// Lines of a group's timetable.
    public static let timetableEntries = 48
    /// Groups that one group may wait for.
    public static let prerequisites = 64
    /// How long an origin may be parked by its Retry-After.
    public static let retryAfter = Duration.seconds(3_600)
    /// Attempts that are kept for the explanation of a task.
    public static let attemptsKept: Int32 = 50
    /// How many of a group's newest failures are searched for its tasks in trouble.
    public static let troubles: Int64 = 1_000
    /// Priority of a group or a task; higher is served first.
    public static let priority: ClosedRange<Int32> = -1_000...1_000
    /// Weight of a group within its priority.
    public static let weight: ClosedRange<Int32> = 1...1_000
    /// Types of events that one filter may name.
    public static let eventTypes = 64
    /// Bytes of a webhook's secret, as Standard Webhooks requires.
    public static let webhookSecretBytes = 24...64
    /// How long a webhook's receiver may take to answer.
    public static let webhookTimeout = Duration.seconds(15)
    /// Bytes of a receiver's answer that are read; only its status matters.
    public static let webhookAnswer = ByteCount.kibibytes(64)
    /// Deliveries of one subscription that are under way at once, in the whole fleet.
    public static let deliveriesPerSubscription: Int32 = 8
    /// How long a receiver may delay a delivery by Retry-After.
    public static let webhookRetryAfter = Duration.seconds(86_400)
    /// How long the previous secret of a webhook goes on signing.
    public static let secretRotation = Duration.seconds(86_400)
    /// How long the answer to a request is remembered.
    public static let requestMemory = Duration.seconds(86_400)
    /// How long a process may hold a consumer without renewing the hold, in seconds.
    public static let consumerHoldSeconds: ClosedRange<Int64> = 1...3_600
    /// Bytes of the name of such a process.
    public static let holderBytes = 200
    /// Subscriptions of one database.
    public static let subscriptions: Int64 = 1_000
    /// Consumers of one database.
    public static let consumers: Int64 = 10_000
    /// Streams of events that one coordinator serves at once.
    public static let eventStreams = 256
    /// How long events may be kept.
    public static let eventRetention: ClosedRange<Duration> = .seconds(3_600)...Duration.seconds(3_650 * 86_400)
}
