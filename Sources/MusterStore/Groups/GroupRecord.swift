public import MusterCore
import MusterPostgres

/// A group to create.
public struct GroupCreation: Sendable {
    /// Its name.
    public var name: String
    /// Where its files end up.
    public var sink: String
    /// Higher is served first.
    public var priority: Int32
    /// Share within the priority.
    public var weight: Int32
    /// Cap on its leases.
    public var maxConnections: Int32?
    /// The caller's data, as JSON.
    public var metadata: String?
    /// Whether no task will be added any more.
    public var isSealed: Bool
    /// The Idempotency-Key of the request (I10).
    public var creationKey: String?
    /// How its sources are asked, as a JSON object; may hold secrets.
    public var options: String?
    /// What shall be done where there is a choice, as a JSON object.
    public var policy: String?
    /// Who knows fresh URLs, as a JSON object; may hold secrets.
    public var resolver: String?

    /// A group.
    public init(
        name: String, sink: String, priority: Int32, weight: Int32, maxConnections: Int32?, metadata: String?,
        isSealed: Bool, creationKey: String?, options: String? = nil, policy: String? = nil, resolver: String? = nil
    ) {
        self.name = name
        self.sink = sink
        self.priority = priority
        self.weight = weight
        self.maxConnections = maxConnections
        self.metadata = metadata
        self.isSealed = isSealed
        self.creationKey = creationKey
        self.options = options
        self.policy = policy
        self.resolver = resolver
    }
}

/// A group as it is stored.
public struct GroupRecord: Sendable {
    /// Its identity.
    public let id: GroupID
    /// Its name.
    public let name: String
    /// Where its files end up.
    public let sink: String
    /// What is observed of it.
    public let state: GroupState
    /// How often it was completed and reopened, from 1.
    public let generation: Int32
    /// Higher is served first.
    public let priority: Int32
    /// Share within the priority.
    public let weight: Int32
    /// Cap on its leases.
    public let maxConnections: Int32?
    /// The caller's data, as JSON.
    public let metadata: String?
    /// Tasks by state.
    public let tasks: [TaskState: Int64]
    /// Durable bytes.
    public let bytesDone: Int64
    /// Sum of the known sizes.
    public let bytesTotal: Int64
    /// Tasks of unknown size.
    public let unknownTasks: Int64
    /// Bytes per second lately.
    public let bytesPerSecond: Int64
    /// When it was created.
    public let createdAt: Timestamp
    /// When this generation ended.
    public let finishedAt: Timestamp?
    /// Live sessions that reach its sink.
    public let workersReaching: Int64
    /// Those of them at which the sink is in trouble.
    public let workersParked: Int64
    /// What one of these said of it.
    public let parkedDetail: String?
    /// What it wants where there is a choice, as JSON.
    public let policy: String?
    /// Who knows fresh URLs, as JSON; without the header fields of the question, which may hold secrets.
    public let resolver: String?
    /// The names of the options by which sources are asked. Their values may be secrets: only leases carry them.
    public let optionNames: [String]

    static let columns: SQL = """
        g.id, g.name, g.sink, g.state, g.generation, g.priority, g.weight, g.max_connections, g.metadata::text AS metadata,
        g.queued, g.active, g.paused, g.finalizing, g.succeeded, g.failed, g.cancelled, g.bytes_done, g.bytes_total,
        g.unknown_tasks, bytes_per_second(g.rate_bytes, g.rate_at, g.created_at) AS rate, g.created_at, g.finished_at,
        (SELECT count(*) FROM sessions s WHERE g.sink = ANY (s.sinks) AND s.expires_at > statement_timestamp()) AS reaching,
        (SELECT count(*) FROM sessions s WHERE g.sink = ANY (s.parked) AND s.expires_at > statement_timestamp()) AS parked,
        (SELECT status ->> 'detail' FROM sessions s, jsonb_array_elements(s.sink_status) AS status
            WHERE g.sink = ANY (s.parked) AND status ->> 'name' = g.sink AND s.expires_at > statement_timestamp() LIMIT 1
        ) AS parked_detail,
        g.policy::text AS policy, (g.resolver - 'headers')::text AS resolver,
        ARRAY (SELECT name FROM jsonb_object_keys(coalesce(g.fetch_options, '{}')) AS name ORDER BY name) AS option_names
        """

    init(_ row: PostgresRow) throws {
        id = try row.decode("id")
        name = try row.decode("name")
        sink = try row.decode("sink")
        state = GroupState(rawValue: try row.decode("state")) ?? .open
        generation = try row.decode("generation")
        priority = try row.decode("priority")
        weight = try row.decode("weight")
        maxConnections = try row.decode("max_connections")
        metadata = try row.decode("metadata")
        var tasks: [TaskState: Int64] = [:]
        for state in TaskState.allCases { tasks[state] = try row.decode(state.rawValue) }
        self.tasks = tasks
        bytesDone = try row.decode("bytes_done")
        bytesTotal = try row.decode("bytes_total")
        unknownTasks = try row.decode("unknown_tasks")
        bytesPerSecond = try row.decode("rate")
        createdAt = Timestamp(try row.decode("created_at"))
        finishedAt = try row.decode("finished_at", as: PostgresTimestamp?.self).map(Timestamp.init)
        workersReaching = try row.decode("reaching")
        workersParked = try row.decode("parked")
        parkedDetail = try row.decode("parked_detail")
        policy = try row.decode("policy")
        resolver = try row.decode("resolver")
        optionNames = try row.decode("option_names")
    }
}
