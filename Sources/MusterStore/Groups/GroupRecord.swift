public import MusterCore
import MusterPostgres

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
    /// Those of them that have been heard of as they should be, and don't leave.
    public let workersPresent: Int64
    /// Those of the present ones at which the sink is in trouble.
    public let workersParked: Int64
    /// Whether these are all present ones, and there are some.
    public var isSinkParked: Bool { workersParked > 0 && workersParked == workersPresent }
    /// What one of these said of it.
    public let parkedDetail: String?
    /// The workers that it waits for and that have not been heard of (`SilentWorker.join`).
    public let silent: [SilentWorker]
    /// Whether workers reach its sink, and none of them that stays has been heard of.
    public let areAllSilent: Bool
    /// The origins that have something ready of it and are paused: the one that goes on first is the first.
    public let pausedOrigins: [String]
    /// When that one goes on.
    public let originsPausedUntil: Timestamp?
    /// Whether one of them asked for that itself, so that one connection tries it sooner (range contract, row 25).
    public let areOriginsTried: Bool
    /// What it wants where there is a choice, as JSON.
    public let policy: String?
    /// Whether its tasks are made of files that the sink has, and its files are for others.
    public let reuses: Bool
    /// Who knows fresh URLs, as JSON; without the header fields of the question, which may hold secrets.
    public let resolver: String?
    /// Cap on its bytes per second, as far as its timetable says nothing else.
    public let bytesPerSecondLimit: Int64?
    /// The cap that holds now, by timetable and limit.
    public let bytesPerSecondAllowed: Int64?
    /// When it may run at all.
    public let window: GroupWindow?
    /// Its rates by the time of day, as a JSON array.
    public let timetable: String?
    /// When the time for this generation is over.
    public let deadlineAt: Timestamp?
    /// What happens then.
    public let deadlineAction: DeadlineAction
    /// Whether that has begun to happen.
    public let isOverdue: Bool
    /// Whether all of it was paused.
    public let isPaused: Bool
    /// Whether all of it was cancelled, and some tasks are still to follow (`adr/0015`).
    public let isCancelling: Bool
    /// Whether all of it was removed, and some tasks are still to follow.
    public let isRemoving: Bool
    /// Whether it waits for other groups.
    public let isHeld: Bool
    /// Whether its window is open now; always, if it has none.
    public let isWindowOpen: Bool
    /// When its window opens next, unless it is open.
    public let windowOpensAt: Timestamp?
    /// When its window closes, if it is open and ever closes.
    public let windowClosesAt: Timestamp?
    /// Whether its hours can't be read, so that it does not run.
    public let hasFlawedHours: Bool
    /// The groups that it waits for, or waited for, by name.
    public let prerequisites: [PrerequisiteRecord]
    /// How many tasks the verb changed that this is the answer to; `nil` in any other answer.
    public var changedTasks: Int64?
    /// The names of the options by which sources are asked. Their values may be secrets: only leases carry them.
    public let optionNames: [String]
    /// When all of this was so, by the database's clock (I11).
    public let at: Timestamp

    /// The question for those groups `g` of which a condition is true: one that chooses few of many has to do so by itself, since more is looked at of each
    /// that it leaves.
    static func query(where condition: SQL) -> SQL {
        """
        WITH \(SilentWorker.tables)
        SELECT \(columns) FROM groups g CROSS JOIN LATERAL (SELECT active_tasks(g.id) AS tasks OFFSET 0) AS active
            \(SilentWorker.join) WHERE \(condition) ORDER BY g.name
        """
    }

    private static let columns: SQL = """
        g.id, g.name, g.sink, g.state, g.generation, g.priority, g.weight, g.max_connections, g.metadata::text AS metadata,
        g.queued - active.tasks AS queued, active.tasks AS active, g.paused, g.finalizing, g.succeeded, g.failed, g.cancelled,
        g.bytes_done, g.bytes_total, g.unknown_tasks,
        least(bytes_per_second(g.rate_bytes, g.rate_at, g.created_at), group_rate(g)) AS rate, g.created_at, g.finished_at,
        coalesce(crews.reaching, 0) AS reaching, coalesce(crews.present, 0) AS present, coalesce(crews.parked, 0) AS parked, crews.parked_detail,
        coalesce(crews.all_silent, false) AS all_silent, silence.silent_workers, silence.silent_since, silence.silent_until,
        ARRAY (SELECT o.key FROM origins o WHERE o.not_before > statement_timestamp() AND (
            SELECT c.id FROM ready_chunks c WHERE c.group_id = g.id AND c.origin_id = o.id AND c.status = 'ready' LIMIT 1) IS NOT NULL
            ORDER BY o.not_before, o.key) AS paused_origins,
        (SELECT min(o.not_before) FROM origins o WHERE o.not_before > statement_timestamp() AND (
            SELECT c.id FROM ready_chunks c WHERE c.group_id = g.id AND c.origin_id = o.id AND c.status = 'ready' LIMIT 1) IS NOT NULL
        ) AS origins_paused_until,
        (SELECT bool_or(o.try_at < o.not_before) FROM origins o WHERE o.not_before > statement_timestamp() AND (
            SELECT c.id FROM ready_chunks c WHERE c.group_id = g.id AND c.origin_id = o.id AND c.status = 'ready' LIMIT 1) IS NOT NULL
        ) IS TRUE AS origins_tried,
        g.policy::text AS policy, g.reuses, (g.resolver - 'headers')::text AS resolver,
        ARRAY (SELECT name FROM jsonb_object_keys(coalesce(g.fetch_options, '{}')) AS name ORDER BY name) AS option_names,
        g.bytes_per_second, group_rate(g) AS rate_allowed, to_char(g.window_from, 'HH24:MI') AS window_from,
        to_char(g.window_to, 'HH24:MI') AS window_to, g.window_zone, g.timetable::text AS timetable, g.deadline_at,
        g.deadline_action, g.overdue, g.desired = 'pause' AS is_paused, is_cancelling(g) OR wished_of(g) = 'cancel' AS cancelling,
        is_removing(g) OR wish_rank(wished_of(g)) = 2 AS removing, g.held,
        hours_flaw(g) IS NOT NULL AS flawed_hours,
        CASE WHEN g.window_from IS NULL THEN true WHEN hours_flaw(g) IS NULL THEN is_open(g.window_from, g.window_to, g.window_zone)
            ELSE false END AS is_window_open,
        CASE WHEN hours_flaw(g) IS NULL THEN
            CASE WHEN NOT is_open(g.window_from, g.window_to, g.window_zone) THEN next_time(g.window_from, g.window_zone) END
        END AS window_opens_at,
        CASE WHEN hours_flaw(g) IS NULL THEN
            CASE WHEN g.window_from <> g.window_to AND is_open(g.window_from, g.window_to, g.window_zone)
                THEN next_time(g.window_to, g.window_zone) END
        END AS window_closes_at,
        ARRAY (SELECT p.name FROM group_prerequisites r JOIN groups p ON p.id = r.prerequisite_id
            WHERE r.group_id = g.id ORDER BY p.name) AS prerequisite_names,
        ARRAY (SELECT r.condition FROM group_prerequisites r JOIN groups p ON p.id = r.prerequisite_id
            WHERE r.group_id = g.id ORDER BY p.name) AS prerequisite_conditions,
        ARRAY (SELECT p.state FROM group_prerequisites r JOIN groups p ON p.id = r.prerequisite_id
            WHERE r.group_id = g.id ORDER BY p.name) AS prerequisite_states,
        ARRAY (SELECT r.satisfied_at IS NOT NULL FROM group_prerequisites r JOIN groups p ON p.id = r.prerequisite_id
            WHERE r.group_id = g.id ORDER BY p.name) AS prerequisites_satisfied,
        statement_timestamp() AS read_at
        """

    init(_ row: PostgresRow) throws {
        id = try row.decode("id")
        name = try row.decode("name")
        sink = try row.decode("sink")
        state = try row.decode("state")
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
        workersPresent = try row.decode("present")
        workersParked = try row.decode("parked")
        parkedDetail = try row.decode("parked_detail")
        silent = try SilentWorker.all(row)
        areAllSilent = try row.decode("all_silent")
        pausedOrigins = try row.decode("paused_origins")
        areOriginsTried = try row.decode("origins_tried")
        originsPausedUntil = try row.decode("origins_paused_until", as: PostgresTimestamp?.self).map(Timestamp.init)
        policy = try row.decode("policy")
        reuses = try row.decode("reuses")
        resolver = try row.decode("resolver")
        optionNames = try row.decode("option_names")
        bytesPerSecondLimit = try row.decode("bytes_per_second")
        bytesPerSecondAllowed = try row.decode("rate_allowed")
        window = try row.decode("window_from", as: String?.self).map { from in
            GroupWindow(from: from, to: try row.decode("window_to"), timeZone: try row.decode("window_zone"))
        }
        timetable = try row.decode("timetable")
        deadlineAt = try row.decode("deadline_at", as: PostgresTimestamp?.self).map(Timestamp.init)
        deadlineAction = try row.decode("deadline_action")
        isOverdue = try row.decode("overdue")
        isPaused = try row.decode("is_paused")
        isCancelling = try row.decode("cancelling")
        isRemoving = try row.decode("removing")
        isHeld = try row.decode("held")
        isWindowOpen = try row.decode("is_window_open")
        windowOpensAt = try row.decode("window_opens_at", as: PostgresTimestamp?.self).map(Timestamp.init)
        windowClosesAt = try row.decode("window_closes_at", as: PostgresTimestamp?.self).map(Timestamp.init)
        hasFlawedHours = try row.decode("flawed_hours")
        prerequisites = try PrerequisiteRecord.all(row)
        at = Timestamp(try row.decode("read_at"))
    }
}
