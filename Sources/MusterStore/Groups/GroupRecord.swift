public import MusterCore
import MusterPostgres

/// A group as it is stored.
public struct GroupRecord: Sendable {
    /// Its identity.
    public let id: GroupID
    /// Its name.
    public let name: String
    /// The sink of its files.
    public let sink: String
    /// Its observed state.
    public let state: GroupState
    /// The number of its generation, from 1. It grows when a finished group is reopened.
    public let generation: Int32
    /// Higher is served first.
    public let priority: Int32
    /// Relative share among groups of the same priority.
    public let weight: Int32
    /// Cap on its connections.
    public let maxConnections: Int32?
    /// The caller's data, as JSON.
    public let metadata: String?
    /// The number of tasks by state.
    public let tasks: [TaskState: Int64]
    /// Durable bytes.
    public let bytesDone: Int64
    /// Sum of the known sizes.
    public let bytesTotal: Int64
    /// The number of tasks of unknown size.
    public let unknownTasks: Int64
    /// Recent speed in bytes per second.
    public let bytesPerSecond: Int64
    /// When it was created.
    public let createdAt: Timestamp
    /// When this generation ended; `nil` while it is unfinished.
    public let finishedAt: Timestamp?
    /// The number of live sessions that reach its sink.
    public let workersReaching: Int64
    /// How many of these are neither silent nor leaving: they are present.
    public let workersPresent: Int64
    /// The number of present sessions that report trouble with the sink.
    public let workersParked: Int64
    /// Whether all present sessions report trouble with the sink, and there is at least one.
    public var isSinkParked: Bool { workersParked > 0 && workersParked == workersPresent }
    /// What one of these sessions reported about the sink.
    public let parkedDetail: String?
    /// The silent workers that it waits for (`SilentWorker.join`).
    public let silent: [SilentWorker]
    /// Whether sessions reach its sink, and all of them that are not leaving are silent.
    public let areAllSilent: Bool
    /// The paused origins for which it has ready chunks, the first to continue first.
    public let pausedOrigins: [String]
    /// When the first of these origins continues.
    public let originsPausedUntil: Timestamp?
    /// Whether one of these origins asked for the pause itself. In that case one connection tries it sooner (range
    /// contract, row 25).
    public let areOriginsTried: Bool
    /// Its policy, as JSON: what workers do where there is a choice.
    public let policy: String?
    /// Whether its tasks reuse files that the sink has, and its files may be reused.
    public let reuses: Bool
    /// The resolver of fresh URLs, as JSON, without the header fields of its requests, which may hold secrets.
    public let resolver: String?
    /// Cap on its bytes per second at times for which its timetable has no entry.
    public let bytesPerSecondLimit: Int64?
    /// The cap on its bytes per second that holds now, by timetable and cap; `nil` for none.
    public let bytesPerSecondAllowed: Int64?
    /// The daily hours in which it may run.
    public let window: TimeWindow?
    /// Its rates by the time of day, as a JSON array.
    public let timetable: String?
    /// The deadline of this generation.
    public let deadlineAt: Timestamp?
    /// What happens at the deadline.
    public let deadlineAction: DeadlineAction
    /// Whether the action at the deadline has begun.
    public let isOverdue: Bool
    /// Whether it is paused as a whole.
    public let isPaused: Bool
    /// Whether it is being cancelled as a whole, with some tasks left to cancel (`adr/0015`).
    public let isCancelling: Bool
    /// Whether it is being removed as a whole, with some tasks left to remove.
    public let isRemoving: Bool
    /// Whether it waits for other groups.
    public let isHeld: Bool
    /// Whether its window is open now; true if it has no window.
    public let isWindowOpen: Bool
    /// When its window opens next, unless it is open.
    public let windowOpensAt: Timestamp?
    /// When its window closes, if it is open and ever closes.
    public let windowClosesAt: Timestamp?
    /// Whether its hours can't be read. Such a group does not run.
    public let hasFlawedHours: Bool
    /// The groups that it waits for, or waited for, by name.
    public let prerequisites: [PrerequisiteRecord]
    /// A group at the end of its chain of prerequisites that has ended in another way than the group that waits for it requires; `nil` if there is none.
    public let lost: PrerequisiteRecord?
    /// The number of tasks that the verb changed, in the answer to a verb; `nil` in any other answer.
    public var changedTasks: Int64?
    /// The names of its request options. Their values may be secrets, so only leases carry them.
    public let optionNames: [String]
    /// The time of these facts, by the database's clock (I11).
    public let at: Timestamp

    /// The query for the groups `g` that meet a condition. A condition that selects few of many groups must select them by
    /// itself, without later limits: each group that it lets through costs more reads.
    static func query(where condition: SQL) -> SQL {
        """
        WITH \(SilentWorker.tables)
        SELECT \(columns) FROM groups g CROSS JOIN LATERAL (SELECT active_tasks(g.id) AS tasks OFFSET 0) AS active
            LEFT JOIN LATERAL (SELECT l.name, l.condition, l.state FROM lost_prerequisites(g.id, 1) AS l WHERE g.held) AS lost ON true
            \(SilentWorker.join) WHERE \(condition) ORDER BY g.name
        """
    }

    /// Whether the speed of the group `g` is still one of the present: a lease under which bytes may have come goes on, or
    /// the last bytes are recent and no try has failed since. Leases of later tries say nothing of what comes.
    private static let isFlowing: SQL = """
        (g.rate_at > statement_timestamp() - interval '10 s' AND (
            g.rate_at > statement_timestamp() - interval '1 s'
            OR EXISTS (SELECT 1 FROM leases l WHERE l.group_id = g.id AND l.kind = 'fetch' AND l.granted_at <= g.rate_at)
            OR g.rate_at > statement_timestamp() - interval '5 s' AND coalesce((
                SELECT max(t.failure_at) FROM tasks t
                WHERE t.group_id = g.id AND t.failure_at IS NOT NULL AND t.state IN ('queued', 'finalizing')) < g.rate_at, true)))
        """

    private static let columns: SQL = """
        g.id, g.name, g.sink, g.state, g.generation, g.priority, g.weight, g.max_connections, g.metadata::text AS metadata,
        g.queued - active.tasks AS queued, active.tasks AS active, g.paused, g.finalizing, g.succeeded, g.failed, g.cancelled,
        g.bytes_done, g.bytes_total, g.unknown_tasks,
        CASE WHEN \(isFlowing) THEN least(bytes_per_second(g.rate_bytes, g.rate_at, g.created_at), group_rate(g)) ELSE 0 END AS rate,
        g.created_at, g.finished_at,
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
        lost.name AS lost_name, lost.condition AS lost_condition, lost.state AS lost_state,
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
        finishedAt = try row.moment("finished_at")
        workersReaching = try row.decode("reaching")
        workersPresent = try row.decode("present")
        workersParked = try row.decode("parked")
        parkedDetail = try row.decode("parked_detail")
        silent = try SilentWorker.all(row)
        areAllSilent = try row.decode("all_silent")
        pausedOrigins = try row.decode("paused_origins")
        areOriginsTried = try row.decode("origins_tried")
        originsPausedUntil = try row.moment("origins_paused_until")
        policy = try row.decode("policy")
        reuses = try row.decode("reuses")
        resolver = try row.decode("resolver")
        optionNames = try row.decode("option_names")
        bytesPerSecondLimit = try row.decode("bytes_per_second")
        bytesPerSecondAllowed = try row.decode("rate_allowed")
        window = try row.decode("window_from", as: String?.self).map { from in
            TimeWindow(from: from, to: try row.decode("window_to"), timeZone: try row.decode("window_zone"))
        }
        timetable = try row.decode("timetable")
        deadlineAt = try row.moment("deadline_at")
        deadlineAction = try row.decode("deadline_action")
        isOverdue = try row.decode("overdue")
        isPaused = try row.decode("is_paused")
        isCancelling = try row.decode("cancelling")
        isRemoving = try row.decode("removing")
        isHeld = try row.decode("held")
        isWindowOpen = try row.decode("is_window_open")
        windowOpensAt = try row.moment("window_opens_at")
        windowClosesAt = try row.moment("window_closes_at")
        hasFlawedHours = try row.decode("flawed_hours")
        prerequisites = try PrerequisiteRecord.all(row)
        lost = try PrerequisiteRecord.lost(row)
        at = Timestamp(try row.decode("read_at"))
    }
}
